"""Uploads and downloads of any size in constant memory, between local files and the sandbox."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, TypeAlias

from sandy._errors import SandboxFileError, SandboxGoneError
from sandy._exchange import Reply, request, start
from sandy._exec import error_sentence, read_pieces
from sandy._files import encode_path, store_stream
from sandy._texts import transfer_error

if TYPE_CHECKING:
    from sandy._exchange import Exchange

LocalFile: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes] | IO[bytes]


def upload(sandbox: str, local: LocalFile, remote: str) -> Exchange[int]:
    """Uploads a local file or a binary file object; returns the number of bytes.

    Raises:
        SandboxFileError: If the sandbox refuses.
        OSError: If the local file can't be read.
    """
    raw = _remote(remote)
    with _source(local) as (file, mode):
        reply = yield from store_stream(sandbox, raw, read_pieces(file), mode)
    _check(remote, reply)
    return reply.number("bytes")


def download(sandbox: str, remote: str, local: LocalFile, max_bytes: int | None) -> Exchange[int]:
    """Downloads to a local file, which appears whole or not at all, or into a binary file object.

    Raises:
        SandboxFileError: If the sandbox refuses.
        OSError: If the local file can't be written.
    """
    raw = _remote(remote)
    with _target(local) as file:
        reply = yield from request(start("download", (raw,), sandbox=sandbox, max_bytes=max_bytes), file.write)
        _check(remote, reply)
    return reply.number("bytes")


def _remote(path: str) -> bytes:
    raw = encode_path(path)
    if raw is None:
        raise SandboxFileError(path, "invalid_path")
    return raw


def _check(remote: str, reply: Reply) -> None:
    if reply.error == "no_sandbox":
        raise SandboxGoneError(error_sentence(reply))
    if reply.error is not None:
        raise SandboxFileError(remote, transfer_error(reply))


@contextmanager
def _source(local: LocalFile) -> Iterator[tuple[IO[bytes], int | None]]:
    """A file to read, and the mode to give to its copy."""
    if isinstance(local, (str, bytes, os.PathLike)):
        with open(local, "rb") as file:
            yield file, os.fstat(file.fileno()).st_mode & 0o777
    else:
        yield local, None


@contextmanager
def _target(local: LocalFile) -> Iterator[IO[bytes]]:
    """A file to write; a named one replaces what has its name when all went well."""
    if not isinstance(local, (str, bytes, os.PathLike)):
        yield local
        return
    name = os.fsdecode(local)
    part = os.path.join(os.path.dirname(name), f".{os.path.basename(name)[:100]}.{secrets.token_hex(8)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb") as file:
            yield file
        os.replace(part, name)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
