"""The server of a sandbox that outlives whoever made it, and the `sandy` verbs about such sandboxes."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import subprocess
from typing import TYPE_CHECKING, Any, Final

from sandy._connection import Connection
from sandy._errors import SandboxError, SandboxGoneError, SandboxStartError
from sandy._exchange import request, start
from sandy._process import HELLO_PATIENCE, check_version, start_program, track
from sandy._programs import find_sandy
from sandy._server import Server
from sandy._wire import VERSION

if TYPE_CHECKING:
    from sandy._exchange import Exchange, Reply

_VERB_PATIENCE: Final = 60.0
_UCRED: Final = struct.Struct("@iII")
"""struct ucred: pid, uid, gid (unix(7))."""
_MAX_SOCKET_PATH: Final = 107
"""Bytes of sun_path, without its NUL."""


class KeptServer(Server):
    """Connections to the `sandy serve --keep` of one sandbox, which goes on without them."""

    def __init__(self, sandbox: str, path: bytes | None, first: Connection | None = None) -> None:
        """Takes over its first connection, if there is one; `path` is where it listens, None is to be asked for."""
        super().__init__()
        self._sandbox = sandbox
        self._path = path
        if first is not None:
            self._connections.add(first)
            self._idle.append(first)
        track(self)

    def explained(self, error: SandboxGoneError) -> SandboxGoneError:
        """Says that it may be gone on with, if it is not there any more."""
        if not isinstance(error.__cause__, OSError) and "ended" not in str(error):
            return error
        return SandboxGoneError(f"the server of sandbox {self._sandbox} has ended: {_resume(self._sandbox)}")

    def shut_down(self) -> None:
        """Closes the connections; the sandbox goes on."""
        self._drop(f"sandbox {self._sandbox} was let go of")

    def abandon(self) -> None:
        """As for all servers; a forked child may attach to it."""
        super().abandon()
        self._gone = f"process {os.getppid()} is attached to it, of which this one is a fork: Sandbox.attach({self._sandbox!r})"

    def _connect(self) -> Connection:
        if self._path is None:
            self._path = find(self._sandbox).socket
        try:
            return Connection(connect(self._path))
        except OSError as error:
            msg = f"the server of sandbox {self._sandbox} does not answer ({error.strerror}): {_resume(self._sandbox)}"
            raise SandboxGoneError(msg) from error


class Entry:
    """What `sandy ps --json` says of a sandbox."""

    def __init__(self, fields: dict[str, Any]) -> None:
        """Takes one object.

        Raises:
            SandboxError: If it is another one's.
        """
        try:
            self.id = str(fields["id"])
            self.name = str(fields["name"])
            self.running = fields["state"] == "running"
            self.created_ms = int(fields["created_ms"])
            self.idle_ms = int(fields["idle_ms"])
            self.socket = os.fsencode(fields["socket"]) if self.running else b""
        except (KeyError, TypeError, ValueError) as error:
            msg = f"sandy ps --json said {fields!r}: install the same version of both"
            raise SandboxError(msg) from error


def entries() -> list[Entry]:
    """All kept sandboxes of this user, oldest first.

    Raises:
        SandboxStartError: If there is no program `sandy`.
        SandboxError: If it fails.
    """
    try:
        said = json.loads(run_verb("ps", "--json"))
    except ValueError as error:
        msg = f"sandy ps --json gave no JSON: {error}"
        raise SandboxError(msg) from error
    return [Entry(fields) for fields in said]


def find(id_or_name: str) -> Entry:
    """One that runs.

    Raises:
        SandboxError: If there is none; the text says so, or that it has stopped.
    """
    found = next((entry for entry in entries() if id_or_name in (entry.id, entry.name)), None)
    if found is None:
        msg = f"no kept sandbox has the id or the name {id_or_name!r}: Sandbox.list() has all of them"
        raise SandboxError(msg)
    if not found.running:
        msg = f"sandbox {id_or_name} has stopped: {_resume(found.id)}"
        raise SandboxError(msg)
    return found


def connect(path: bytes) -> socket.socket:
    """Connects to where a server of our own user listens, whatever the length of the path.

    Raises:
        OSError: If nobody does.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if len(path) <= _MAX_SOCKET_PATH:
            sock.connect(path)
        else:
            directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                sock.connect(b"/proc/self/fd/%d/%s" % (directory, os.path.basename(path)))
            finally:
                os.close(directory)
        _check_peer(sock)
    except BaseException:
        sock.close()
        raise
    return sock


def _check_peer(sock: socket.socket) -> None:
    _, user, _ = _UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    if user != os.geteuid():
        raise PermissionError(errno.EACCES, f"who listens there is user {user}")


def start_kept(exchange: Exchange[Reply]) -> tuple[Connection, Reply]:
    """Starts a server that leaves this process, and makes its sandbox.

    Raises:
        SandboxStartError: If it does not start.
        SandboxGoneError: If it ends at once.
    """
    sock, child, stderr = start_program("serve", "--keep")
    connection = Connection(sock)
    try:
        _wait_for_start(child, stderr)
        hello = connection.run(request(start("hello", patience=HELLO_PATIENCE, version=VERSION)))
        check_version(hello)
        return connection, connection.run(exchange)
    except BaseException:
        connection.close()
        raise


def _wait_for_start(child: subprocess.Popen[bytes], stderr: int) -> None:
    """Until the started process has left its child behind."""
    with open(stderr, "rb") as said:
        try:
            status = child.wait(_VERB_PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise SandboxStartError("sandy serve", f"did not start within {_VERB_PATIENCE:.0f} s") from None
        if status:
            said.seek(0)
            why = said.read(2_000).decode(errors="replace").strip()
            raise SandboxStartError("sandy serve", why or f"exit status {status}")


def run_verb(*words: str) -> bytes:
    """Runs `sandy` and returns what it prints.

    Raises:
        SandboxStartError: If there is no program `sandy`.
        SandboxError: If it fails; with what it says.
    """
    program = find_sandy()
    try:
        done = subprocess.run(  # noqa: S603 - found by find_sandy; words are ours, or follow "--"
            [program, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=_VERB_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        msg = f"sandy {words[0]} did not end within {_VERB_PATIENCE:.0f} s"
        raise SandboxError(msg) from None
    if done.returncode:
        raise SandboxError(done.stderr.decode(errors="replace").strip().removeprefix("sandy: "))
    return done.stdout


def _resume(sandbox: str) -> str:
    return f"Sandbox(id={sandbox!r}) goes on with its workspace, if that was kept"
