from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fake_process import WINDOW, FakeProcess
from fake_serve import FakeServe, Request

from sandy import (
    Chunk,
    CommandNotStartedError,
    ProcessNotFoundError,
    Sandbox,
    SandboxError,
    SandboxGoneError,
    _wait,
)

FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
STARTED = {"process": 1, "pid": 7, "started_ms": 0, "tty": False}
END = {"reason": "exited", "code": 3, "wall_ms": 1, "user_ms": 2, "system_ms": 3, "max_rss_kib": 4}


def process(act: Callable[[FakeProcess], object], **started: Any) -> Callable[[Request], None]:
    def handle(request: Request) -> None:
        act(FakeProcess(request, **started))

    return handle


def hello(it: FakeProcess) -> None:
    it.write(b"out")
    it.write(b"err", "stderr")
    it.write(b"more")
    it.exit(3)


def test_what_is_sent(serve: FakeServe) -> None:
    serve.on["spawn"] = process(FakeProcess.exit)
    sandbox = Sandbox()
    sandbox.spawn("echo 'ü'")
    sandbox.spawn(["cat", "-n"], stdin="pipe", cwd="~/x", env={"A": "b"}, merge=False, timeout=1.5)
    sandbox.spawn(["top"], pty=True)
    sandbox.spawn(["top"], pty=(3, 4))
    shell, argv, tty, sized = serve.requests("spawn")
    assert shell.args == ["echo 'ü'".encode(), b""]
    assert {k: v for k, v in shell.header.items() if k not in ("id", "args")} == {"op": "spawn", "sandbox": "sb1", "shell": True}
    assert argv.args == [b"cat", b"-n", b"/home/user/x", b"A=b"]
    fields = {"argc": 2, "shell": False, "stdin": "pipe", "merge": False, "timeout_ms": 1500}
    assert fields.items() <= argv.header.items()
    assert (tty.header["tty"], sized.header["tty"]) == ({"rows": 24, "cols": 80}, {"rows": 3, "cols": 4})


def test_output_as_it_comes_and_the_end(serve: FakeServe) -> None:
    serve.on["spawn"] = process(hello, number=5, pid=42)
    running = Sandbox().spawn(["x", "y"], merge=False)
    assert (running.number, running.pid, running.command, running.tty) == (5, 42, ("x", "y"), False)
    assert running.started_at == datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)
    chunks = list(running)
    assert [(bytes(c), c.stream, c.offset, c.end) for c in chunks] == [
        (b"out", "stdout", 0, 3),
        (b"err", "stderr", 3, 6),
        (b"more", "stdout", 6, 10),
    ]
    assert list(running) == []
    outcome = running.wait()
    assert (outcome.reason, outcome.exit_code, outcome.stdout, outcome.degraded) == ("exited", 3, b"", ("limits.memory",))
    assert running.poll() == outcome
    assert (running.offset, running.lost) == (10, 0)


def test_chunks_are_bytes_that_can_be_copied() -> None:
    chunk = Chunk(b"x", "stderr", 7)
    again = pickle.loads(pickle.dumps(chunk))
    assert (again, again.stream, again.offset) == (b"x", "stderr", 7)


def test_the_connection_is_its_own_until_the_end(serve: FakeServe) -> None:
    serve.on["spawn"] = process(lambda it: it.until("eof"))
    sandbox = Sandbox()
    sandbox.execute("true")
    running = sandbox.spawn(["cat"], stdin="pipe")
    sandbox.execute("true")
    sandbox.execute("true")
    assert serve.connections == 2
    running.close()
    assert serve.disconnected.wait(5)
    serve.on["spawn"] = process(hello)
    list(sandbox.spawn("x"))
    list(sandbox.spawn("x"))
    assert serve.connections == 2


@pytest.mark.parametrize(
    ("end", "text", "code"),
    [
        ({"errno": 2, "code": 127}, "could not start the command: ENOENT: No such file or directory", 127),
        ({"errno": 13, "code": 126, "cwd": True}, "could not start the command: the working directory: EACCES", 126),
    ],
)
def test_a_command_that_cannot_be_started(serve: FakeServe, end: dict[str, Any], text: str, code: int) -> None:
    serve.on["spawn"] = lambda request: request.end(**{**END, "reason": "could_not_start", **end})
    with pytest.raises(CommandNotStartedError, match=text) as caught:
        Sandbox().spawn(["nothing"])
    assert (caught.value.errno, caught.value.exit_code) == (end["errno"], code)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.errno, again.exit_code) == (str(caught.value), end["errno"], code)


