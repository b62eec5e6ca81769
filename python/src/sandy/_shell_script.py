r"""What a stateful shell is told to do, and what it says of it. No input or output in here.

The shell is an interactive one without a terminal: such a shell goes on after a syntax error, an unset variable, or SIGINT. A
command is a line

    ! (__sandy=${BEGIN?0}) 2>&60; case x in esac; \command eval ' COMMAND' </dev/null 2>&1 60>&-

and when it is running another line is sent, which the shell reads when it has ended:

    __sandy=$?; ! (IFS=; __sandy=${END?$__sandy}) 2>&60

BEGIN and END are random names that nobody has used, so that the shell complains on its standard error of what is not set,
`bash: END: 3`. That, on a descriptor of its own which no command has, is the message; nothing of these lines looks up the name of
a command, an alias or a function, but for `\command eval`, and nothing of them is in the output. The second line isn't sent with
the first, as a shell throws away what it has read ahead when it is interrupted, or meets an error of syntax.
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
    bash = f"exec {BASH}>&2 2>/dev/null; set +o history +H; {{ __sandy=${{{name}?{BASH}}}; }} 2>&{BASH}"
    other = f"exec {SH}>&2 2>/dev/null; {{ __sandy=${{{name}?{SH}}}; }} 2>&{SH}"
    return f"case ${{BASH_VERSION:+b}} in b) {bash};; *) {other};; esac\n".encode()


def begin(name: str, descriptor: int, command: bytes, status: int) -> bytes:
    """Runs a command, which finds `$?` as the last one left it; under `set -e` the shell would end there."""
    last = f"case $- in *e*) ;; *) (exit {status});; esac" if status else "case x in esac"
    quoted = b"' " + command.replace(b"'", b"'\\''") + b"'"
    before = f"! (__sandy=${{{name}?0}}) 2>&{descriptor}; {last}; \\command eval "
    return before.encode() + quoted + f" </dev/null 2>&1 {descriptor}>&-\n".encode()


def end(name: str, descriptor: int) -> bytes:
    """Tells the status of what ran.

    A child complains, as that would end the shell under `set -e`, and dash would forget what it has read ahead. No quotes are
    in the line: when SIGINT comes while the shell reads it, what is left is an error, and not the start of a text.
    """
    return f"__sandy=$?; ! (IFS=; __sandy=${{{name}?$__sandy}}) 2>&{descriptor}\n".encode()


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
        found = re.search(rb"\b" + name.encode() + rb": (\d{1,3})\n", self._heard)
        if found is None:
            return None
        self._heard = self._heard[found.end() :]
        return int(found[1])
