"""Starting, ending, threads, forks, event loops, and processes that are killed."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection as Pipe

import pytest

from deepagents_sandbox import Sandbox, SandboxError
from deepagents_sandbox import Sandbox as Backend

Processes = Callable[[], list[str]]
Until = Callable[..., None]


def test_properties() -> None:
    with Backend() as sandbox:
        assert sandbox.workspace == "/workspace"
        assert sandbox.execute("pwd").output == "/workspace\n"
        assert sandbox.execute("cd; pwd").output == sandbox.home + "\n"
        assert sandbox.id in repr(sandbox)
        assert all(isinstance(word, str) for word in sandbox.degraded)
    assert sandbox.closed
    assert sandbox.execute("true").exit_code == 125
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run("true")


def test_a_policy_file_in_the_workspace_is_not_the_commands_to_change(tmp_path: pathlib.Path) -> None:
    # As with --policy: it decides the next start.
    policy = tmp_path / "policy.json"
    policy.write_text('{"version": 1}')
    with Sandbox(workspace=tmp_path, policy=policy) as sandbox:
        assert sandbox.run("echo other > other && cat policy.json").ok
        assert not sandbox.run("echo '{}' > policy.json").ok
        assert not sandbox.run("rm -f policy.json || mv policy.json away").ok
    assert policy.read_text() == '{"version": 1}'
    with Sandbox(workspace=tmp_path, policy={"version": 1}) as sandbox:  # the control
        assert sandbox.run("echo '{}' > policy.json").ok


def test_private_files_go_away() -> None:
    # Where Sandy keeps its state (src/host/state_directory.h): the first that it can use.
    states = [pathlib.Path.home() / ".local/state/sandy", pathlib.Path(f"/var/tmp/sandy-{os.geteuid()}")]
    if "XDG_STATE_HOME" in os.environ:
        states.insert(0, pathlib.Path(os.environ["XDG_STATE_HOME"]) / "sandy")
    with Sandbox() as sandbox:
        sandbox.write("/f", "x")
        [directory] = [path for state in states if (path := state / f"sandbox-{sandbox.id}").exists()]
        assert (directory / "root/workspace/f").read_text() == "x"
    assert not directory.exists()


def test_twenty_sandboxes_in_one_client() -> None:
    sandboxes = [Sandbox() for _ in range(20)]
    assert len({sandbox.id for sandbox in sandboxes}) == 20
    for number, sandbox in enumerate(sandboxes):
        assert sandbox.write("/n", str(number)).error is None
    for number, sandbox in enumerate(sandboxes):
        assert sandbox.execute("cat /n").output == str(number)
    for sandbox in sandboxes:
        sandbox.close()


def test_threads_that_end_take_nothing_along() -> None:
    made: list[Sandbox] = []
    thread = threading.Thread(target=lambda: made.append(Sandbox()))
    thread.start()
    thread.join()
    time.sleep(0.2)
    with made[0] as sandbox:
        outputs: list[str] = []
        for _ in range(3):
            thread = threading.Thread(target=lambda: outputs.append(sandbox.execute("echo on").output))
            thread.start()
            thread.join()
        assert outputs == ["on\n"] * 3
        assert sandbox.execute("echo main").output == "main\n"


def test_garbage_collection_ends_it(marker: str, processes: Processes, until: Until) -> None:
    sandbox = Sandbox()
    sandbox.execute(f"sleep {marker} &")
    until(lambda: len(processes()) == 1)
    before = time.monotonic()
    del sandbox
    assert time.monotonic() - before < 0.5
    gc.collect()
    until(lambda: processes() == [])


def test_keyboard_interrupt_kills_the_command(marker: str, processes: Processes, until: Until) -> None:
    with Sandbox() as sandbox:

        def interrupt() -> None:
            until(lambda: len(processes()) == 1)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            sandbox.execute(f"trap '' INT TERM; sleep {marker}")
        thread.join()
        until(lambda: processes() == [])
        assert sandbox.execute("echo on").output == "on\n"


LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop]
try:
    import uvloop

    LOOPS.append(uvloop.new_event_loop)
except ImportError:
    pass


@pytest.mark.parametrize("new_loop", LOOPS)
def test_cancelled_tasks_kill_their_commands(
    new_loop: Callable[[], asyncio.AbstractEventLoop], marker: str, processes: Processes, until: Until
) -> None:
    async def use() -> None:
        async with Sandbox() as sandbox:
            command = f"trap '' TERM; (setsid sleep {marker} &) ; sleep {marker}"
            task = asyncio.create_task(sandbox.aexecute(command))
            await asyncio.to_thread(until, lambda: len(processes()) == 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            until(lambda: processes() == [])
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(sandbox.aexecute(f"sleep {marker}"), 0.5)
            until(lambda: processes() == [])
            assert (await sandbox.aexecute("echo on")).output == "on\n"

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(use())


@pytest.mark.parametrize("new_loop", LOOPS)
def test_every_operation_in_asyncio_without_threads(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def use() -> None:
        async with Sandbox() as sandbox:
            threads = threading.active_count()
            responses = await asyncio.gather(*(sandbox.aexecute(f"sleep 0.5; echo {n}") for n in range(10)))
            assert [response.output for response in responses] == [f"{n}\n" for n in range(10)]
            assert (await sandbox.aupload_files([("/up", b"x" * 3_000_000)]))[0].error is None
            assert (await sandbox.adownload_files(["/up"]))[0].content == b"x" * 3_000_000
            assert (await sandbox.awrite("/f", "one\n")).error is None
            assert (await sandbox.aedit("/f", "one", "two")).occurrences == 1
            assert (await sandbox.aread("/f")).file_data == {"content": "two", "encoding": "utf-8"}
            assert {e["path"] for e in (await sandbox.als("/workspace")).entries or []} == {"/workspace/f", "/workspace/up"}
            assert [m["path"] for m in (await sandbox.aglob("f")).matches or []] == ["/workspace/f"]
            assert [m["line"] for m in (await sandbox.agrep("two")).matches or []] == [1]
            assert (await sandbox.adelete("/f")).error is None
            assert (await sandbox.arun(["cat"], stdin=b"in")).stdout == b"in"
            assert threading.active_count() == threads
            assert sandbox.execute("echo sync").output == "sync\n"

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(use())


def in_child(sandbox: Sandbox, pipe: Pipe) -> None:
    response = sandbox.execute("true")
    with Sandbox() as own:
        pipe.send((response.exit_code, response.output, own.execute("echo child").output))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_children_make_their_own() -> None:
    with Sandbox() as sandbox:
        ours, theirs = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(target=in_child, args=(sandbox, theirs))
        child.start()
        assert ours.poll(20)
        code, output, own = ours.recv()
        child.join(20)
        assert (code, own, child.exitcode) == (125, "child\n", 0)
        assert f"it belongs to process {os.getpid()}" in output
        assert sandbox.execute("echo parent").output == "parent\n"


SCRIPT = """
import sys
sys.path.insert(0, {source!r})
from sandy import Sandbox
sandbox = Sandbox()
sandbox.execute("(setsid sleep {marker} &) ; sleep {marker} &")
print("ready", flush=True)
sys.stdin.readline()
{rest}
"""


Client = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def client(marker: str, processes: Processes, until: Until) -> Iterator[Client]:
    """Starts another Python process with a sandbox, in which two marked processes run."""
    children: list[subprocess.Popen[str]] = []

    def start(rest: str) -> subprocess.Popen[str]:
        source = str(pathlib.Path(__file__).parents[2] / "src")
        code = SCRIPT.format(source=source, marker=marker, rest=rest)
        command = [sys.executable, "-W", "error", "-X", "dev", "-c", code]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        until(lambda: len(processes()) == 2)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.mark.parametrize(
    "rest", ["", "sys.exit(3)", "import threading; threading.Thread(target=sandbox.execute, args=('sleep 1',)).start()"]
)
def test_a_process_that_ends_takes_all_along_quietly(client: Client, processes: Processes, rest: str) -> None:
    out, err = client(rest).communicate("\n", timeout=30)
    assert (out, err) == ("", "")
    assert processes() == []


def test_b024_a_killed_client_leaves_nothing(client: Client, processes: Processes, until: Until) -> None:
    client("").kill()
    until(lambda: processes() == [], 2)


def test_a_killed_server_is_explained_and_replaced(marker: str, processes: Processes, until: Until) -> None:
    sandbox = Sandbox()
    sandbox.execute(f"sleep {marker} &")
    os.kill(sandbox._serve._child.pid, signal.SIGKILL)  # type: ignore[attr-defined]
    response = sandbox.execute("true")
    assert response.exit_code == 125
    assert "[sandy] sandy serve ended (killed by signal 9)" in response.output
    assert "sandy serve ended" in str(sandbox.read("/x").error)
    sandbox.close()
    until(lambda: processes() == [], 2)
    with Sandbox() as other:
        assert other.execute("echo on").output == "on\n"


def test_a_dead_sandbox_spoils_no_other() -> None:
    with Sandbox() as first, Sandbox() as second:
        # pid 1 is out of reach of its own namespace; what is killed is all else, the agent with it where it can be.
        first.execute("kill -9 -1")
        response = first.execute("echo on")
        assert response.exit_code in (0, 125)
        assert second.execute("echo on").output == "on\n"


def test_a_closed_sandbox_ends_running_commands(marker: str, processes: Processes, until: Until) -> None:
    sandbox = Sandbox()
    codes: list[int | None] = []
    thread = threading.Thread(target=lambda: codes.append(sandbox.execute(f"sleep {marker}").exit_code))
    thread.start()
    until(lambda: len(processes()) == 1)
    sandbox.close()
    thread.join(10)
    assert not thread.is_alive()
    assert codes != [0]
    assert processes() == []
