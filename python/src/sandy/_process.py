"""The `sandy serve` child of this process, and the connections to it.

There is one for all sandboxes, started when the first is wanted. It lives in a session of its own, so that a Ctrl-C in the
terminal reaches this process and not it, and it ends, with every sandbox, when this process does.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import threading
import weakref
from typing import TYPE_CHECKING, Final, TypeVar

from sandy._connection import Connection
from sandy._errors import SandboxError, SandboxGoneError, SandboxStartError
from sandy._exchange import receive, request, start
from sandy._programs import find_sandy
from sandy._server import Server
from sandy._wire import VERSION

if TYPE_CHECKING:
    from sandy._exchange import Exchange, Reply

T = TypeVar("T")

HELLO_PATIENCE: Final = 30.0
_EXIT_PATIENCE: Final = 5.0
_END_PATIENCE: Final = 0.5
_STDERR_TAIL: Final = 2_000


class Serve(Server):
    """The `sandy serve` that this process has started."""

    def __init__(self, sock: socket.socket, child: subprocess.Popen[bytes], stderr: int) -> None:
        """Takes over the first connection, the child, and the descriptor of a file that gets the child's stderr."""
        super().__init__()
        self._control = Connection(sock, skip_stale=True)
        self._control_lock = threading.Lock()
        self._child = child
        self._stderr = stderr
        track(self)

    @property
    def usable(self) -> bool:
        """Whether new sandboxes can be made with it."""
        return super().usable and self._child.poll() is None

    def hello(self) -> None:
        """Agrees on the protocol's version.

        Raises:
            SandboxStartError: If the program speaks another version, or no protocol at all.
        """
        try:
            with self._control_lock:
                reply = self._control.run(request(start("hello", patience=HELLO_PATIENCE, version=VERSION)))
        except SandboxGoneError as error:
            why = str(self.explained(error))
            raise SandboxStartError("sandy serve", why, "sandy doctor shows what this machine lacks") from error
        check_version(reply)

    def shut_down(self) -> None:
        """Ends the server and with it all its sandboxes, and waits a little until they are cleaned up."""
        self._drop("this process has shut down its sandboxes")
        try:
            self._child.wait(_EXIT_PATIENCE)
        except subprocess.TimeoutExpired:
            # It is cleaning up in its own session and will end by itself. Popen would warn about a child that still runs.
            self._child.returncode = 0

    def kill(self) -> None:
        """Ends a program that does not do what a server does, and so may not end by itself."""
        self._child.kill()
        self.shut_down()

    def abandon(self) -> None:
        """As for all servers; the child process is not this process's either."""
        self._control_lock = threading.Lock()
        super().abandon()
        self._child.returncode = 0  # nothing to wait for

    def _drop(self, reason: str) -> bool:
        first = super()._drop(reason)
        if first:
            os.close(self._stderr)
        self._control.close()
        return first

    def _connect(self) -> Connection:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with theirs, self._control_lock:
                self._control.run(_pass_descriptor(self._control, theirs.fileno()))
        except BaseException as error:
            ours.close()
            if isinstance(error, SandboxGoneError):
                raise self.explained(error) from error
            raise
        return Connection(ours)

    def explained(self, error: SandboxGoneError) -> SandboxGoneError:
        """Adds how the child ended and what it said last; nobody tries to reach it again then."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(_END_PATIENCE)
        with self._lock:
            if self._gone is not None:
                return SandboxGoneError(self._gone)
            status = self._child.poll()
            if status is None:
                return error
            size = os.fstat(self._stderr).st_size
            said = os.pread(self._stderr, _STDERR_TAIL, max(0, size - _STDERR_TAIL)).decode(errors="replace").strip()
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        text = f"sandy serve ended ({how})" + (f": {said}" if said else "")
        self._drop(text)
        return SandboxGoneError(text)


def check_version(hello: Reply) -> None:
    """Looks at the answer to `hello`.

    Raises:
        SandboxStartError: If the program speaks another version.
    """
    if hello.error is not None or hello.end.get("version") != VERSION:
        other = hello.end.get("version", "another version")
        why = f"speaks protocol version {other}, this package speaks {VERSION}"
        raise SandboxStartError("the program sandy", why, "install the same version of both")


def _pass_descriptor(control: Connection, descriptor: int) -> Exchange[None]:
    control.send_descriptor({"op": "connect"}, descriptor)
    frame = yield from receive()
    if frame.header.get("ev") != "end" or "error" in frame.header:
        msg = f"sandy serve refused a further connection: {frame.header.get('detail') or frame.header.get('error')}"
        raise SandboxError(msg)


_serves: weakref.WeakSet[Server] = weakref.WeakSet()
_current: Serve | None = None
_current_lock = threading.Lock()


def track(server: Server) -> None:
    """Has a server let go of at exit, and in forked children."""
    _serves.add(server)


def current_serve() -> Serve:
    """The server of this process, started if there is none or it has ended.

    Raises:
        SandboxStartError: If it can't start.
    """
    global _current  # noqa: PLW0603 - one child per process is the point
    with _current_lock:
        if _current is None or not _current.usable:
            _current = spawn_serve()
            try:
                _current.hello()
            except BaseException:
                _current.kill()
                raise
        return _current


def spawn_serve() -> Serve:
    """Starts the program.

    Raises:
        SandboxStartError: If the program is not found or can't be executed.
    """
    return Serve(*start_program("serve"))


def start_program(*words: str) -> tuple[socket.socket, subprocess.Popen[bytes], int]:
    """Starts `sandy` with these words and `--fd N`, where N is a socket; the other end, the child, and a file with its stderr.

    Raises:
        SandboxStartError: As for `spawn_serve`.
    """
    program = find_sandy()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    stderr = os.memfd_create("sandy-serve-stderr")
    try:
        with theirs:
            child = subprocess.Popen(  # noqa: S603 - found by find_sandy, arguments are ours
                [program, *words, "--fd", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd="/",
                start_new_session=True,
            )
    except OSError as error:
        ours.close()
        os.close(stderr)
        raise SandboxStartError(str(program), error.strerror or str(error)) from error
    return ours, child, stderr


def _shut_down_at_exit() -> None:
    for serve in list(_serves):
        serve.shut_down()


def _after_fork_in_child() -> None:
    global _current, _current_lock  # noqa: PLW0603 - see current_serve
    _current_lock = threading.Lock()
    _current = None
    for serve in list(_serves):
        serve.abandon()
    _serves.clear()


atexit.register(_shut_down_at_exit)
os.register_at_fork(after_in_child=_after_fork_in_child)