def test_a_sandbox_that_is_gone_or_closed(serve: FakeServe) -> None:
    serve.on["spawn"] = lambda request: request.end(error="no_sandbox", detail="its agent died")
    sandbox = Sandbox()
    with pytest.raises(SandboxGoneError, match="its agent died"):
        sandbox.spawn("x")
    serve.on["spawn"] = process(lambda it: it.request.end(error="no_sandbox", detail="closed"))
    running = sandbox.spawn("x")
    with pytest.raises(SandboxGoneError, match="closed"):
        running.wait()
    with pytest.raises(SandboxGoneError, match="closed"):
        list(running)
    sandbox.close()
    for call in (lambda: sandbox.spawn("x"), sandbox.list_processes, lambda: sandbox.process(1), lambda: sandbox.read_log(1)):
        with pytest.raises(SandboxError, match="is closed"):
            call()


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"pty": 5}, TypeError, "pty must be"),
        ({"pty": (1,)}, TypeError, "pty must be"),
        ({"pty": ("1", 2)}, TypeError, "rows must be an int"),
        ({"pty": (0, 80)}, ValueError, "a terminal of 0 rows"),
        ({"pty": True, "stdin": b"x"}, ValueError, "stdin"),
        ({"stdin": 5}, TypeError, "stdin must be"),
        ({"merge": "no"}, TypeError, "merge must be True or False"),
        ({"timeout": -1}, ValueError, "timeout"),
        ({"env": {"A=": "b"}}, ValueError, "env"),
        ({"cwd": b"/"}, TypeError, "cwd must be"),
    ],
)
def test_wrong_arguments_start_nothing(serve: FakeServe, arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Sandbox().spawn("x", **arguments)
    assert not serve.requests("spawn")


def test_a_reader_that_stops_stops_the_writer(serve: FakeServe) -> None:
    processes: list[FakeProcess] = []

    def act(it: FakeProcess) -> None:
        processes.append(it)
        for _ in range(80):
            it.write(b"y" * 50_000)
        it.exit()

    serve.on["spawn"] = process(act)
    running = Sandbox().spawn("x")
    reading = iter(running)
    next(reading)
    time.sleep(0.2)
    # Also write() receives, and gives no credit for what it only puts aside.
    assert processes[0].offset <= WINDOW
    assert 50_000 + sum(map(len, reading)) == 4_000_000


def test_wait_drops_what_nobody_reads(serve: FakeServe) -> None:
    def act(it: FakeProcess) -> None:
        for _ in range(40):
            it.write(b"y" * 100_000)
        it.exit()

    serve.on["spawn"] = process(act)
    running = Sandbox().spawn("x")
    assert running.wait(5).ok
    assert running.offset == 4_000_000
    assert list(running) == []


def test_wait_drops_also_what_its_own_thread_began_to_read(serve: FakeServe) -> None:
    def act(it: FakeProcess) -> None:
        for _ in range(40):
            it.write(b"y" * 100_000)
        it.exit()

    serve.on["spawn"] = process(act)
    running = Sandbox().spawn("x")
    reading = iter(running)
    assert len(next(reading)) == 100_000
    assert running.wait(5).ok


def test_wait_leaves_another_threads_output_alone(serve: FakeServe) -> None:
    def act(it: FakeProcess) -> None:
        for number in range(200):
            it.write(b"%06d" % number * 10_000)
        it.exit()

    serve.on["spawn"] = process(act)
    running = Sandbox().spawn("x")
    got: list[Chunk] = []
    begun = threading.Event()

    def read() -> None:
        for chunk in running:
            got.append(chunk)
            begun.set()
            time.sleep(0.001)

    thread = threading.Thread(target=read)
    thread.start()
    assert begun.wait(5)
    assert running.wait(20).ok
    thread.join(5)
    assert b"".join(got) == b"".join(b"%06d" % number * 10_000 for number in range(200))


def test_wait_and_communicate_with_time_limits(serve: FakeServe) -> None:
    go_on = threading.Event()

    def act(it: FakeProcess) -> None:
        it.write(b"early ")
        assert it.read(2) == b"in"
        it.until("eof")
        go_on.wait(5)
        it.write(b"late")
        it.write(b"e", "stderr")
        it.exit()

    serve.on["spawn"] = process(act)
    running = Sandbox().spawn("x", stdin="pipe", merge=False)
    before = time.monotonic()
    with pytest.raises(TimeoutError, match=r"process 1 still runs after 0\.1 s"):
        running.communicate(b"in", timeout=0.1)
    assert 0.1 <= time.monotonic() - before < 2
    with pytest.raises(SandboxError, match="input of process 1 was closed"):
        running.communicate(b"in", timeout=0.1)
    go_on.set()
    outcome = running.communicate(timeout=5)
    assert (outcome.stdout, outcome.stderr, outcome.exit_code) == (b"early late", b"e", 0)
    assert running.wait(0).exit_code == 0


@pytest.mark.parametrize("wait", ["wait", "communicate"])
def test_an_impossible_time_limit(serve: FakeServe, wait: str) -> None:
    serve.on["spawn"] = process(FakeProcess.exit)
    running = Sandbox().spawn("x")
    with pytest.raises(ValueError, match="timeout is -1"):
        getattr(running, wait)(timeout=-1)
    with pytest.raises(TypeError, match="timeout must be"):
        getattr(running, wait)(timeout="1")


def echo(it: FakeProcess) -> None:
    """Writes what it reads, as `cat` does: it reads no more while nobody takes its output."""
    while it.input or "eof" not in it.frames:
        if not it.input:
            it.take()
            continue
        data, it.input = it.input[:100_000], it.input[100_000:]
        it.request.event("credit", bytes=len(data))
        it.write(data)
    it.exit()


def test_communicate_with_far_more_than_the_window(serve: FakeServe) -> None:
    serve.on["spawn"] = process(echo)
    data = os.urandom(1 << 20) * 8
    outcome = Sandbox(max_output_bytes=16 << 20).spawn(["cat"], stdin="pipe").communicate(data, timeout=30)
    assert outcome.stdout == data


def test_communicate_keeps_both_ends(serve: FakeServe) -> None:
    serve.on["spawn"] = process(echo)
    outcome = Sandbox(max_output_bytes=10).spawn(["cat"], stdin="pipe").communicate("0123456789abcdef", timeout=5)
    assert outcome.stdout == b"01234\n[sandy] 6 bytes of output were left out here\nbcdef"
    assert (outcome.stdout_omitted, outcome.truncated) == (6, True)


def test_all_input_with_the_start(serve: FakeServe) -> None:
    serve.on["spawn"] = process(echo)
    sandbox = Sandbox()
    assert b"".join(sandbox.spawn(["cat"], stdin="text")) == b"text"
    assert b"".join(sandbox.spawn(["cat"], stdin=b"")) == b""
    data = os.urandom(3 << 20)
    assert b"".join(sandbox.spawn(["cat"], stdin=data)) == data
    with pytest.raises(SandboxError, match='spawn it with stdin="pipe"'):
        sandbox.spawn(["cat"], stdin="text").write(b"x")


def test_write_waits_for_the_process_and_another_thread_reads(serve: FakeServe) -> None:
    serve.on["spawn"] = process(echo)
    running = Sandbox().spawn(["cat"], stdin="pipe")
    data = os.urandom(1 << 20) * 6
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.extend(running))
    thread.start()
    running.write(data)
    running.write(memoryview(data))
    running.close_stdin()
    thread.join(20)
    assert b"".join(got) == data * 2
    with pytest.raises(SandboxError, match="was closed"):
        running.write(b"x")


