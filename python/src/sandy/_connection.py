"""One connection to `sandy serve`: a Unix stream socket that carries one request at a time."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import struct
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from sandy._errors import ProtocolError, SandboxGoneError
from sandy._exchange import Receive, Send
from sandy._wire import Frame, FrameParser, encode_prefix

if TYPE_CHECKING:
    from sandy._exchange import Exchange

T = TypeVar("T")

_TIMEVAL: Final = struct.Struct("@ll")
_JOIN_LIMIT: Final = 65_536
_MAX_ID: Final = 0xFFFF_FFFF
_MAX_BUFFERS: Final = 64  # of one sendmsg(2); the kernel's limit is 1024


class Connection:
    """Runs exchanges over a socket, blocking or with asyncio, but never two at once.

    Closing it is how a request is cancelled: the server then kills what the request started, but for processes that were
    spawned, which go on.
    """

    def __init__(self, sock: socket.socket, *, skip_stale: bool = False) -> None:
        """Takes over a connected socket.

        With `skip_stale` it can go on after an exchange was interrupted: late replies to earlier requests are skipped. That
        is for the first connection, which can't be closed without ending the server.
        """
        self._socket = sock
        self._skip_stale = skip_stale
        self._parser = FrameParser()
        self._id = 0
        self._patience: float | None = None
        self._socket_patience: float | None = None
        self._blocking = True
        self._whole = True  # all of the newest request was sent
        self.closed = False

    def __del__(self) -> None:
        """Closes without the socket's ResourceWarning: a pool that is dropped is no fault of its user."""
        with contextlib.suppress(Exception):
            self.close()

    def close(self) -> None:
        """Closes the socket; may be called again."""
        self.closed = True
        self._socket.close()

    def shut_down(self) -> None:
        """Ends it without closing the descriptor, which somebody may be waiting for."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def cancel(self) -> None:
        """Cancels the open request with a frame, for what closing does not end; only if all of the request was sent."""
        if self._whole and not self.closed:
            frame = encode_prefix({"id": self._id, "op": "cancel"}, 0)
            with contextlib.suppress(OSError):
                self._socket.send(frame, socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)

    # For a request that stays open (sandy._channel): these never wait.

    def fileno(self) -> int:
        """The socket's descriptor, to wait for."""
        return self._socket.fileno()

    def prefix(self, fields: Mapping[str, object], size: int) -> bytes:
        """The start of a frame of the open request, to be followed by a payload of `size` bytes."""
        return encode_prefix({"id": self._id, **fields}, size)

    def send_now(self, buffers: Iterable[memoryview]) -> int:
        """Sends what the socket takes at once of the first buffers; how many bytes, 0 where it takes none.

        Raises:
            SandboxGoneError: If the server went away.
        """
        try:
            return self._socket.sendmsg(itertools.islice(buffers, _MAX_BUFFERS), (), socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise _gone(error, None) from error

    def receive_now(self) -> Frame | None:
        """The next frame of the open request, or None if it has not come yet.

        Raises:
            SandboxGoneError: If the server went away, or broke the protocol.
        """
        parser = self._parser
        while True:
            frame = parser.next_frame()
            if frame is not None:
                if self._is_current(frame):
                    return frame
                continue
            try:
                received = self._socket.recv_into(parser.space(), 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            except OSError as error:
                raise _gone(error, None) from error
            if not received:
                raise SandboxGoneError(_ENDED)
            parser.advance(received)

    def run(self, exchange: Exchange[T]) -> T:
        """Runs an exchange to its end, blocking.

        Raises:
            SandboxGoneError: If the server went away, kept quiet for too long, or broke the protocol.
        """
        if not self._blocking:
            self._socket.setblocking(True)
            self._blocking = True
        try:
            step = next(exchange)
            while True:
                if isinstance(step, Receive):
                    step = exchange.send(self._receive())
                else:
                    self._send(step)
                    step = next(exchange)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            # Where the connection failed: its files and temporary files are closed and removed now, not some time.
            exchange.close()

    async def arun(self, exchange: Exchange[T]) -> T:
        """Runs an exchange to its end in the running event loop.

        Raises:
            SandboxGoneError: As for `run`.
        """
        if self._blocking:
            self._socket.setblocking(False)
            self._blocking = False
        loop = asyncio.get_running_loop()
        try:
            step = next(exchange)
            while True:
                if isinstance(step, Receive):
                    step = exchange.send(await self._areceive(loop))
                else:
                    await self._asend(loop, step)
                    step = next(exchange)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            # Where the connection failed: its files and temporary files are closed and removed now, not some time.
            exchange.close()

    async def aclose(self) -> None:
        """Closes after an exchange was interrupted, when the loop no longer watches the descriptor."""
        # The peer learns of it now. The descriptor's number must not be free for others before the loop has run the
        # callbacks of the interrupted operation, which remove the number from its selector.
        self.shut_down()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.close()  # a coroutine that was left behind by its loop, and is closed now
            return
        loop.call_soon(self.close)

    def send_descriptor(self, fields: dict[str, object], descriptor: int) -> None:
        """Sends a frame that carries a descriptor with its first byte (SCM_RIGHTS); blocking."""
        frame = encode_prefix({"id": self._next_id(), **fields}, 0)
        try:
            sent = socket.send_fds(self._socket, [frame], [descriptor], socket.MSG_NOSIGNAL)
            if sent < len(frame):
                self._socket.sendall(frame[sent:], socket.MSG_NOSIGNAL)
        except OSError as error:
            raise _gone(error, self._patience) from error

    def _next_id(self) -> int:
        self._id = self._id % _MAX_ID + 1
        return self._id

    def _frame(self, step: Send) -> tuple[bytes, int]:
        """The prefix of the frame for a step, and the size of its payload."""
        if step.new:
            self._next_id()
            self._patience = step.patience
        size = sum(map(len, step.payload))
        return encode_prefix({"id": self._id, **step.fields}, size), size

    def _send(self, step: Send) -> None:
        prefix, size = self._frame(step)
        self._whole = False
        try:
            if self._patience != self._socket_patience:
                self._set_socket_patience()
            if size <= _JOIN_LIMIT:
                self._socket.sendall(b"".join((prefix, *step.payload)), socket.MSG_NOSIGNAL)
                self._whole = True
                return
            sent = self._socket.sendmsg((prefix, *step.payload), (), socket.MSG_NOSIGNAL)
            for buffer in itertools.chain((prefix,), step.payload):
                if sent >= len(buffer):
                    sent -= len(buffer)
                else:
                    self._socket.sendall(memoryview(buffer)[sent:], socket.MSG_NOSIGNAL)
                    sent = 0
            self._whole = True
        except OSError as error:
            raise _gone(error, self._patience) from error

    def _receive(self) -> Frame:
        parser = self._parser
        while True:
            frame = parser.next_frame()
            if frame is not None:
                if self._is_current(frame):
                    return frame
                continue
            try:
                received = self._socket.recv_into(parser.space())
            except OSError as error:
                raise _gone(error, self._patience) from error
            if not received:
                raise SandboxGoneError(_ENDED)
            parser.advance(received)

    async def _asend(self, loop: asyncio.AbstractEventLoop, step: Send) -> None:
        prefix, size = self._frame(step)
        buffers = (b"".join((prefix, *step.payload)),) if size <= _JOIN_LIMIT else (prefix, *step.payload)
        self._whole = False
        try:
            async with asyncio.timeout(self._patience):
                for buffer in buffers:
                    await loop.sock_sendall(self._socket, buffer)
            self._whole = True
        except OSError as error:
            raise _gone(error, self._patience) from error

    async def _areceive(self, loop: asyncio.AbstractEventLoop) -> Frame:
        parser = self._parser
        while True:
            frame = parser.next_frame()
            if frame is not None:
                if self._is_current(frame):
                    return frame
                continue
            try:
                async with asyncio.timeout(self._patience):
                    received = await loop.sock_recv_into(self._socket, parser.space())
            except OSError as error:
                raise _gone(error, self._patience) from error
            if not received:
                raise SandboxGoneError(_ENDED)
            parser.advance(received)

    def _is_current(self, frame: Frame) -> bool:
        number = frame.header.get("id")
        if number == self._id:
            return True
        if self._skip_stale:
            return False
        msg = f"a frame for request {number!r}, but {self._id} is open"
        raise ProtocolError(msg)

    def _set_socket_patience(self) -> None:
        # In the kernel, not with settimeout(): that would cost a poll() before every call.
        seconds = self._patience or 0.0
        timeval = _TIMEVAL.pack(int(seconds), int(seconds % 1 * 1_000_000))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeval)
        self._socket_patience = self._patience


_ENDED: Final = "sandy serve ended"


def _gone(error: OSError, patience: float | None) -> SandboxGoneError:
    if isinstance(error, (BlockingIOError, TimeoutError)):
        return SandboxGoneError(f"sandy serve gave no answer within {patience:.0f} s")
    return SandboxGoneError(f"{_ENDED}: {error.strerror or error}")
