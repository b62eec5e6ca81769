"""The file operations: one request each, done by the agent inside the sandbox with the sandbox's rights."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from sandy import _plain
from sandy._errors import ProtocolError
from sandy._exchange import Feed, Reply, receive, request, start
from sandy._texts import Texts, edit_error, listing_error, read_error, sentence, transfer_error
from sandy._wire import WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandy._exchange import Exchange
    from sandy._results import FileInfo, GrepMatch

GLOB_MAX_MATCHES: Final = 10_000
GLOB_BUDGET_MS: Final = 5_000
GREP_BUDGET_MS: Final = 15_000
MAX_LISTING: Final = 67_108_864
"""Bytes of names or lines that one listing may bring into this process's memory."""

_MAX_LINES: Final = 0xFFFF_FFFF


def encode_path(path: str) -> bytes | None:
    """The bytes of a path, or None where no file can have it: empty, a NUL, or lone surrogates that stand for no byte."""
    try:
        raw = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None
    return None if not raw or b"\0" in raw else raw


def decode_path(raw: bytes) -> str:
    """The reverse, so that a name that was listed can be used, whatever bytes it has."""
    return raw.decode("utf-8", "surrogateescape")


def invalid_path() -> Reply:
    """The answer to a path that can't be sent."""
    return Reply({"error": "invalid_path"})


def read(sandbox: str, path: str, offset: int, limit: int, texts: Texts) -> Exchange[_plain.ReadResult]:
    """A page of a file."""
    raw = encode_path(path)
    if raw is None:
        return _plain.ReadResult(error=read_error(path, invalid_path(), texts))
    offset, limit = min(max(int(offset), 0), _MAX_LINES), min(max(int(limit), 0), _MAX_LINES)
    reply = yield from request(start("read", (raw,), sandbox=sandbox, offset=offset, limit=limit, binary=texts.is_binary(path)))
    end = reply.end
    if reply.error is not None:
        return _plain.ReadResult(error=read_error(path, reply, texts))
    if end.get("empty") is True:
        return _plain.ReadResult(file_data={"content": texts.empty_file, "encoding": "utf-8"})
    if end.get("encoding") == "base64":
        return _plain.ReadResult(file_data={"content": base64.b64encode(reply.body).decode("ascii"), "encoding": "base64"})
    if end.get("no_lines_requested") is True:
        return _plain.ReadResult(file_data={"content": "", "encoding": "utf-8"}, no_lines_requested=True)
    content = reply.body.decode("utf-8", "replace")
    if end.get("truncated") is True:
        content += texts.truncated
    return _plain.ReadResult(
        file_data={"content": content, "encoding": "utf-8"},
        total_lines=_optional(end, "total_lines"),
        start_line=_optional(end, "start_line"),
        end_line=_optional(end, "end_line"),
        next_offset=_optional(end, "next_offset"),
    )


def write(sandbox: str, path: str, content: str) -> Exchange[_plain.WriteResult]:
    """Writes a text file, creating its parents."""
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError as error:
        return _plain.WriteResult(error=f"Failed to write file '{path}': the content is not valid text: {error.reason}")
    reply = yield from store(sandbox, path, data)
    if reply.error is None:
        return _plain.WriteResult(path=path)
    return _plain.WriteResult(error=f"Failed to write file '{path}': {transfer_error(reply)}")


def edit(sandbox: str, path: str, old: str, new: str, *, replace_all: bool, texts: Texts) -> Exchange[_plain.EditResult]:
    """Replaces a text in a file."""
    if not old:
        return _plain.EditResult(error=texts.empty_old_string)
    raw = encode_path(path)
    if raw is None:
        return _plain.EditResult(error=edit_error(path, old, invalid_path(), texts))
    try:
        opening = start("edit", (raw, old.encode(), new.encode()), sandbox=sandbox, replace_all=replace_all)
    except UnicodeEncodeError as error:
        return _plain.EditResult(error=f"Error editing file '{path}': a string is not valid text: {error.reason}")
    except ValueError as error:
        return _plain.EditResult(error=f"Error editing file '{path}': {error}")
    reply = yield from request(opening)
    if reply.error is not None:
        return _plain.EditResult(error=edit_error(path, old, reply, texts))
    return _plain.EditResult(path=path, occurrences=reply.number("occurrences"))