def test_write_to_what_has_ended(serve: FakeServe) -> None:
    def act(it: FakeProcess) -> None:
        it.until("data")
        it.exit()

    serve.on["spawn"] = process(act)
    running = Sandbox().spawn(["true"], stdin="pipe")
    with pytest.raises(SandboxError, match="process 1 has ended"):
        running.write(b"x" * (4 << 20))
    with pytest.raises(SandboxError, match="process 1 has ended"):
        running.write(b"x")
    with pytest.raises(TypeError, match="data must be"):
        running.write(5)  # type: ignore[arg-type]


def test_terminals_are_resized(serve: FakeServe) -> None:
    sizes: list[Any] = []

    def act(it: FakeProcess) -> None:
        frame = it.until("resize")
        sizes.append((frame.header["rows"], frame.header["cols"]))
        it.exit()

    serve.on["spawn"] = process(act, tty=True)
    running = Sandbox().spawn(["top"], pty=True)
    assert running.tty
    running.resize(30, 100)
    running.wait(5)
    assert sizes == [(30, 100)]
    with pytest.raises(SandboxError, match="has ended"):
        running.resize(1, 1)
    serve.on["spawn"] = process(hello)
    with pytest.raises(SandboxError, match="no terminal"):
        Sandbox().spawn("x").resize(1, 1)


