"""Fixtures of the tests that run real sandboxes; `support` says what they need of the machine."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import pytest
from support import REPOSITORY, USUAL_PATH, Cli, need, processes_with, started
from terminal import Terminal

_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # Not a lack of the machine: the same suite is run once more as root.
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="about being started by root"))


@pytest.fixture(scope="session")
def programs() -> pathlib.Path:
    """The directory of the programs; no sandbox at all is what nothing here can do without."""
    named = os.environ.get("SANDY_PROGRAMS")
    if not named:
        pytest.fail("set SANDY_PROGRAMS to the directory with sandy, sandy-launch, sandy-agent and sandy-proxy")
    directory = pathlib.Path(named).resolve()
    for name in ("sandy", "sandy-launch", "sandy-agent", "sandy-proxy"):
        if not os.access(directory / name, os.X_OK):
            pytest.fail(f"SANDY_PROGRAMS={named}: {name} is not there, or can't be executed")
    return directory


@pytest.fixture(scope="session")
def session_directory(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Below /tmp, readable for all: programs to run inside, and homes."""
    path = tmp_path_factory.mktemp("sandy")
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session", autouse=True)
def works(programs: pathlib.Path, session_directory: pathlib.Path) -> None:
    home, workspace = session_directory / "home", session_directory / "first"
    home.mkdir()
    workspace.mkdir()
    started = Cli(programs, home, workspace).run("true")
    need(started.status == 0, f"a machine on which a sandbox starts; here: {started.error}")


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    yield
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    started.clear()


@pytest.fixture
def ws(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "ws"
    path.mkdir()
    return path


@pytest.fixture
def open_directory() -> Iterator[pathlib.Path]:
    """A directory that every user can enter, which pytest's own are not."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="sandy-test-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def home(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def sandy(programs: pathlib.Path, home: pathlib.Path, ws: pathlib.Path) -> Cli:
    return Cli(programs, home, ws)


@pytest.fixture
def terminal(sandy: Cli) -> Iterator[Callable[..., Terminal]]:
    made: list[Terminal] = []

    def make(*words: str, shell: bool = False) -> Terminal:
        made.append(Terminal(sandy, *words, shell=shell))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def api(programs: pathlib.Path, home: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> type:
    """The Python client's Sandbox, from where it is installed, or from the checkout."""
    try:
        from sandy import Sandbox
    except ImportError:
        sys.path.insert(0, str(REPOSITORY / "python/src"))
        try:
            from sandy import Sandbox
        except ImportError as error:
            need(False, f"the Python client: {error}")
    monkeypatch.setenv("SANDY_PROGRAMS", str(programs))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return Sandbox


@pytest.fixture
def marker() -> str:
    """An argument for `sleep` (a bit more than 300 s) that tells a test's processes from all others."""
    return f"300.{os.getpid()}{next(_numbers):04}{time.time_ns() % 1_000_000:06}"


@pytest.fixture
def processes(marker: str) -> Iterator[Callable[[], list[int]]]:
    """The processes that have the test's marker among their arguments. None is left behind, however the test ends."""
    yield lambda: processes_with(marker)
    for pid in processes_with(marker):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def compile_c(session_directory: pathlib.Path) -> Callable[..., pathlib.Path]:
    """Compiles escape/probes/NAME.c, statically, so that it runs in any view of the file system."""
    compiler = shutil.which("cc", path=USUAL_PATH)
    directory = session_directory / "probes"
    directory.mkdir()

    def compile_(name: str, *flags: str) -> pathlib.Path:
        need(compiler, "a C compiler")
        out = directory / "-".join([name, *(flag.strip("-") for flag in flags)])
        if not out.exists():
            source = REPOSITORY / "tests/escape/probes" / f"{name}.c"
            made = subprocess.run([str(compiler), "-O1", "-static", "-pthread", *flags, "-o", out, source], capture_output=True, check=False)
            need(made.returncode == 0, f"a C compiler that makes {name} {' '.join(flags)}: {made.stderr.decode(errors='replace')[:500]}")
        return out

    return compile_


@pytest.fixture
def probe(compile_c: Callable[..., pathlib.Path], ws: pathlib.Path) -> Callable[..., pathlib.Path]:
    """A compiled probe in the workspace, where a sandbox can run it."""

    def copy(name: str, *flags: str) -> pathlib.Path:
        made = compile_c(name, *flags)
        target = ws / made.name
        if not target.exists():
            shutil.copy2(made, target)
            target.chmod(0o755)
        return target

    return copy
