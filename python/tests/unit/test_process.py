from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable

import pytest
from fake_serve import FakeServe, Request

from sandy import PolicyError, Sandbox, SandboxError, SandboxFileError, SandboxStartError, _process

FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def wait_for(condition: Callable[[], object], seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def test_one_server_serves_all_sandboxes(serve: FakeServe) -> None:
    sandboxes = [Sandbox() for _ in range(20)]
    assert serve.started == 1
    assert {sandbox.id for sandbox in sandboxes} == {f"sb{n}" for n in range(1, 21)}
    first = sandboxes[0]
    assert (first.workspace, first.home) == ("/workspace", "/home/user")
    assert first.degraded == ("limits.memory",)


def test_calls_one_after_the_other_share_a_connection(serve: FakeServe) -> None:
    sandbox = Sandbox()
    for _ in range(10):
        sandbox.execute("true")
    assert serve.connections == 1


def test_threads_have_connections_of_their_own(serve: FakeServe) -> None:
    together = threading.Barrier(10)

    def handler(request: Request) -> None:
        together.wait(5)
        request.exited()

    serve.on["exec"] = handler
    sandbox = Sandbox()
    codes: list[int | None] = []
    threads = [threading.Thread(target=lambda: codes.append(sandbox.execute("x").exit_code)) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert codes == [0] * 10
    assert serve.connections == 10


def test_start_errors_keep_their_parts(serve: FakeServe) -> None:
    serve.on["create"] = lambda request: request.end(error="start", detail="user namespaces: not allowed\nhint: ask root")
    with pytest.raises(SandboxStartError) as caught:
        Sandbox()
    assert (caught.value.what, caught.value.why, caught.value.fix) == ("user namespaces", "not allowed", "ask root")
    assert str(caught.value) == "user namespaces: not allowed\nhint: ask root"
    assert not isinstance(caught.value, PolicyError)
    serve.on["create"] = lambda request: request.end(error="policy", detail='limits.memory: "2X": not a size')
    with pytest.raises(PolicyError, match=r"limits\.memory"):
        Sandbox()


@pytest.mark.parametrize("error", [SandboxStartError("a", "b", "c"), PolicyError("a"), SandboxFileError("/x", "no")])
def test_errors_survive_pickling(error: SandboxError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_another_protocol_version_is_refused(serve: FakeServe) -> None:
    serve.on["hello"] = lambda request: request.end(error="version", version=2)
    with pytest.raises(SandboxStartError, match="version 2"):
        Sandbox()


def test_a_server_that_dies_is_explained_and_replaced(serve: FakeServe) -> None:
    sandbox = Sandbox()

    def handler(request: Request) -> None:
        assert serve.child is not None
        serve.child.kill()
        request.peer.socket.close()

    serve.on["exec"] = handler
    response = sandbox.execute("x")
    assert (response.output, response.exit_code) == ("[sandy] sandy serve ended (killed by signal 9)\n", 125)
    assert sandbox.read("/x").error == "Error: sandy serve ended (killed by signal 9)"
    assert [r.error for r in sandbox.upload_files([("/a", b""), ("/b", b"")])] == [
        "Error: sandy serve ended (killed by signal 9)"
    ] * 2
    sandbox.close()
    assert Sandbox().id == "sb2"
    assert serve.started == 2


@pytest.mark.parametrize("answer", [b"\xff" * 100, b"\x02\0\0\0\0\0\0\0{}"])
def test_a_broken_protocol_is_no_success(serve: FakeServe, answer: bytes) -> None:
    serve.on["exec"] = lambda request: request.peer.raw(answer)
    response = Sandbox().execute("x")
    assert response.exit_code == 125
    assert "[sandy] a frame" in response.output


def test_garbage_collection_closes_in_the_background(serve: FakeServe) -> None:
    slow = threading.Event()

    def handler(request: Request) -> None:
        slow.wait(5)
        request.end()

    serve.on["close"] = handler
    sandbox = Sandbox()
    before = time.monotonic()
    del sandbox
    assert time.monotonic() - before < 1
    gc.collect()
    wait_for(lambda: serve.requests("close"))
    slow.set()
    assert serve.requests("close")[0].header["sandbox"] == "sb1"


def test_keyboard_interrupt_cancels_the_request(serve: FakeServe) -> None:
    serve.on["exec"] = lambda request: threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    sandbox = Sandbox()
    with pytest.raises(KeyboardInterrupt):
        sandbox.execute("sleep 100")
    assert serve.disconnected.wait(5)
    del serve.on["exec"]
    assert sandbox.execute("true").exit_code == 0


@FORKS
def test_forked_children_can_use_no_inherited_sandbox(serve: FakeServe) -> None:
    sandbox = Sandbox()
    sandbox.execute("true")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            response = sandbox.execute("true")
            lines = [str(response.exit_code), response.output.strip()]
            try:
                sandbox.run("true")
            except SandboxError as error:
                lines.append(type(error).__name__)
            sandbox.close()
            lines.append(str(_process._current))
            os.write(writer, "\n".join(lines).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        said = pipe.read().splitlines()
    expected = f"[sandy] it belongs to process {os.getpid()}, of which this one is a fork: make a new Sandbox here"
    assert said == ["125", expected, "SandboxGoneError", "None"]
    assert sandbox.execute("true").exit_code == 0
    assert not serve.requests("close")


@FORKS
def test_children_inherit_no_open_socket(serve: FakeServe) -> None:
    sandbox = Sandbox()
    sandbox.execute("true")

    def sockets() -> int:
        names = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
        return sum(os.path.lexists(name) and os.readlink(name).startswith("socket:") for name in names)

    # The server is in this process too, so its ends of the two connections stay.
    child = os.fork()
    if child == 0:
        os._exit(sockets())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == sockets() - 2


LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop]
try:
    import uvloop

    LOOPS.append(uvloop.new_event_loop)
except ImportError:
    pass


@pytest.mark.parametrize("new_loop", LOOPS)
def test_asyncio_runs_many_at_once_and_cancels(serve: FakeServe, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    together = threading.Barrier(10)
    hung = threading.Event()

    def handler(request: Request) -> None:
        if request.args[0] == b"hang":
            hung.set()
            return
        together.wait(5)
        request.event("stdout", b"z" * 200_000)
        request.exited()

    async def use() -> None:
        async with Sandbox() as sandbox:
            responses = await asyncio.gather(*(sandbox.aexecute("x" * 200_000) for _ in range(10)))
            assert [(len(r.output), r.exit_code) for r in responses] == [(200_000, 0)] * 10
            assert threading.active_count() - len(serve.threads) == threads
            task = asyncio.create_task(sandbox.aexecute("hang"))
            await asyncio.to_thread(hung.wait, 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(serve.disconnected.wait, 5)
            assert (await sandbox.aread("/x")).error is not None

    serve.on["exec"] = handler
    serve.on["read"] = lambda request: request.end(error="file_not_found")
    sync = Sandbox()  # starts the server
    sync.ls("/")
    threads = threading.active_count() - len(serve.threads)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(use())
    assert sync.ls("/").error is None  # connections of the loop are good for blocking calls too
    assert len(serve.requests("close")) == 1


def test_silence_ends_some_time(serve: FakeServe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandy._exec._GRACE", 0.2)
    serve.on["exec"] = lambda request: None
    sandbox = Sandbox()
    response = sandbox.execute("x", timeout=0.1)  # type: ignore[arg-type]
    assert (response.exit_code, "no answer" in response.output) == (125, True)
    response = asyncio.run(sandbox.aexecute("x", timeout=0.1))  # type: ignore[arg-type]
    assert (response.exit_code, "no answer" in response.output) == (125, True)