def test_signals_and_kills_are_requests_of_their_own(serve: FakeServe) -> None:
    serve.on["spawn"] = process(lambda it: it.until("eof"))
    running = Sandbox().spawn(["cat"], stdin="pipe")
    running.signal(signal.SIGUSR1)
    running.kill()
    assert serve.requests("signal")[0].header.items() >= {"sandbox": "sb1", "process": 1, "signal": 10}.items()
    assert serve.requests("kill")[0].header.items() >= {"sandbox": "sb1", "process": 1}.items()
    serve.on["kill"] = lambda request: request.end(error="no_process")
    running.kill()  # it has ended, and was forgotten
    serve.on["kill"] = lambda request: request.end(error="no_sandbox", detail="it died")
    with running, pytest.raises(SandboxGoneError, match="it died"):
        running.kill()


def test_the_list(serve: FakeServe) -> None:
    def processes(request: Request) -> None:
        request.event("data", b"b\0", process=2, pid=8, started_ms=1500, tty=True, running=True)
        request.event("data", b"a\0\xff x\0", **STARTED, **END)
        request.end()

    serve.on["processes"] = processes
    first, second = Sandbox().list_processes()
    assert (first.number, first.command, first.running, first.exit_code) == (1, ("a", "\udcff x"), False, 3)
    assert (second.number, second.command, second.running, second.exit_code, second.tty) == (2, ("b",), True, None, True)
    assert second.started_at == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=1.5)


def listed(request: Request, **end: Any) -> None:
    request.event("data", b"make\0test\0", **STARTED, **end)
    request.end()


def test_poll_asks_and_reads_nothing(serve: FakeServe) -> None:
    serve.on["spawn"] = process(lambda it: it.write(b"x"))
    serve.on["processes"] = listed
    running = Sandbox().spawn("x")
    assert running.poll() is None
    serve.on["processes"] = lambda request: listed(request, **END)
    outcome = running.poll()
    assert outcome is not None
    assert outcome.exit_code == 3
    assert next(iter(running)) == b"x"
    serve.on["processes"] = lambda request: request.end()
    other = Sandbox().spawn("x")
    with pytest.raises(ProcessNotFoundError, match="forgotten"):
        other.poll()


def test_attach(serve: FakeServe) -> None:
    serve.on["processes"] = listed

    def attach(request: Request) -> None:
        it = FakeProcess(request, offset=100, **{k: v for k, v in STARTED.items() if k != "process"})
        request.event("lost", bytes=50)
        it.offset = 150
        it.write(b"abc")
        it.offset = 160
        it.write(b"d")
        it.exit(3)

    serve.on["attach"] = attach
    sandbox = Sandbox()
    again = sandbox.process(1, offset=100)
    assert (again.command, again.number, again.pid) == (("make", "test"), 1, 7)
    assert [(bytes(c), c.offset) for c in again] == [(b"abc", 150), (b"d", 160)]
    assert (again.lost, again.offset, again.wait().exit_code) == (57, 161, 3)
    sent = serve.requests("attach")[0].header
    assert {"sandbox": "sb1", "process": 1, "offset": 100, "follow": True, "hold": False}.items() <= sent.items()
    with pytest.raises(ProcessNotFoundError, match="no process 9"):
        sandbox.process(9)
    serve.on["attach"] = lambda request: request.end(error="no_process")
    with pytest.raises(ProcessNotFoundError, match="no process 1"):
        sandbox.process(1)
    with pytest.raises(ValueError, match="offset is -1"):
        sandbox.process(1, offset=-1)


