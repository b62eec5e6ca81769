"""Operations that wait, written once for threads and for asyncio.

An operation is a generator that yields what it waits for: that a socket is `Ready`, or that another thread or task has done
something (`Parked`). Whoever runs it blocks, or awaits, and goes on with it. Where the wait ends early (a time limit, a cancelled
task, KeyboardInterrupt) the generator is closed, and its `finally` clauses give back what it held.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")


class Ready(NamedTuple):
    """That a descriptor can be read from, or written to: whichever comes first of what is asked for."""

    descriptor: int
    read: bool
    write: bool


class Parked:
    """That another one has made progress; woken once, from any thread, also before anybody waits."""

    def __init__(self) -> None:
        """Begins asleep."""
        self._lock = threading.Lock()
        self._woken = False
        self._waker: Callable[[], object] | None = None

    def wake(self) -> None:
        """Ends the wait."""
        with self._lock:
            self._woken = True
            waker, self._waker = self._waker, None
        if waker is not None:
            waker()

    def when_woken(self, waker: Callable[[], object]) -> None:
        """Has `waker` called once, at once if it is awake already."""
        with self._lock:
            if not self._woken:
                self._waker = waker
                return
        waker()


Operation: TypeAlias = Generator[Ready | Parked, None, T]


class Lot:
    """Those that wait for the same thing. Its owner's lock is held in all but `wait`, which takes it."""

    def __init__(self, lock: AbstractContextManager[object]) -> None:
        """Nobody waits.

        Args:
            lock: The owner's; one that can be taken again by the thread that has it.
        """
        self._lock = lock
        self._parked: dict[Parked, None] = {}

    def __len__(self) -> int:
        """How many wait."""
        return len(self._parked)

    def park(self) -> Parked:
        """Joins those that wait; `wait` has to follow."""
        parked = Parked()
        self._parked[parked] = None
        return parked

    def wait(self, parked: Parked) -> Operation[None]:
        """Waits, and leaves however that ends."""
        try:
            yield parked
        finally:
            with self._lock:
                self._parked.pop(parked, None)

    def wake(self) -> None:
        """Wakes all."""
        for parked in list(self._parked):
            self._parked.pop(parked, None)
            parked.wake()


def run(operation: Operation[T], timeout: float | None = None) -> T:
    """Runs an operation to its end, blocking.

    Args:
        operation: What to run.
        timeout: Seconds it may wait; None is for ever, 0 not at all.

    Raises:
        TimeoutError: If it has to wait for longer.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    try:
        wait = next(operation)
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not _block(wait, left):
                raise TimeoutError
            wait = next(operation)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        operation.close()


async def arun(operation: Operation[T], timeout: float | None = None) -> T:  # noqa: ASYNC109 - of the wait, as for run()
    """Runs an operation to its end in the running event loop.

    Raises:
        TimeoutError: As for `run`.
    """
    try:
        async with asyncio.timeout(timeout):
            wait = next(operation)
            while True:
                await _await(wait)
                wait = next(operation)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        operation.close()


def _block(wait: Ready | Parked, seconds: float | None) -> bool:
    """Whether it came within so many seconds."""
    if isinstance(wait, Parked):
        woken = threading.Event()
        wait.when_woken(woken.set)
        return woken.wait(seconds)
    poll = select.poll()
    poll.register(wait.descriptor, (select.POLLIN if wait.read else 0) | (select.POLLOUT if wait.write else 0))
    # Rounded up: a wait that ends just before its deadline would be followed by many without any.
    return bool(poll.poll(None if seconds is None else int(seconds * 1000) + 1 if seconds else 0))


async def _await(wait: Ready | Parked) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def done() -> None:
        if not future.done():
            future.set_result(None)

    if isinstance(wait, Parked):

        def waker() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits in it
                loop.call_soon_threadsafe(done)

        wait.when_woken(waker)
        await future
        return
    # Not loop.sock_recv(): when its task is cancelled, what it has read already may be lost. This reads nothing.
    try:
        if wait.read:
            loop.add_reader(wait.descriptor, done)
        if wait.write:
            loop.add_writer(wait.descriptor, done)
        await future
    finally:
        if wait.read:
            loop.remove_reader(wait.descriptor)
        if wait.write:
            loop.remove_writer(wait.descriptor)
