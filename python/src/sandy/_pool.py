"""Sandboxes that are ready before somebody wants them."""

from __future__ import annotations

import _thread
import os
import threading
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar

from sandy import _wait
from sandy._arguments import check_count
from sandy._closing import Closing
from sandy._errors import SandboxError, SandboxGoneError, SandboxStartError
from sandy._progress import Progress
from sandy._sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandy._wait import Operation

S = TypeVar("S", bound=Sandbox)

MAX_SIZE: Final = 4096
DEFAULT_CONCURRENCY: Final = 4


class _Filler(Generic[S]):
    """The sandboxes that are ready, and the threads that start more of them; these end when there are enough."""

    def __init__(self, make: Callable[[], S], size: int, concurrency: int) -> None:
        self._make = make
        self._size = size
        self._concurrency = concurrency
        self._lock = threading.RLock()  # a signal handler may use it while the interrupted code does
        self._ready: deque[S] = deque()
        self._starting = 0
        self._error: Exception | None = None
        self._waiting = _wait.Lot(self._lock)
        self._progress: Progress | None = Progress("starting sandboxes", size)  # of the first filling
        self._pid = os.getpid()
        self.closed = False

    @property
    def ready(self) -> int:
        return len(self._ready)

    def fill(self) -> None:
        """Starts what is missing, in threads of its own."""
        with self._lock:
            missing = 0 if self.closed else self._size - len(self._ready) - self._starting
            threads = max(0, min(missing, self._concurrency - self._starting))
            self._starting += threads
        for started in range(threads):
            try:
                # Not threading.Thread, whose start() waits until the new one runs, and that one does not soon let go of the GIL.
                _thread.start_new_thread(self._start_some, ())
            except RuntimeError as error:  # no more threads, or the interpreter ends
                with self._lock:
                    self._starting -= threads - started
                    self._error = error
                    self._waiting.wake()
                return

    def take(self) -> Operation[S]:
        """The next sandbox; the caller has to fill() then.

        Raises:
            SandboxError: If the pool is closed, or a sandbox could not start.
        """
        while True:
            if os.getpid() != self._pid:
                msg = f"the pool belongs to process {self._pid}, of which this one is a fork: make a new SandboxPool here"
                raise SandboxGoneError(msg)
            with self._lock:
                if self.closed:
                    msg = "the pool is closed"
                    raise SandboxError(msg)
                sandbox = self._pop()
                error, self._error = (None, self._error) if sandbox is not None else (self._error, None)
                parked = self._waiting.park() if sandbox is None and error is None else None
            if error is not None:
                raise error
            if sandbox is not None:
                return sandbox
            if parked is not None:
                self.fill()
                yield from self._waiting.wait(parked)

    def shut(self) -> list[S]:
        """Starts no more, and gives out no more; what was ready is the caller's to close."""
        if os.getpid() != self._pid:
            return []  # after fork(2) the lock may be held by a thread that is not there, and the sandboxes are the parent's
        with self._lock:
            self.closed = True
            ready = list(self._ready)
            self._ready.clear()
            self._show_progress()
            self._waiting.wake()
        return ready

    def drop(self) -> None:
        """As `shut`, without a lock, and closes what was ready without waiting: garbage collection may come while any is held."""
        self.closed = True
        self._ready.clear()

    def settled(self) -> Operation[None]:
        """Waits until none is starting any more."""
        while os.getpid() == self._pid:
            with self._lock:
                if not self._starting:
                    return
                parked = self._waiting.park()
            yield from self._waiting.wait(parked)

    def _pop(self) -> S | None:
        while self._ready:
            sandbox = self._ready.popleft()
            if sandbox._alive():  # noqa: SLF001 - its own package
                return sandbox
        return None

    def _start_some(self) -> None:
        """Starts one after the other until there are enough, or one fails; the next call of take() tries again."""
        failed: BaseException | None = None
        try:
            while self._start_one():
                pass
        except BaseException as error:  # noqa: BLE001 - whatever it is, take() raises it
            failed = error
        finally:
            with self._lock:
                self._starting -= 1
                if failed is not None:
                    self._error = failed if isinstance(failed, Exception) else _wrapped(failed)
                self._show_progress()
                self._waiting.wake()

    def _start_one(self) -> bool:
        """Starts one; whether more are missing."""
        sandbox = self._make()
        with self._lock:
            kept = not self.closed
            if kept:
                self._ready.append(sandbox)
            self._show_progress()
            self._waiting.wake()
            more = kept and len(self._ready) + self._starting <= self._size
        if not kept:
            _close_quietly(sandbox)
        return more

    def _show_progress(self) -> None:
        progress = self._progress
        if progress is None:
            return
        if self._error is not None or self.closed or len(self._ready) >= self._size:
            self._progress = None
            progress.end()
        else:
            progress.update(len(self._ready))


