"""Sandboxes that outlive whoever made them."""

from __future__ import annotations

import asyncio
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from deepagents_sandbox import Sandbox, SandboxError, SandboxGoneError, SandboxStartError

Until = Callable[[Callable[[], object]], None]


@pytest.fixture
def made() -> Iterator[list[str]]:
    """Ids to remove after a test."""
    ids: list[str] = []
    yield ids
    known = {info.id for info in Sandbox.list()}
    for each in known.intersection(ids):
        Sandbox.discard(each)
    assert not {info.id for info in Sandbox.list()}.intersection(ids)


@pytest.fixture
def kept(made: list[str]) -> Sandbox:
    sandbox = Sandbox(keep=True, timeout=60)
    made.append(sandbox.id)
    return sandbox


def child(code: str, *words: str, **options: object) -> subprocess.Popen[str]:
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )


def test_it_outlives_its_creator_even_one_that_is_killed(
    made: list[str], marker: str, processes: Callable[[], list[str]]
) -> None:
    code = """
import sys
from sandy import Sandbox
sandbox = Sandbox(keep=True, name=sys.argv[1])
sandbox.write("/f", "text")
print(sandbox.id, sandbox.spawn(["sleep", sys.argv[2]]).number, flush=True)
sys.stdin.read() if len(sys.argv) > 3 else sys.exit()
"""
    for stays in ((), ("stays",)):
        name = f"test-{os.getpid()}-{len(stays)}"
        creator = child(code, name, marker, *stays)
        assert creator.stdout is not None
        identity, number = creator.stdout.readline().split()
        made.append(identity)
        if stays:
            creator.kill()
        creator.communicate()
        with Sandbox.attach(name) as sandbox:
            assert (sandbox.id, sandbox.name, sandbox.kept) == (identity, name, True)
            assert sandbox.execute("cat f").output == "text"
            assert sandbox.process(int(number)).poll() is None
        assert len(processes()) == 1
        with Sandbox.attach(identity) as sandbox:
            sandbox.remove()
            assert sandbox.closed
        assert not processes()
        with pytest.raises(SandboxError, match="no kept sandbox"):
            Sandbox.attach(name)


def test_close_lets_go_and_two_may_use_it(kept: Sandbox) -> None:
    other = Sandbox.attach(kept.id)
    kept.close()
    kept.close()
    with pytest.raises(SandboxError, match="closed"):
        kept.run("true")
    assert other.run("true").ok
    with Sandbox.attach(kept.id) as third:
        third.write("/x", "1")
    assert other.execute("cat x").output == "1"
    other.close()


def test_stop_and_go_on(made: list[str], marker: str, processes: Callable[[], list[str]]) -> None:
    name = f"stop-{os.getpid()}"
    first = Sandbox(keep=True, name=name, open_files=99)
    made.append(first.id)
    first.execute(f"echo 1 > f; sleep {marker} &")
    other = Sandbox.attach(name)
    first.stop()
    assert not processes()
    with pytest.raises(SandboxGoneError):  # its server says that it was stopped, or is gone too
        other.run("true")
    info = next(info for info in Sandbox.list() if info.id == first.id)
    assert (info.running, info.name) == (False, name)
    with pytest.raises(SandboxError, match="has stopped"):
        Sandbox.attach(name)
    with pytest.raises(SandboxStartError, match=name):
        Sandbox(keep=True, name=name)
    with Sandbox(id=first.id) as again:
        assert (again.id, again.name) == (first.id, name)
        assert again.execute("cat f; ulimit -n").output == "1\n99\n"
        with pytest.raises(SandboxStartError, match="runs already"):
            Sandbox(id=first.id)
        again.stop()
    with Sandbox(id=first.id, open_files=88) as again:
        assert again.execute("cat f; ulimit -n").output == "1\n88\n"
        again.remove()
    with pytest.raises(SandboxStartError):
        Sandbox(id=first.id)


def test_a_killed_server_leaves_a_workspace_to_go_on_with(kept: Sandbox, until: Until) -> None:
    kept.execute("echo kept > f")
    import json  # noqa: PLC0415

    from sandy import _kept_server  # noqa: PLC0415

    pid = next(each["pid"] for each in json.loads(_kept_server.run_verb("ps", "--json")) if each["id"] == kept.id)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not next(info for info in Sandbox.list() if info.id == kept.id).running)
    with pytest.raises(SandboxGoneError):
        kept.run("true")
    with Sandbox(id=kept.id) as again:
        assert again.execute("cat f").output == "kept\n"


def test_an_idle_timeout_ends_it_and_use_puts_that_off(made: list[str], until: Until) -> None:
    sandbox = Sandbox(keep=True, idle_timeout=1)
    made.append(sandbox.id)
    for _ in range(4):
        time.sleep(0.5)
        assert sandbox.run("true").ok
    assert sandbox.run("sleep 1.5").ok
    until(lambda: not next(info for info in Sandbox.list() if info.id == sandbox.id).running)


def test_a_workspace_of_the_users_own_stays(made: list[str], tmp_path: pathlib.Path) -> None:
    sandbox = Sandbox(keep=True, workspace=tmp_path)
    made.append(sandbox.id)
    sandbox.write("/f", "x")
    sandbox.remove()
    assert (tmp_path / "f").read_text() == "x"


def test_asyncio(made: list[str]) -> None:
    async def use() -> None:
        async with Sandbox(keep=True) as sandbox:
            made.append(sandbox.id)
            assert sandbox.id in {info.id for info in await Sandbox.alist()}
        async with await Sandbox.aattach(made[0]) as sandbox:
            assert (await sandbox.aexecute("echo x")).output == "x\n"
            running = await sandbox.aspawn("sleep 300")
            await sandbox.astop()
            with pytest.raises(SandboxGoneError):
                await running
        async with Sandbox(id=made[0]) as sandbox:
            await sandbox.aremove()
        with pytest.raises(SandboxError):
            await Sandbox.adiscard(made[0])

    asyncio.run(use())


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_attaches_itself(kept: Sandbox) -> None:
    kept.run("true")
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = kept.execute("true").output
            with Sandbox.attach(kept.id) as own:
                text += own.execute("echo own").output
            os.write(writer, text.encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        lines = pipe.read().splitlines()
    assert f"Sandbox.attach({kept.id!r})" in lines[0]
    assert lines[1:] == ["own"]
    assert kept.run("true").ok
