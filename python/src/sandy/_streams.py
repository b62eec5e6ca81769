"""Uploads and downloads of any size in constant memory, between local files and the sandbox."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, TypeAlias

from sandy._arguments import check_count, check_text, wrong_type
from sandy._errors import SandboxFileError, SandboxGoneError
from sandy._exchange import Reply, request, start
from sandy._exec import error_sentence, is_binary_file, read_pieces
from sandy._files import store_stream
from sandy._progress import Progress
from sandy._texts import transfer_error

if TYPE_CHECKING:
    from sandy._exchange import Exchange
    from sandy._place import Place

LocalFile: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes] | IO[bytes]


def upload(place: Place, local: LocalFile, remote: str) -> Exchange[int]:
    """Uploads a local file or a binary file object; returns the number of bytes.

    Raises:
        SandboxFileError: If the sandbox refuses.
        OSError: If the local file can't be read.
    """
    raw = _remote(place, remote)
    with _source(local) as (file, mode), _progress_of("uploading", file) as counted:
        reply = yield from store_stream(place, raw, counted(read_pieces("local", file)), mode)
    _check(remote, reply)
    return reply.number("bytes")


def download(place: Place, remote: str, local: LocalFile, max_bytes: int | None) -> Exchange[int]:
    """Downloads to a local file, which appears whole or not at all, or into a binary file object.

    Raises:
        SandboxFileError: If the sandbox refuses.
        OSError: If the local file can't be written.
    """
    raw = _remote(place, remote)
    if max_bytes is not None and check_count("max_bytes", max_bytes, "a number of bytes, as an int, or None") < 0:
        msg = f"max_bytes is {max_bytes}: it must not be negative"
        raise ValueError(msg)
    with _target(local) as file:
        reply = yield from request(start("download", (raw,), sandbox=place.id, max_bytes=max_bytes), file.write)
        _check(remote, reply)
    return reply.number("bytes")


def _remote(place: Place, path: str) -> bytes:
    raw = place.encode(check_text("remote", path))
    if raw is None:
        raise SandboxFileError(path, "invalid_path")
    return raw


def _check(remote: str, reply: Reply) -> None:
    if reply.error == "no_sandbox":
        raise SandboxGoneError(error_sentence(reply))
    if reply.error is not None:
        raise SandboxFileError(remote, transfer_error(reply))


@contextmanager
def _progress_of(what: str, file: IO[bytes]) -> Iterator[Callable[[Iterator[bytes]], Iterator[bytes]]]:
    """Tells a terminal, in MiB, how much of a regular file has been passed on."""
    try:
        total = os.fstat(file.fileno()).st_size >> 20
    except (AttributeError, OSError, ValueError):
        total = 0  # a file object that is none of the system's
    progress = Progress(f"{what} (MiB)", total)

    def counted(pieces: Iterator[bytes]) -> Iterator[bytes]:
        done = 0
        for piece in pieces:
            yield piece
            before, done = done >> 20, done + len(piece)
            if before < done >> 20 < total:
                progress.update(done >> 20)

    try:
        yield counted
    finally:
        progress.end()


@contextmanager
def _source(local: LocalFile) -> Iterator[tuple[IO[bytes], int | None]]:
    """A file to read, and the mode to give to its copy."""
    if isinstance(local, (str, bytes, os.PathLike)):
        with open(local, "rb") as file:
            yield file, os.fstat(file.fileno()).st_mode & 0o777
    elif is_binary_file(local, "read"):
        yield local, None
    else:
        raise wrong_type("local", local, "a path (str, bytes or os.PathLike) or a file object opened in binary mode")


@contextmanager
def _target(local: LocalFile) -> Iterator[IO[bytes]]:
    """A file to write; a named one replaces what has its name when all went well."""
    if not isinstance(local, (str, bytes, os.PathLike)):
        if not is_binary_file(local, "write"):
            raise wrong_type("local", local, "a path (str, bytes or os.PathLike) or a file object opened in binary mode")
        yield local
        return
    name = os.fsdecode(local)
    _check_replaceable(name)
    part = os.path.join(os.path.dirname(name), f".{os.path.basename(name)[:100]}.{secrets.token_hex(8)}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}: a file can't be made in the directory of", name) from error
    try:
        with open(descriptor, "wb") as file:
            yield file
        os.replace(part, name)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def _check_replaceable(name: str) -> None:
    """Refuses what a file can't replace, or should not, before anything is fetched.

    Raises:
        OSError: If there is a directory, or no regular file: a device or a pipe would be gone.
    """
    if not name:
        raise FileNotFoundError(errno.ENOENT, "the local path is empty; name the file to write", name)
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError:
        if name.endswith("/"):
            raise IsADirectoryError(errno.EISDIR, "that names a directory; name the file to write", name) from None
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "that is a directory; name the file to write in it", name)
    if not stat.S_ISREG(mode):
        raise FileExistsError(errno.EEXIST, "that is no regular file; open it and give the file object to write to it", name)
