"""A server of sandboxes: connections to it, which are used again, and what is left of them after fork(2) and at exit."""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from sandy._errors import SandboxGoneError
from sandy._exchange import request, start

if TYPE_CHECKING:
    from sandy._connection import Connection
    from sandy._exchange import Exchange

T = TypeVar("T")

_MAX_IDLE: Final = 32


class Server(ABC):
    """A pool of connections to a running `sandy serve`. Any thread and any event loop may use it."""

    def __init__(self) -> None:
        """Has no connection."""
        self._idle: list[Connection] = []
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()  # idle and in use
        self._lock = threading.Lock()
        self._gone: str | None = None

    @abstractmethod
    def _connect(self) -> Connection:
        """A further connection.

        Raises:
            SandboxGoneError: If the server is gone.
        """

    @property
    def usable(self) -> bool:
        """Whether it runs, as far as is known here."""
        return self._gone is None

    @abstractmethod
    def explained(self, error: SandboxGoneError) -> SandboxGoneError:
        """The error with what is known of the server's end."""

    @abstractmethod
    def shut_down(self) -> None:
        """Lets go of it when this process ends."""

    def run(self, exchange: Exchange[T]) -> T:
        """Runs an exchange on a connection of its own, blocking.

        Raises:
            SandboxGoneError: If this process was forked, or the server is gone, or went while it ran.
        """
        connection = self._take()
        try:
            result = connection.run(exchange)
        except SandboxGoneError as error:
            connection.close()
            raise self.explained(error) from error
        except BaseException:
            # Also KeyboardInterrupt: closing cancels the request, so nothing goes on running for nobody.
            connection.close()
            raise
        self.give(connection)
        return result

    async def arun(self, exchange: Exchange[T]) -> T:
        """Runs an exchange on a connection of its own in the running event loop.

        Raises:
            SandboxGoneError: As for `run`.
        """
        connection = self._take()
        try:
            result = await connection.arun(exchange)
        except SandboxGoneError as error:
            await connection.aclose()
            raise self.explained(error) from error
        except BaseException:
            # Also asyncio.CancelledError.
            await connection.aclose()
            raise
        self.give(connection)
        return result

    def hold(self, exchange: Exchange[T], *, cancel: bool) -> tuple[Connection, T]:
        """As `run`, for an exchange that leaves its last request open: the caller keeps the connection, and may `give` it back.

        Args:
            exchange: What to run.
            cancel: Whether closing the connection is not enough to end what an interrupted exchange has started.

        Raises:
            SandboxGoneError: As for `run`.
        """
        connection = self._take()
        try:
            return connection, connection.run(exchange)
        except SandboxGoneError as error:
            connection.close()
            raise self.explained(error) from error
        except BaseException:
            if cancel:
                connection.cancel()
            connection.close()
            raise

    async def ahold(self, exchange: Exchange[T], *, cancel: bool) -> tuple[Connection, T]:
        """As `hold`, in the running event loop."""
        connection = self._take()
        try:
            return connection, await connection.arun(exchange)
        except SandboxGoneError as error:
            await connection.aclose()
            raise self.explained(error) from error
        except BaseException:
            if cancel:
                connection.cancel()
            await connection.aclose()
            raise

    def give(self, connection: Connection) -> None:
        """Takes back a connection that has no open request."""
        with self._lock:
            if self._gone is None and len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close_in_background(self, sandbox: str) -> None:
        """Closes a sandbox as `in_background` does it."""
        self.in_background(lambda: request(start("close", sandbox=sandbox)))

    def in_background(self, make: Callable[[], Exchange[object]]) -> None:
        """Runs an exchange without waiting for it and without taking a lock: callable from garbage collection."""
        if self._gone is not None or sys.is_finalizing():
            return
        # Not threading.Thread: its start() takes locks that the interrupted code may hold.
        with contextlib.suppress(RuntimeError):
            _thread.start_new_thread(self._run_quietly, (make,))

    def abandon(self) -> None:
        """Lets go of everything in a forked child; the parent keeps using its own copies."""
        # A lock may have been held by a thread that the child does not have.
        self._lock = threading.Lock()
        self._drop(f"it belongs to process {os.getppid()}, of which this one is a fork: make a new Sandbox here")
        # Also those in use: while this process has them, nobody learns that the parent has closed them.
        for connection in list(self._connections):
            connection.close()

    def _drop(self, reason: str) -> bool:
        """Closes what is idle, and has requests fail from now on; whether it is the first time."""
        with self._lock:
            first = self._gone is None
            if first:
                self._gone = reason
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        return first

    def _take(self) -> Connection:
        with self._lock:
            if self._gone is not None:
                raise SandboxGoneError(self._gone)
            if self._idle:
                return self._idle.pop()
        connection = self._connect()
        with self._lock:
            self._connections.add(connection)
        return connection

    def _run_quietly(self, make: Callable[[], Exchange[object]]) -> None:
        with contextlib.suppress(Exception):  # nobody is there to be told
            self.run(make())
