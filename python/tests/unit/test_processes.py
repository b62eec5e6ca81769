"""The processes of a sandbox: the list, attaching again, the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from fake_process import END, STARTED, FakeProcess, hello, listed, process
from fake_serve import FakeServe, Request

from sandy import (
    ProcessNotFoundError,
    Sandbox,
    SandboxError,
)


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