def delete(sandbox: str, path: str) -> Exchange[_plain.DeleteResult]:
    """Deletes a file, or a directory with all that is in it."""
    raw = encode_path(path)
    reply = invalid_path() if raw is None else (yield from request(start("delete", (raw,), sandbox=sandbox)))
    if reply.error is None:
        return _plain.DeleteResult(path=path)
    if reply.error in ("file_not_found", "not_a_directory"):
        return _plain.DeleteResult(error=f"Error: '{path}' not found")
    words = reply.error.replace("_", " ") if reply.error in ("permission_denied", "invalid_path") else sentence(reply)
    return _plain.DeleteResult(error=f"Error deleting file '{path}': {words}")


def ls(sandbox: str, path: str, workspace: str) -> Exchange[_plain.LsResult]:
    """A directory's entries, links not followed."""
    raw = encode_path(path)
    if raw is None:
        return _plain.LsResult(error=listing_error(path, invalid_path()))
    reply = yield from request(start("ls", (raw,), sandbox=sandbox), limit=MAX_LISTING)
    if reply.error is not None and not reply.cut:
        return _plain.LsResult(error=listing_error(path, reply))
    if reply.cut:
        return _plain.LsResult(error=f"Path '{path}': more than {MAX_LISTING} bytes of names")
    parent = absolute(path, workspace)
    entries: list[FileInfo] = [{"path": join(parent, record[1:]), "is_dir": record[:1] == b"d"} for record in _records(reply)]
    return _plain.LsResult(entries=entries)


def glob(sandbox: str, pattern: str, path: str | None, workspace: str) -> Exchange[_plain.GlobResult]:
    """Files that match a pattern, below a directory."""
    root = absolute(path, workspace) if path else workspace
    raw, raw_pattern = encode_path(root), encode_path(pattern)
    if raw is None:
        return _plain.GlobResult(error=listing_error(root, invalid_path()))
    if raw_pattern is None:
        return _plain.GlobResult(error=listing_error(root, Reply({"error": "invalid_pattern"})))
    reply = yield from request(
        start("glob", (raw, raw_pattern), sandbox=sandbox, max_matches=GLOB_MAX_MATCHES, budget_ms=GLOB_BUDGET_MS),
        limit=MAX_LISTING,
    )
    if reply.error is not None and not reply.cut:
        return _plain.GlobResult(error=listing_error(root, reply))
    matches: list[FileInfo] = [{"path": join(root, record), "is_dir": False} for record in _records(reply)]
    # What can't be read is named first: a narrower search would not find it either.
    reason: Literal["budget", "unreadable"] | None = None
    if reply.cut or reply.end.get("truncated") is True:
        reason = "budget"
    if _count(reply, "walk_errors") or reply.end.get("truncation_reason") == "unreadable":
        reason = "unreadable"
    return _plain.GlobResult(matches=matches, truncated=reason is not None, truncation_reason=reason)


def grep(
    sandbox: str,
    pattern: str,
    path: str | None,
    glob: str | None,  # noqa: A002, RUF100 - deepagents' name
    *,
    max_count: int | None,
    exclude: Sequence[str],
    workspace: str,
) -> Exchange[_plain.GrepResult]:
    """Lines that have a text, below a directory or in a file."""
    root = absolute(path, workspace) if path else workspace
    raw = encode_path(root)
    if raw is None:
        return _plain.GrepResult(error=listing_error(root, invalid_path()))
    # The directory that was asked for is searched whatever its name.
    own_name = root.rstrip("/").rpartition("/")[2]
    names = [name for name in exclude if name != own_name]
    try:
        strings = [text.encode("utf-8", "surrogateescape") for text in (pattern, glob or "", *names)]
    except UnicodeEncodeError:
        return _plain.GrepResult(error=listing_error(root, Reply({"error": "invalid_pattern"})))
    cap = None if max_count is None else max(int(max_count), 0)
    reply = yield from request(
        start("grep", (raw, *strings), sandbox=sandbox, max_count=cap, budget_ms=GREP_BUDGET_MS), limit=MAX_LISTING
    )
    if reply.error is not None and not reply.cut:
        return _plain.GrepResult(error=listing_error(root, reply))
    matches = _grep_matches(_records(reply), root)
    incomplete = reply.cut or reply.end.get("truncated") is True
    # A file that can't be read may have matches too: an empty success would hide that.
    unreadable = _count(reply, "walk_errors") or _count(reply, "unreadable")
    return _plain.GrepResult(matches=matches, truncated=bool(incomplete or unreadable))


