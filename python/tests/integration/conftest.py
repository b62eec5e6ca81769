"""Real sandboxes, with the programs that SANDY_PROGRAMS names or that a user's Sandbox() would find."""

from __future__ import annotations

import itertools
import os
import pathlib
import time
from collections.abc import Callable, Iterator

import pytest

from deepagents_sandbox import Sandbox, SandboxStartError

MUST_WORK = os.environ.get("SANDY_MUST_WORK") == "1"


@pytest.fixture(scope="session", autouse=True)
def programs() -> None:
    """Skips where no sandbox can start here; with SANDY_MUST_WORK=1 that is a failure, so that no skip can hide it."""
    try:
        Sandbox().close()
    except SandboxStartError as error:
        if MUST_WORK:
            pytest.fail(f"SANDY_MUST_WORK=1, but no sandbox starts: {error}")
        pytest.skip(f"no sandbox starts here: {error}")


@pytest.fixture(scope="module")
def be() -> Iterator[Sandbox]:
    """A sandbox that the tests of a module share."""
    with Sandbox(timeout=60) as sandbox:
        yield sandbox


@pytest.fixture
def ws(be: Sandbox) -> Iterator[str]:
    """A fresh directory in the shared sandbox's workspace."""
    path = f"{be.workspace}/t{next(_numbers)}"
    assert be.execute(f"mkdir {path}").exit_code == 0
    yield path
    be.execute(f"chmod -R u+rwX {path}; rm -rf {path}")


_numbers = itertools.count()


@pytest.fixture
def marker() -> str:
    """An argument for `sleep` (a bit more than 300 s) that tells a test's processes from all others."""
    return f"300.{os.getpid()}{next(_numbers):04}{time.time_ns() % 1_000_000:06}"


@pytest.fixture
def processes(marker: str) -> Callable[[], list[str]]:
    """The processes on this machine, also in sandboxes, that have the marker in their command line."""

    def find() -> list[str]:
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if words[:1] == [b"sleep"] and marker.encode() in words:
                    found.append(entry.name)
        return found

    return find


@pytest.fixture
def until() -> Callable[[Callable[[], object]], None]:
    """Waits for something that has to happen within some seconds."""

    def wait(condition: Callable[[], object], seconds: float = 5) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.01)

    return wait