def test_attach_without_following(serve: FakeServe) -> None:
    serve.on["processes"] = listed

    def attach(request: Request) -> None:
        it = FakeProcess(request)
        it.write(b"abc")
        request.end(running=True, process=1, offset=3)

    serve.on["attach"] = attach
    now = Sandbox().process(1, follow=False)
    assert b"".join(now) == b"abc"
    assert now.poll() is None
    with pytest.raises(SandboxError, match="follow=False"):
        now.wait()
    with pytest.raises(SandboxError, match="follow=False"):
        now.write(b"x")


def test_the_log(serve: FakeServe) -> None:
    def attach(request: Request) -> None:
        it = FakeProcess(request, offset=request.header.get("offset", 4))
        if it.offset < 4:
            request.event("lost", bytes=4 - it.offset)
            it.offset = 4
        it.write(b"abc")
        it.write(b"de", "stderr")
        it.write(b"f")
        request.end(running=True, process=1, offset=10)

    serve.on["attach"] = attach
    sandbox = Sandbox()
    log = sandbox.read_log(1)
    assert (log.data, log.stdout, log.stderr) == (b"abcdef", b"abcf", b"de")
    assert (log.offset, log.next_offset, log.lost, log.running) == (4, 10, 4, True)
    assert {"follow": False, "hold": False, "offset": 0}.items() <= serve.requests("attach")[0].header.items()
    log = sandbox.read_log(1, None)
    assert (log.offset, log.lost, log.data) == (4, 0, b"abcdef")
    log = sandbox.read_log(1, 2, 4)
    assert (log.data, log.offset, log.next_offset, log.lost) == (b"abcd", 4, 8, 2)
    assert serve.disconnected.wait(5)  # and not cancelled, which would kill the process
    assert not serve.requests("cancel")
    with pytest.raises(ValueError, match="limit is -1"):
        sandbox.read_log(1, limit=-1)
    serve.on["attach"] = lambda request: request.end(error="no_process")
    with pytest.raises(ProcessNotFoundError):
        sandbox.read_log(1)


def test_the_log_of_what_has_ended(serve: FakeServe) -> None:
    serve.on["attach"] = process(hello)
    log = Sandbox().read_log(1)
    assert (log.data, log.running, log.next_offset) == (b"outerrmore", False, 10)


def test_closing_wakes_who_waits(serve: FakeServe) -> None:
    serve.on["spawn"] = process(lambda it: it.until("eof"))
    running = Sandbox().spawn(["cat"], stdin="pipe")
    errors: list[str] = []

    def read() -> None:
        try:
            running.wait()
        except SandboxError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    running.close()
    running.close()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()
    assert errors == ["process 1 of sandbox sb1 was let go of"] * 3
    assert serve.disconnected.wait(5)
    assert running.closed


def test_a_dropped_process_lets_go_at_once(serve: FakeServe) -> None:
    serve.on["spawn"] = process(lambda it: it.until("eof"))
    sandbox = Sandbox()
    gc.disable()
    try:
        sandbox.spawn(["cat"], stdin="pipe")
        assert serve.disconnected.wait(5)
    finally:
        gc.enable()
    assert not serve.requests("kill")
    assert not serve.requests("close")


def test_a_process_keeps_its_sandbox(serve: FakeServe) -> None:
    serve.on["spawn"] = process(hello)
    running = Sandbox().spawn("x")
    gc.collect()
    assert b"".join(running) == b"outerrmore"
    assert not serve.requests("close")


def test_a_server_that_dies_is_explained(serve: FakeServe) -> None:
    def act(it: FakeProcess) -> None:
        it.write(b"last words")
        assert serve.child is not None
        serve.child.kill()
        it.request.peer.socket.close()

    serve.on["spawn"] = process(act)
    running = Sandbox().spawn("x")
    reading = iter(running)
    assert next(reading) == b"last words"
    for _ in range(2):
        with pytest.raises(SandboxGoneError, match=r"sandy serve ended \(killed by signal 9\)"):
            next(reading)
    with pytest.raises(SandboxGoneError):
        running.wait()