def store(sandbox: str, path: str, data: bytes, mode: int | None = None) -> Exchange[Reply]:
    """Writes bytes to a file, whole or not at all."""
    raw = encode_path(path)
    if raw is None:
        return invalid_path()
    if len(data) <= WINDOW:
        return (yield from request(start("write", (raw,), data, sandbox=sandbox, mode=mode)))
    return (yield from store_stream(sandbox, raw, iter((data,)), mode))


def store_stream(sandbox: str, path: bytes, pieces: Iterator[bytes], mode: int | None = None) -> Exchange[Reply]:
    """Writes pieces to a file as they come, whole or not at all."""
    yield start("write", (path,), sandbox=sandbox, more=True, mode=mode)
    feed = Feed(pieces)
    while True:
        send = feed.next_send()
        if send is not None:
            yield send
            continue
        frame = yield from receive()
        event = frame.header.get("ev")
        if event == "end":
            return Reply(frame.header, last=frame)
        if event == "credit":
            feed.credited(frame)


def upload_files(sandbox: str, files: Sequence[tuple[str, bytes]]) -> Exchange[list[_plain.FileUploadResponse]]:
    """Several files; each fares for itself."""
    responses = []
    for path, data in files:
        if not path.startswith("/"):
            responses.append(_plain.FileUploadResponse(path=path, error="invalid_path"))
            continue
        reply = yield from store(sandbox, path, data)
        error = None if reply.error is None else transfer_error(reply)
        responses.append(_plain.FileUploadResponse(path=path, error=error))
    return responses


def download_files(sandbox: str, paths: Sequence[str]) -> Exchange[list[_plain.FileDownloadResponse]]:
    """Several files; each fares for itself."""
    responses = []
    for path in paths:
        raw = encode_path(path) if path.startswith("/") else None
        if raw is None:
            responses.append(_plain.FileDownloadResponse(path=path, error="invalid_path"))
            continue
        reply = yield from request(start("download", (raw,), sandbox=sandbox))
        if reply.error is None:
            responses.append(_plain.FileDownloadResponse(path=path, content=reply.body))
        else:
            responses.append(_plain.FileDownloadResponse(path=path, error=transfer_error(reply)))
    return responses


def absolute(path: str, workspace: str) -> str:
    """A path as the caller sees it, absolute: relative ones are in the workspace."""
    return path if path.startswith("/") else f"{workspace.rstrip('/')}/{path}"


def join(parent: str, name: bytes) -> str:
    """A child's path. Names that the agent already made absolute stay as they are."""
    return decode_path(name) if name.startswith(b"/") else f"{parent.rstrip('/')}/{decode_path(name)}"


def _records(reply: Reply) -> list[bytes]:
    """The NUL-ended records of a listing; one that was cut off by a limit is dropped."""
    records = reply.body.split(b"\0")
    if records.pop() and not reply.cut:
        msg = "a listing ends inside a record"
        raise ProtocolError(msg)
    return records


def _grep_matches(records: list[bytes], root: str) -> list[GrepMatch]:
    matches: list[GrepMatch] = []
    for at in range(0, len(records) - 2, 3):
        name, line, text = records[at : at + 3]
        if not line.isdigit():
            msg = f"{line!r} is not a line number"
            raise ProtocolError(msg)
        path = join(root, name) if name else root
        matches.append({"path": path, "line": int(line), "text": text.decode("utf-8", "replace")})
    return matches


def _optional(end: dict[str, Any], name: str) -> int | None:
    value = end.get(name)
    if value is not None and type(value) is not int:
        msg = f"field {name} of a reply is not a number: {value!r}"
        raise ProtocolError(msg)
    return value


def _count(reply: Reply, name: str) -> int:
    return reply.number(name)
