"""What befalls the client of a process: threads that die, interrupts, forks, servers that die."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from fake_process import FORKS, FakeProcess, hello, process
from fake_serve import FakeServe, Request

from sandy import (
    Sandbox,
    SandboxError,
    SandboxGoneError,
    _wait,
)


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
