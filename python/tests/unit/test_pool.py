from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from fake_serve import FakeServe, Request

import deepagents_sandbox
from sandy import PolicyError, Sandbox, SandboxError, SandboxGoneError, SandboxPool, SandboxStartError, _progress

FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def until(condition: Callable[[], object], seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


def created(request: Request, number: int) -> None:
    request.end(b"/workspace/home", sandbox=f"sb{number}", degraded=[], args=[10, 5])


class Starts:
    """Starts of sandboxes that last until they are told to go on."""

    def __init__(self, serve: FakeServe) -> None:
        self.lock = threading.Lock()
        self.now = self.most = self.all = 0
        self.go_on = threading.Event()
        serve.on["create"] = self.create

    def create(self, request: Request) -> None:
        with self.lock:
            self.now += 1
            self.all += 1
            number = self.all
            self.most = max(self.most, self.now)
        self.go_on.wait(5)
        with self.lock:
            self.now -= 1
        created(request, number)


def test_each_is_new_and_another_one_takes_its_place(serve: FakeServe) -> None:
    with SandboxPool(3, open_files=7) as pool:
        until(lambda: pool.ready == 3)
        assert repr(pool) == "<SandboxPool 3 of 3 ready>"
        got = [pool.get(5) for _ in range(10)]
        assert len({sandbox.id for sandbox in got}) == 10
        assert {type(sandbox) for sandbox in got} == {Sandbox}
        until(lambda: pool.ready == 3)
        assert len(serve.requests("create")) == 13
        assert b'"open_files":7' in serve.requests("create")[0].args[0].replace(b" ", b"")
        for sandbox in got:
            sandbox.close()
        assert len(serve.requests("close")) == 10
    assert pool.closed
    assert len(serve.requests("close")) == 13
    pool.close()


def test_backends_for_deepagents(serve: FakeServe) -> None:
    with deepagents_sandbox.SandboxPool(1) as pool, pool.get(5) as backend:
        assert type(backend) is deepagents_sandbox.Sandbox


def test_so_many_at_a_time(serve: FakeServe) -> None:
    starts = Starts(serve)
    with SandboxPool(10, concurrency=3) as pool:
        until(lambda: starts.now == 3)
        time.sleep(0.05)
        assert starts.all == 3
        starts.go_on.set()
        until(lambda: pool.ready == 10)
        assert (starts.most, starts.all) == (3, 10)


def test_get_waits_and_gives_up(serve: FakeServe) -> None:
    starts = Starts(serve)
    with SandboxPool(1) as pool:
        with pytest.raises(TimeoutError, match=r"no sandbox was ready within 0\.05 s"):
            pool.get(0.05)
        with pytest.raises(TimeoutError):
            pool.get(0)
        got: list[Sandbox] = []
        threads = [threading.Thread(target=lambda: got.append(pool.get(5))) for _ in range(4)]
        for thread in threads:
            thread.start()
        starts.go_on.set()
        for thread in threads:
            thread.join(5)
        assert len({sandbox.id for sandbox in got}) == 4


@pytest.mark.parametrize(("word", "error"), [("start", SandboxStartError), ("policy", PolicyError)])
def test_errors_of_the_start_reach_get_and_the_next_tries_again(serve: FakeServe, word: str, error: type[Exception]) -> None:
    serve.on["create"] = lambda request: request.end(error=word, detail="no: not here")
    with SandboxPool(2, concurrency=1) as pool:
        with pytest.raises(error, match="no: not here"):
            pool.get(5)
        time.sleep(0.05)
        assert len(serve.requests("create")) == 1  # nobody asks, and nothing is tried
        with pytest.raises(error, match="no: not here"):
            pool.get(5)
        del serve.on["create"]
        assert pool.get(5).id == "sb1"


def test_wrong_arguments_reach_get(serve: FakeServe) -> None:
    with SandboxPool(1, memory=True) as pool, pytest.raises(TypeError, match="memory"):
        pool.get(5)
    for size in (0, 5000):
        with pytest.raises(ValueError, match=f"size is {size}"):
            SandboxPool(size)
    with pytest.raises(TypeError, match="size must be"):
        SandboxPool("3")  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_what_ends_the_starting_thread_hangs_nobody(serve: FakeServe, error: BaseException) -> None:
    pool = SandboxPool(2, concurrency=1)
    until(lambda: pool.ready == 2)

    def fail() -> Sandbox:
        raise error

    make, pool._filler._make = pool._filler._make, fail
    pool.get(5).close()
    pool.get(5).close()
    with pytest.raises(SandboxStartError, match=type(error).__name__) as raised:
        pool.get(5)
    assert raised.value.__cause__ is error
    until(lambda: pool._filler._starting == 0)
    pool._filler._make = make
    # That of the thread which the last get() before the error has started may still be there.
    with contextlib.suppress(SandboxStartError):
        pool.get(5).close()
    pool.get(5).close()
    ended = threading.Thread(target=pool.close, daemon=True)
    ended.start()
    ended.join(5)
    assert not ended.is_alive()


def test_waits_that_were_given_up_leave_nothing(serve: FakeServe) -> None:
    starts = Starts(serve)
    with SandboxPool(1) as pool:
        for _ in range(20):
            with pytest.raises(TimeoutError):
                pool.get(0)
        assert len(pool._filler._waiting) == 0
        starts.go_on.set()


def test_close_waits_for_those_that_start(serve: FakeServe) -> None:
    starts = Starts(serve)
    pool = SandboxPool(2)
    until(lambda: starts.now == 2)
    errors: list[str] = []

    def get() -> None:
        try:
            pool.get(5)
        except SandboxError as error:
            errors.append(str(error))

    thread = threading.Thread(target=get)
    thread.start()
    threading.Timer(0.1, starts.go_on.set).start()
    pool.close()
    thread.join(5)
    assert errors == ["the pool is closed"]
    assert len(serve.requests("close")) == 2
    with pytest.raises(SandboxError, match="the pool is closed"):
        pool.get()


def test_a_dropped_pool_leaves_nothing(serve: FakeServe) -> None:
    pools = [SandboxPool(2)]
    until(lambda: pools[0].ready == 2)
    pools.clear()
    gc.collect()
    until(lambda: len(serve.requests("close")) == 2)


def test_a_pool_is_dropped_while_its_lock_is_held(serve: FakeServe) -> None:
    pools = [SandboxPool(2)]
    until(lambda: pools[0].ready == 2)

    def drop() -> None:
        with lock:
            pools.clear()
            gc.collect()

    lock = pools[0]._filler._lock
    thread = threading.Thread(target=drop, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()
    until(lambda: len(serve.requests("close")) == 2)


def test_a_pool_is_dropped_while_another_thread_holds_its_lock(serve: FakeServe) -> None:
    pools = [SandboxPool(2)]
    until(lambda: pools[0].ready == 2)
    with pools[0]._filler._lock:
        thread = threading.Thread(target=pools.clear, daemon=True)
        thread.start()
        thread.join(5)
        assert not thread.is_alive()
    until(lambda: len(serve.requests("close")) == 2)


def test_sandboxes_whose_server_died_are_not_given_out(serve: FakeServe) -> None:
    with SandboxPool(2) as pool:
        until(lambda: pool.ready == 2)
        assert serve.child is not None
        serve.child.kill()
        serve.child.wait()
        sandbox = pool.get(5)
        assert sandbox.id not in ("sb1", "sb2")
        assert sandbox.execute("true").exit_code == 0


def dead(serve: FakeServe, *names: str) -> None:
    """Has sandboxes end by themselves, as when somebody has killed them."""

    def describe(request: Request) -> None:
        if request.header["sandbox"] in names:
            request.end(error="gone", detail="the sandbox ended: its agent is gone")
        else:
            request.end()

    serve.on["describe"] = describe


def test_sandboxes_that_died_are_not_given_out(serve: FakeServe) -> None:
    with SandboxPool(3, concurrency=1) as pool:
        until(lambda: pool.ready == 3)
        dead(serve, "sb1", "sb2")
        got = pool.get(5)
        assert got.id == "sb3"
        until(lambda: pool.ready == 3)
        until(lambda: {request.header["sandbox"] for request in serve.requests("close")} == {"sb1", "sb2"})
        dead(serve, "sb4", "sb5", "sb6", "sb7", "sb8", "sb9")
        assert pool.get(5).id == "sb10"


async def test_sandboxes_that_died_are_not_given_out_in_asyncio(serve: FakeServe) -> None:
    async with SandboxPool(3, concurrency=1) as pool:
        until(lambda: pool.ready == 3)
        dead(serve, "sb1", "sb2")
        assert (await pool.aget(5)).id == "sb3"


def test_time_limits_hold_when_all_have_died(serve: FakeServe) -> None:
    with SandboxPool(2) as pool:
        until(lambda: pool.ready == 2)
        starts = Starts(serve)
        dead(serve, "sb1", "sb2")
        with pytest.raises(TimeoutError, match=r"no sandbox was ready within 0\.1 s"):
            pool.get(0.1)
        starts.go_on.set()


async def test_one_that_was_taken_when_its_task_was_cancelled_is_closed(serve: FakeServe) -> None:
    async with SandboxPool(1) as pool:
        until(lambda: pool.ready == 1)
        asked = threading.Event()
        serve.on["describe"] = lambda request: asked.set()
        task = asyncio.create_task(pool.aget())
        await asyncio.to_thread(asked.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(until, lambda: [request.header["sandbox"] for request in serve.requests("close")] == ["sb1"])


async def test_asyncio(serve: FakeServe) -> None:
    async with SandboxPool(2) as pool:
        got = await asyncio.gather(*(pool.aget(5) for _ in range(6)))
        assert len({sandbox.id for sandbox in got}) == 6
        starts = Starts(serve)
        until(lambda: starts.now or pool.ready == 2)
        for _ in range(pool.ready):
            await pool.aget(1)
        with pytest.raises(TimeoutError, match="no sandbox was ready"):
            await pool.aget(0.05)
        task = asyncio.create_task(pool.aget())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        starts.go_on.set()
        assert (await pool.aget(5)).id
    assert pool.closed


@FORKS
def test_a_forked_child_cannot_use_it(serve: FakeServe) -> None:
    with SandboxPool(1) as pool:
        until(lambda: pool.ready == 1)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                pool.get(1)
            except SandboxGoneError as error:
                os.write(writer, str(error).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(writer)
        with open(reader, encoding="utf-8") as pipe:
            assert (
                pipe.read()
                == f"the pool belongs to process {os.getpid()}, of which this one is a fork: make a new SandboxPool here"
            )
        assert pool.get(5).id == "sb1"


@FORKS
def test_a_forked_child_can_close_it(serve: FakeServe) -> None:
    starts = Starts(serve)
    with SandboxPool(1) as pool:
        until(lambda: starts.now)
        with pool._filler._lock:
            child = os.fork()
            if child == 0:
                signal.alarm(5)
                pool.close()
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        starts.go_on.set()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_only(serve: FakeServe, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: dict[type, str] = {}
    for kind, patience in ((Terminal, 0.0), (io.StringIO, 0.0), (Terminal, 60.0)):
        monkeypatch.setattr(_progress, "PATIENCE", patience)
        stream: Any = kind()
        monkeypatch.setattr(sys, "stderr", stream)
        with SandboxPool(3, concurrency=1) as pool:
            while pool.ready < 3:
                time.sleep(0.002)
            time.sleep(0.02)
        if patience:
            assert stream.getvalue() == ""
        else:
            shown[kind] = stream.getvalue()
    line = "\r\x1b[Ksandy: starting sandboxes: {} of 3"
    assert shown == {Terminal: line.format(1) + line.format(2) + "\r\x1b[K", io.StringIO: ""}