def test_keyboard_interrupt_interrupts_and_nothing_else(serve: FakeServe) -> None:
    interrupted = threading.Event()

    def act(it: FakeProcess) -> None:
        it.write(b"a")
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        interrupted.wait(5)
        it.write(b"b")
        it.exit()

    serve.on["spawn"] = process(act)
    running = Sandbox().spawn("x")
    with pytest.raises(KeyboardInterrupt):
        for _ in running:
            pass
    interrupted.set()
    assert list(running) == [b"b"]


def test_keyboard_interrupt_in_the_start_cancels_it(serve: FakeServe) -> None:
    cancelled = threading.Event()

    def spawn(request: Request) -> None:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        assert request.next().header["op"] == "cancel"
        cancelled.set()

    serve.on["spawn"] = spawn
    with pytest.raises(KeyboardInterrupt):
        Sandbox().spawn("sleep 100")
    assert cancelled.wait(5)


def test_a_cancelled_start_is_cancelled(serve: FakeServe) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    def spawn(request: Request) -> None:
        begun.set()
        assert request.next().header["op"] == "cancel"
        cancelled.set()

    async def use() -> None:
        task = asyncio.create_task(Sandbox().aspawn("sleep 100"))
        await asyncio.to_thread(begun.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    serve.on["spawn"] = spawn
    asyncio.run(use())
    assert cancelled.wait(5)


@FORKS
def test_forked_children_hold_nothing_and_can_do_nothing(serve: FakeServe) -> None:
    serve.on["spawn"] = process(lambda it: it.until("eof"))
    running = Sandbox().spawn(["cat"], stdin="pipe")
    reader, writer = os.pipe()

    def sockets() -> int:
        names = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
        return sum(os.path.lexists(name) and os.readlink(name).startswith("socket:") for name in names)

    child = os.fork()
    if child == 0:
        try:
            lines = [str(sockets())]
            for call in (running.wait, running.kill, lambda: next(iter(running)), lambda: running.write(b"x")):
                try:
                    call()
                except SandboxGoneError as error:
                    lines.append(str(error).replace(str(os.getppid()), "PARENT"))
            running.close()
            os.write(writer, "\n".join(lines).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        said = pipe.read().splitlines()
    its = "process 1 of sandbox sb1 belongs to process PARENT, of which this one is a fork"
    made = "it belongs to process PARENT, of which this one is a fork: make a new Sandbox here"
    # The server is in this process too, so its ends of the two connections stay.
    assert said == [str(sockets() - 2), its, made, its, its]
    running.close_stdin()  # the parent's is untouched
    assert serve.requests("kill") == []


def new_loops() -> list[Callable[[], asyncio.AbstractEventLoop]]:
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ImportError:
        return [asyncio.new_event_loop]
    return [asyncio.new_event_loop, uvloop.new_event_loop]


@pytest.mark.parametrize("new_loop", new_loops())
def test_asyncio(serve: FakeServe, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    data = os.urandom(1 << 20) * 3

    async def use() -> None:
        serve.on["spawn"] = process(echo)
        async with Sandbox(max_output_bytes=16 << 20) as sandbox:
            running = await sandbox.aspawn(["cat"], stdin="pipe")
            reading = asyncio.create_task(collect(running))
            await running.awrite(data)
            await running.aclose_stdin()
            assert await reading == data
            assert (await running).ok
            assert (await running.await_(1)).ok
            assert (await (await sandbox.aspawn(["cat"], stdin="pipe")).acommunicate(data)).stdout == data
            assert (await (await sandbox.aspawn(["cat"], stdin=data)).acommunicate()).stdout == data
            serve.on["spawn"] = process(lambda it: it.until("eof"))
            async with await sandbox.aspawn(["cat"], stdin="pipe") as held:
                with pytest.raises(TimeoutError, match="still runs"):
                    await held.await_(0.05)
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await held
                task = asyncio.create_task(held.await_())
                await asyncio.sleep(0.05)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await held.asignal(2)
                await held.akill()
            assert held.closed
            serve.on["processes"] = listed
            assert (await held.apoll()) is None
            assert len(await sandbox.alist_processes()) == 1
            serve.on["attach"] = process(hello)
            assert await collect(await sandbox.aprocess(1)) == b"outerrmore"
            assert (await sandbox.aread_log(1)).data == b"outerrmore"
            assert (await held.alog()).data == b"outerrmore"

    async def collect(running: Any) -> bytes:
        return b"".join([chunk async for chunk in running])

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(use())
    assert len(serve.requests("close")) == 1


async def test_cancelled_readers_lose_nothing(serve: FakeServe) -> None:
    def act(it: FakeProcess) -> None:
        for number in range(300):
            it.write(b"%d " % number)
            time.sleep(0.0005)
        it.exit()

    serve.on["spawn"] = process(act)
    running = await Sandbox().aspawn("x")
    got: list[Chunk] = []
    ended = False

    async def read() -> None:
        nonlocal ended
        async for chunk in running:
            got.append(chunk)  # noqa: PERF401 - a cancelled comprehension would lose what it has
        ended = True

    cancelled = 0
    while not ended:
        task = asyncio.create_task(read())
        await asyncio.sleep(0.002)
        cancelled += task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert cancelled > 10
    assert b"".join(got) == b"".join(b"%d " % number for number in range(300))


async def test_a_thread_and_a_task_share_a_process(serve: FakeServe) -> None:
    serve.on["spawn"] = process(echo)
    running = await Sandbox().aspawn(["cat"], stdin="pipe")
    data = os.urandom(1 << 20) * 3
    writing = asyncio.create_task(asyncio.to_thread(running.write, data))
    got = b""
    async for chunk in running:
        got += chunk
        if len(got) == len(data):
            await writing
            await running.aclose_stdin()
    assert got == data
    assert running.wait(1).ok


def test_a_thread_that_dies_leaves_the_process_to_others(serve: FakeServe) -> None:
    serve.on["spawn"] = process(hello)
    held: list[Any] = []
    thread = threading.Thread(target=lambda: held.append(Sandbox().spawn("x")))
    thread.start()
    thread.join(5)
    assert b"".join(held[0]) == b"outerrmore"


def test_a_wait_that_was_woken_before_it_began() -> None:
    parked = _wait.Parked()
    parked.wake()
    parked.wake()
    woken: list[int] = []
    parked.when_woken(lambda: woken.append(1))
    assert woken == [1]


@pytest.mark.parametrize("frame", [{"ev": "stdout"}, {"ev": "stdout", "offset": -1}, {"ev": "credit", "bytes": "x"}])
def test_a_broken_protocol_ends_it(serve: FakeServe, frame: dict[str, Any]) -> None:
    def act(it: FakeProcess) -> None:
        it.request.event(frame["ev"], b"x", **{k: v for k, v in frame.items() if k != "ev"})
        it.until("eof")

    serve.on["spawn"] = process(act)
    running = Sandbox().spawn("x")
    for _ in range(2):
        with pytest.raises(SandboxError):
            running.wait(5)


@FORKS
def test_forked_children_do_not_wait_for_threads_of_their_parent(serve: FakeServe) -> None:
    serve.on["spawn"] = process(lambda it: it.until("eof"))
    running = Sandbox().spawn(["cat"], stdin="pipe")
    held, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with running._channel.lock:
            held.set()
            forked.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(5)
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        calls: list[Callable[[], object]] = [
            lambda: running.offset,
            lambda: running._channel.post({"op": "eof"}),
            lambda: _wait.run(running.feed(b"x")),
            lambda: running.write(b"x"),
            running.close_stdin,
            lambda: running.communicate(b"x"),
            running.wait,
        ]
        told = 0
        for call in calls:
            try:
                call()
            except SandboxGoneError:
                told += 1
        running.abort()
        running.close()
        os._exit(told)
    status = os.waitpid(child, 0)[1]
    forked.set()
    holder.join()
    assert os.waitstatus_to_exitcode(status) == 7
    running.close_stdin()


def test_waits_that_were_given_up_leave_nothing(serve: FakeServe) -> None:
    serve.on["spawn"] = process(lambda it: it.until("eof"))
    running = Sandbox().spawn(["cat"], stdin="pipe")

    def wait() -> None:
        with pytest.raises(SandboxError):
            running.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    while not running._channel._receiving:
        time.sleep(0.001)
    for _ in range(300):
        with pytest.raises(TimeoutError):
            running.wait(0)
    assert len(running._channel._parked) == 0
    assert thread.is_alive()
    running.close()
    thread.join(5)
    assert not thread.is_alive()
