"""Commands whose large output stays in a file of the sandbox, of which the model gets the beginning and the end.

deepagents does this with a shell script around the command, which prints only when the command has ended: after a time limit all
output is lost, and what the command leaves in the background keeps the script waiting. Here the agent keeps the output itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sandy import _exec, _files, _plain
from sandy._arguments import MAX_KEEP
from sandy._texts import transfer_error

if TYPE_CHECKING:
    from sandy._exchange import Exchange
    from sandy._place import Place

MAX_CAPTURE: Final = 10_485_760
"""Bytes that are kept of a command, where the caller does not say how many; deepagents' number."""

_LINES: Final = 5
_BYTES: Final = 2_000
"""Of each end of the output in a preview."""


class Offload(NamedTuple):
    """A command's response; where `stored`, its output is a preview of what lies in a file."""

    response: _plain.ExecuteResponse
    stored: bool = False
    marked: bool = False
    """Whether the preview has a line that stands for whole lines that were left out."""


class Preview(NamedTuple):
    """The two ends of a text."""

    text: str
    marked: bool


def capture_size(wanted: int | None) -> int:
    """How many bytes to keep of a command."""
    return MAX_CAPTURE if wanted is None else min(wanted, MAX_KEEP)


def run(place: Place, command: _exec.Command, path: str, max_inline: int, timeout: float) -> Exchange[Offload]:
    """Runs a command; output of more than `max_inline` bytes goes into a file in the sandbox."""
    ended = yield from _exec.run_command(place.id, command)
    response = _exec.to_response(ended, timeout)
    if ended.reply.error is not None or len(response.output.encode()) <= max_inline:
        return Offload(response)
    note = _exec.closing_note(ended, timeout)
    reply = yield from _files.store(place, path, ended.stdout.join() + note.encode())
    shown = preview(response.output)
    if reply.error is None:
        return Offload(_plain.ExecuteResponse(shown.text, response.exit_code, response.truncated), True, shown.marked)
    lost = f"\n[sandy] the whole output could not be stored in {path}: {transfer_error(reply)}\n"
    return Offload(_plain.ExecuteResponse(shown.text + lost, response.exit_code, truncated=True))


def preview(text: str) -> Preview:
    """The first and the last lines, and where these are long, the first and the last bytes."""
    lines = text.splitlines(keepends=True)
    omitted = len(lines) - 2 * _LINES
    marked = omitted > 0
    head = "".join(lines[:_LINES]) if marked else text
    tail = "".join(lines[-_LINES:]) if marked else text
    first, last = head.encode()[:_BYTES].decode(errors="ignore"), tail.encode()[-_BYTES:].decode(errors="ignore")
    cut = not marked or first != head or last != tail
    gap = ["... [long lines are cut here] ..."] if cut else []
    gap += [f"... [{omitted} lines truncated] ..."] if marked else []
    end = "" if first.endswith("\n") else "\n"
    return Preview(f"{first}{end}" + "".join(f"{line}\n" for line in gap) + last, marked)
