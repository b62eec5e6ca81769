"""A request that stays open, and that several threads and tasks use at once: one reads its events, another sends, one closes it.

One of them at a time has the turn to receive, and takes events for all; the others wait until it has taken what they want, or has
left. The same goes for sending what the socket does not take at once. What is received or sent is so in one step, which is not
interrupted by a cancelled task; where a signal's exception comes in its midst all the same, the channel says so from then on.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn

from sandy._errors import SandboxError, SandboxGoneError
from sandy._wait import Lot, Operation, Parked, Ready

if TYPE_CHECKING:
    from sandy._connection import Connection
    from sandy._server import Server
    from sandy._wire import Frame


class Channel:
    """The open request of a connection. Attributes are read by its owner, under `lock` where it matters.

    Attributes:
        lock: Guards what events change.
        ended: The frame that ended the request, or None.
    """

    def __init__(self, serve: Server, connection: Connection, name: str, on_event: Callable[[Channel, Frame], None]) -> None:
        """Takes over a connection whose newest request is open.

        Args:
            serve: The server that it came from, and goes back to when the request has ended.
            connection: The connection.
            name: What it is for, in errors.
            on_event: Gets each event but the end, under the lock, with the channel.
        """
        self.lock = threading.RLock()  # a signal handler may use it while the interrupted code does
        self.ended: Frame | None = None
        self._serve = serve
        self._connection = connection
        self._name = name
        self._on_event = on_event
        self._pid = os.getpid()
        self._out: deque[memoryview] = deque()
        self._queued = 0  # bytes of frames since the start
        self._sent = 0
        self._receiving = False
        self._writing = False
        self._parked = Lot(self.lock)
        self._between = False  # in the midst of a frame
        self._closed = False
        self._left = False  # the connection is somebody else's, or closed
        self._failure: SandboxGoneError | None = None

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def close(self) -> None:
        """Lets go of the connection; those who wait get an error."""
        if os.getpid() != self._pid:
            return  # after fork(2) the lock may be held by a thread that is not there
        with self.lock:
            self._closed = True
            self._leave()
            if not self._left:
                self._connection.shut_down()
            self._parked.wake()

    def receive_until(self, done: Callable[[], bool]) -> Operation[None]:
        """Takes events until `done`, asked under the lock, says so, or the request has ended.

        Raises:
            SandboxGoneError: If the server went away, or this process is a fork.
            SandboxError: If the channel is closed.
        """
        mine = False
        try:
            while True:
                parked: Parked | None = None
                self.check_process()
                with self.lock:
                    if done() or self.ended is not None:
                        return
                    self._check()
                    if mine or not self._receiving:
                        mine = self._receiving = True
                        if self._receive_one():
                            continue
                    elif self._flush() or self._writing:
                        parked = self._parked.park()
                if parked is not None:
                    yield from self._parked.wait(parked)
                else:
                    # Who receives may have gone to sleep before there was anything to send: then it is for this one.
                    yield from self._wait_for_socket(read=mine)
        finally:
            if mine:
                with self.lock:
                    self._receiving = False
                    self._leave()
                    self._parked.wake()

    def check_process(self) -> None:
        """Has to come before the lock is taken: after fork(2) it may be held by a thread that is not there.

        Raises:
            SandboxGoneError: If this process is a fork.
        """
        if os.getpid() != self._pid:
            msg = f"{self._name} belongs to process {self._pid}, of which this one is a fork"
            raise SandboxGoneError(msg)

    def post(self, fields: Mapping[str, object], *payload: bytes | memoryview) -> None:
        """Sends a frame of the request, or as much of it as the socket takes now: the rest goes with whatever is done next.

        Raises:
            SandboxGoneError: If this process is a fork.
        """
        self.check_process()
        with self.lock:
            if self.ended is not None or self._closed or self._failure is not None:
                return
            size = sum(map(len, payload))
            for buffer in (self._connection.prefix(fields, size), *payload):
                if buffer:  # an empty one would never be sent
                    self._queued += len(buffer)
                    self._out.append(memoryview(buffer))
            self._flush()

    def flush(self) -> Operation[None]:
        """Waits until the socket has taken all frames that were posted so far.

        Raises:
            SandboxGoneError: As for `receive_until`.
            SandboxError: As for `receive_until`.
        """
        mark = self._queued

        def sent() -> bool:
            self._flush()
            return self._sent >= mark

        # Receiving meanwhile: a server that is stuck with its own output would not take ours.
        yield from self.receive_until(sent)

    def _wait_for_socket(self, *, read: bool) -> Operation[None]:
        """Waits for what can be received, or sent if nobody else waits for that."""
        writes = False
        try:
            with self.lock:
                if not self._flush() and not self._writing:
                    writes = self._writing = True
            if read or writes:
                yield Ready(self._connection.fileno(), read=read, write=writes)
        finally:
            if writes:
                with self.lock:
                    self._writing = False
                    self._leave()
                    self._parked.wake()

    def _receive_one(self) -> bool:
        """Takes the next frame; whether there was one."""
        self._between = True
        try:
            frame = self._connection.receive_now()
        except SandboxGoneError as error:
            self._between = False
            self._fail(error)
        if frame is not None:
            if frame.header.get("ev") == "end":
                self.ended = frame
            else:
                self._on_event(self, frame)
            self._parked.wake()
        self._between = False
        return frame is not None

    def _flush(self) -> bool:
        """Sends what the socket takes; whether that is all."""
        while self._out:
            self._between = True
            try:
                taken = self._connection.send_now(self._out)
            except SandboxGoneError:
                # What the server said last is still to be received; that it is gone is found there.
                self._out.clear()
                self._sent = self._queued
                taken = 0
            if not taken:
                self._between = False
                return not self._out
            self._sent += taken
            while taken:
                buffer = self._out.popleft()
                if len(buffer) > taken:
                    self._out.appendleft(buffer[taken:])
                    taken = 0
                else:
                    taken -= len(buffer)
            self._between = False
        return True

    def _fail(self, error: SandboxGoneError) -> NoReturn:
        explained = self._serve.explained(error)
        self._failure = explained
        self._connection.shut_down()
        self._parked.wake()
        raise explained from error

    def _check(self) -> None:
        if self._closed:
            msg = f"{self._name} was let go of"
            raise SandboxError(msg)
        if self._failure is not None:
            raise SandboxGoneError(*self._failure.args)
        if self._between:
            msg = f"{self._name} was interrupted in the midst of a message: attach to it again"
            raise SandboxError(msg)

    def _leave(self) -> None:
        """Gives the connection back, or closes it, when nobody uses it any more."""
        if self._left or self._receiving or self._writing:
            return
        if self._closed or self._failure is not None or self._between:
            self._left = True
            self._connection.close()
        elif self.ended is not None:
            self._left = True
            if self._out:
                self._connection.close()
            else:
                self._serve.give(self._connection)
