r"""What a stateful shell is told to do, and what it says of it. No input or output in here.

The shell is an interactive one without a terminal: such a shell goes on after a syntax error, an unset variable, or SIGINT. A
command is a line

    ! (\:) 2>&60 <$((0 @ BEGIN)); case x in esac; \builtin eval ' COMMAND' </dev/null 2>&1 60>&-

and when it is running another line is sent, which the shell reads when it has ended:

    ! (\:) 2>&60 <$(($? @ END))

BEGIN and END are random names that nobody has used. What is in the parentheses is no arithmetic, and the shell complains of it on
its standard error, `bash: 3 @ END: syntax error`. That, on a descriptor of its own which no command has, is the message. A shell
other than bash has `! (\: ${END?$?}) 2>&9` in its place, which says `sh: END: 3`, and `\command eval`. In bash `$?` is 1 there.

Neither assigns anything, splits words at what IFS says, or gets so far as to run `:`: so no readonly variable, alias or function,
and no trap of DEBUG, keeps the message from being told; nothing of these lines looks up a name, but for the eval and, under a
status that isn't 0, `exit`; and nothing of them is in the output. The second line isn't sent with the first, as a shell throws
away what it has read ahead when it is interrupted, or meets an error of syntax.
"""

from __future__ import annotations

import re
import secrets
from typing import Final

BASH: Final = 60
SH: Final = 9
"""The descriptor of messages: dash knows those of one digit only."""

START: Final = "command -v bash >/dev/null && exec bash --noprofile --norc --noediting -i; exec sh -i"
"""The shell command line that becomes the shell."""

_MAX_HEARD: Final = 65_536


def new_name() -> str:
    """A variable that is not set, and that no command can guess."""
    return f"SANDY_{secrets.token_hex(16)}"


def prelude(name: str) -> bytes:
    """Takes the messages' descriptor out of the way of commands, and tells which one that is."""
    bash = f"exec {BASH}>&2 2>/dev/null; set +o history +H; {_tell(name, BASH, str(BASH))}"
    other = f"exec {SH}>&2 2>/dev/null; {_tell(name, SH, str(SH))}"
    return f"case ${{BASH_VERSION:+b}} in b) {bash};; *) {other};; esac\n".encode()


def begin(name: str, descriptor: int, command: bytes, status: int) -> bytes:
    """Runs a command, which finds `$?` as the last one left it; under `set -e` the shell would end there."""
    last = f"case $- in *e*) ;; *) (exit {status});; esac" if status else "case x in esac"
    quoted = b"' " + command.replace(b"'", b"'\\''") + b"'"
    # In bash a function may have any name, and command is a likelier one than builtin. Others have no builtin.
    run = "\\builtin" if descriptor == BASH else "\\command"
    before = f"{_tell(name, descriptor, '0')}; {last}; {run} eval "
    return before.encode() + quoted + f" </dev/null 2>&1 {descriptor}>&-\n".encode()


def end(name: str, descriptor: int) -> bytes:
    """Tells the status of what ran.

    The empty line first is for bash, which after a text without an end takes the next line's first words for something else.
    """
    before = "\n" if descriptor == BASH else ""
    return f"{before}{_tell(name, descriptor, '$?')}\n".encode()


def _tell(name: str, descriptor: int, number: str) -> str:
    """Has a child complain of a number.

    A child, as that would end the shell under `set -e`, and dash would forget what it has read ahead. No quotes are in the line:
    when SIGINT comes while the shell reads it, what is left is an error, and not the start of a text.
    """
    if descriptor == BASH:
        return f"! (\\:) 2>&{descriptor} <$(({number} @ {name}))"
    return f"! (\\: ${{{name}?{number}}}) 2>&{descriptor}"


class Messages:
    """What came on the messages' descriptor. Anything may: only a line with the name that is waited for counts."""

    def __init__(self) -> None:
        """Has heard nothing."""
        self._heard = b""

    def hear(self, data: bytes) -> None:
        """Takes the next bytes."""
        self._heard = (self._heard + data)[-_MAX_HEARD:]

    def find(self, name: str) -> int | None:
        """The number that was told with a name, if it was; what came before is forgotten then."""
        word = name.encode()
        found = re.search(rb"\b" + word + rb": (\d{1,3})\n|: (\d{1,3}) @ " + word + rb"\b", self._heard)
        if found is None:
            return None
        self._heard = self._heard[found.end() :]
        return int(found[1] or found[2])
