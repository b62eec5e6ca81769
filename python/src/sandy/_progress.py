"""A line on the terminal about what takes long."""

from __future__ import annotations

import sys
import time
from typing import Final

PATIENCE: Final = 1.0
"""Seconds that are not worth a line."""


class Progress:
    """Shows on standard error how far something is, where that is a terminal and it takes more than a second. Not for threads."""

    def __init__(self, what: str, total: int) -> None:
        """Shows nothing yet."""
        self._what = what
        self._total = total
        self._start = time.monotonic()
        self._shown = False

    def update(self, done: int) -> None:
        """Says how much is done; with all of it the line goes away."""
        over = done >= self._total
        if (not self._shown and (over or time.monotonic() - self._start < PATIENCE)) or not _is_terminal():
            return
        self._shown = not over
        sys.stderr.write("\r\x1b[K" if over else f"\r\x1b[Ksandy: {self._what}: {done} of {self._total}")
        sys.stderr.flush()

    def end(self) -> None:
        """Takes the line away."""
        self.update(self._total)


def _is_terminal() -> bool:
    # It may be closed, or replaced by something that is none.
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False
