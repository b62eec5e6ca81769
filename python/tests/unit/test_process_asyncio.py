"""A process in event loops."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from fake_process import FakeProcess, echo, hello, listed, process
from fake_serve import FakeServe

from sandy import (
    Chunk,
    Sandbox,
)


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