class BasePool(Closing, Generic[S]):
    """A pool of any class of sandboxes; a subclass names it."""

    _make: ClassVar[Callable[..., Any]]

    def __init__(self, size: int, *, concurrency: int = DEFAULT_CONCURRENCY, **arguments: Any) -> None:  # noqa: ANN401 - passed on
        """Begins to start sandboxes, and returns at once.

        Args:
            size: How many are to be ready, 1 to 4096.
            concurrency: How many are started at a time.
            arguments: Those of `Sandbox`, the same for all. With `wall_time` its life counts from its start, in the pool.

        Raises:
            TypeError: If a number is none.
            ValueError: If it is out of range.
        """
        for name, value in (("size", check_count("size", size)), ("concurrency", check_count("concurrency", concurrency))):
            if not 1 <= value <= MAX_SIZE:
                msg = f"{name} is {value}: it must be from 1 to {MAX_SIZE}"
                raise ValueError(msg)
        make = type(self)._make
        self._size = size
        self._filler: _Filler[S] = _Filler(lambda: make(**arguments), size, concurrency)
        self._finalizer = weakref.finalize(self, self._filler.drop)
        # At exit the server's end takes all sandboxes at once.
        self._finalizer.atexit = False
        self._filler.fill()

    @property
    def size(self) -> int:
        """How many are to be ready."""
        return self._size

    @property
    def ready(self) -> int:
        """How many are ready now."""
        return self._filler.ready

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._filler.closed

    def __repr__(self) -> str:
        """Says how many are ready."""
        return f"<{type(self).__qualname__} {self.ready} of {self._size} ready{', closed' if self.closed else ''}>"

    def get(self, timeout: float | None = None) -> S:
        """A sandbox that nobody has used. It is the caller's, who closes it; another one is started in its place.

        Args:
            timeout: Seconds to wait where none is ready; None is for ever.

        Raises:
            TimeoutError: If none was ready in that time.
            SandboxStartError: If one could not start. The next call tries again.
            SandboxError: If the pool is closed.
        """
        end = None if timeout is None else time.monotonic() + timeout
        left = timeout
        while True:
            try:
                sandbox = _wait.run(self._filler.take(), left)
            except TimeoutError:
                raise TimeoutError(_none_ready(timeout)) from None
            with _Taken(sandbox, self._filler) as taken:
                taken.alive = sandbox._serve.run(sandbox._ask_alive())  # noqa: SLF001 - its own package
            if taken.alive:
                return sandbox
            left = None if end is None else max(0.0, end - time.monotonic())

    async def aget(self, timeout: float | None = None) -> S:  # noqa: ASYNC109 - the twin of get()
        """As `get`."""
        end = None if timeout is None else time.monotonic() + timeout
        left = timeout
        while True:
            try:
                sandbox = await _wait.arun(self._filler.take(), left)
            except TimeoutError:
                raise TimeoutError(_none_ready(timeout)) from None
            with _Taken(sandbox, self._filler) as taken:
                taken.alive = await sandbox._serve.arun(sandbox._ask_alive())  # noqa: SLF001 - its own package
            if taken.alive:
                return sandbox
            left = None if end is None else max(0.0, end - time.monotonic())

    def close(self) -> None:
        """Closes those that are ready or starting; those that were given out are their users'. May be called again."""
        for sandbox in self._filler.shut():
            sandbox.close()
        _wait.run(self._filler.settled())

    async def aclose(self) -> None:
        """As `close`."""
        for sandbox in self._filler.shut():
            await sandbox.aclose()
        await _wait.arun(self._filler.settled())


class SandboxPool(BasePool[Sandbox]):
    r"""Hands out sandboxes that are started already, clean ones: each is new, and was used by nobody.

    For evals and rollouts that want many, one after the other. Threads and event loops may share it; a forked child can't use it.
    It starts sandboxes in threads.

    Example:
        >>> from sandy import SandboxPool
        >>> with SandboxPool(2, open_files=1024) as pool:
        ...     with pool.get() as sandbox:
        ...         sandbox.run("echo clean").stdout
        b'clean\n'
    """

    _make = Sandbox


class _Taken:
    """A sandbox of the pool while its server is asked whether it runs: closed, without waiting for that, unless it does.

    Only then is another one started: a server that starts one answers nothing else for some milliseconds.
    """

    def __init__(self, sandbox: Sandbox, filler: _Filler[Any]) -> None:
        self._sandbox = sandbox
        self._filler = filler
        self.alive = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not self.alive:
            self._sandbox._finalizer()  # noqa: SLF001 - its own package
        self._filler.fill()
        return isinstance(error, SandboxGoneError)


def _none_ready(timeout: float | None) -> str:
    return f"no sandbox was ready within {timeout:g} s"


def _wrapped(error: BaseException) -> SandboxStartError:
    """What was to end the thread that it came in is not to end the thread of who wants a sandbox."""
    wrapped = SandboxStartError("a sandbox of the pool", f"its start was ended by {error!r}")
    wrapped.__cause__ = error
    return wrapped


def _close_quietly(sandbox: Sandbox) -> None:
    try:
        sandbox.close()
    except SandboxError:
        return  # its server is gone, and it with that
