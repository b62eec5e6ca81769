"""A terminal of the caller's, as a terminal emulator would have it, with `sandy` in it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from support import Cli, descendants


class Terminal:
    """A terminal with `sandy` as its foreground session, as a terminal emulator would have it."""

    def __init__(self, sandy: Cli, *words: str, shell: bool = False) -> None:
        self.master, slave = pty.openpty()
        self.resize(30, 90)
        self.before = termios.tcgetattr(slave)
        argv = ["/bin/sh", "-i"] if shell else [sandy.program, *words]
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, cwd=sandy.workspace, env=sandy.env | {"TERM": "xterm", "PS1": "OUTER> "},
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.slave = slave  # kept open, so that its modes can be read after the end
        self.seen = b""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def expect(self, pattern: bytes, seconds: float = 10) -> bytes:
        """What came up to the end of `pattern`'s match."""
        end = time.monotonic() + seconds
        while (match := re.search(pattern, self.seen)) is None:
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            assert ready, f"{pattern!r} did not come; {self.seen!r}"
            self.seen += os.read(self.master, 65536)
        taken, self.seen = self.seen[: match.end()], self.seen[match.end() :]
        return taken

    def restored(self) -> bool:
        return termios.tcgetattr(self.slave) == self.before

    def close(self) -> None:
        if self.process.poll() is None:
            for pid in [*descendants(self.process.pid), self.process.pid]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)
