"""The console script `sandy`, which is also `python -m sandy`: becomes the program that the package carries."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from sandy._errors import SandboxStartError
from sandy._programs import find_sandy

EXIT_CANNOT_START = 125


def main() -> NoReturn:
    """Replaces this process with `sandy`, with the same arguments."""
    try:
        program = find_sandy()
        os.execv(program, ["sandy", *sys.argv[1:]])  # noqa: S606 - that is its purpose
    except SandboxStartError as error:
        sys.stderr.write(f"sandy: {error}\n")
    except OSError as error:
        sys.stderr.write(f"sandy: {error.filename or 'sandy'}: {error.strerror}\n")
    sys.exit(EXIT_CANNOT_START)
