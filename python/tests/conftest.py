"""Nothing here depends on a machine: where the programs are is said by SANDY_PROGRAMS, or found as a user's would be."""

from __future__ import annotations

import pathlib
import signal

import pytest

# Whoever started us in the background may have had it ignored, and Python then has no KeyboardInterrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what runs real sandboxes."""
    here = pathlib.Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here / "integration"):
            item.add_marker("integration")
