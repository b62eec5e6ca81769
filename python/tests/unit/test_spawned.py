"""A process: its output, its input, its end."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from fake_process import END, WINDOW, FakeProcess, echo, hello, process
from fake_serve import FakeServe

from sandy import (
    Chunk,
    CommandNotStartedError,
    Sandbox,
    SandboxError,
    SandboxGoneError,
)


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
