#!/usr/bin/env python3
"""Runs a command in a terminal and draws what that showed at its end: README's picture of the quickstart.

usage: picture.py FILE.svg COMMAND [ARGUMENT...]        (needs rich, which deepagents brings)

    packaging/quickstart/picture.py packaging/quickstart/quickstart.svg python3 packaging/quickstart/demo.py build/quickstart

The command's exit status is passed on; a picture is made of a success alone.
"""

from __future__ import annotations

import fcntl
import io
import os
import pathlib
import pty
import struct
import sys
import termios

from rich.console import Console
from rich.text import Text

COLUMNS, ROWS = 118, 50
# As rich's own (rich.console.CONSOLE_SVG_FORMAT), without the fonts that it has fetched from the network.
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def shown_by(command: list[str]) -> tuple[int, str]:
    """Its exit status, and all that it wrote to a terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    written = bytearray()
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the last writer has closed its end
            break
        if not piece:
            break
        written += piece
        os.write(1, piece)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), written.decode(errors="replace")


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    path, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    status, written = shown_by(command)
    if status != 0:
        return status
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("$ " + " ".join(command) + "\n" + written.replace("\r\n", "\n")))
    path.write_text(console.export_svg(title="", code_format=FORMAT, unique_id="quickstart"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
