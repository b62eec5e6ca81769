"""The file operations: one request each, done by the agent inside the sandbox with the sandbox's rights."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from sandy import _plain
from sandy._arguments import check_count, check_flag, check_list, check_text, check_texts, wrong_type
from sandy._errors import ProtocolError
from sandy._exchange import Feed, Reply, receive, request, start
from sandy._texts import Texts, edit_error, read_error, sentence, transfer_error
from sandy._wire import WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandy._exchange import Exchange
    from sandy._place import Place

_MAX_LINES: Final = 0xFFFF_FFFF


def invalid_path() -> Reply:
    """The answer to a path that can't be sent."""
    return Reply({"error": "invalid_path"})


def read(place: Place, path: str, offset: int, limit: int, texts: Texts) -> Exchange[_plain.ReadResult]:
    """A page of a file."""
    check_text("file_path", path)
    offset, limit = _lines("offset", offset), _lines("limit", limit)
    raw = place.encode(path)
    if raw is None:
        return _plain.ReadResult(error=read_error(path, invalid_path(), texts))
    reply = yield from request(start("read", (raw,), sandbox=place.id, offset=offset, limit=limit, binary=texts.is_binary(path)))
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


def write(place: Place, path: str, content: str) -> Exchange[_plain.WriteResult]:
    """Writes a text file, creating its parents."""
    check_text("file_path", path)
    check_text("content", content)
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError as error:
        return _plain.WriteResult(error=f"Failed to write file '{path}': the content is not valid text: {error.reason}")
    reply = yield from store(place, path, data)
    if reply.error is None:
        return _plain.WriteResult(path=path)
    return _plain.WriteResult(error=f"Failed to write file '{path}': {transfer_error(reply)}")


def edit(place: Place, path: str, old: str, new: str, *, replace_all: bool, texts: Texts) -> Exchange[_plain.EditResult]:
    """Replaces a text in a file."""
    for name, text in (("file_path", path), ("old_string", old), ("new_string", new)):
        check_text(name, text)
    check_flag("replace_all", replace_all)
    if not old:
        return _plain.EditResult(error=texts.empty_old_string)
    raw = place.encode(path)
    if raw is None:
        return _plain.EditResult(error=edit_error(path, old, invalid_path(), texts))
    try:
        opening = start("edit", (raw, old.encode(), new.encode()), sandbox=place.id, replace_all=replace_all)
    except UnicodeEncodeError as error:
        return _plain.EditResult(error=f"Error editing file '{path}': a string is not valid text: {error.reason}")
    except ValueError as error:
        return _plain.EditResult(error=f"Error editing file '{path}': {error}")
    reply = yield from request(opening)
    if reply.error is not None:
        return _plain.EditResult(error=edit_error(path, old, reply, texts))
    return _plain.EditResult(path=path, occurrences=reply.number("occurrences"))


def delete(place: Place, path: str) -> Exchange[_plain.DeleteResult]:
    """Deletes a file, or a directory with all that is in it."""
    check_text("file_path", path)
    raw = place.encode(path)
    reply = invalid_path() if raw is None else (yield from request(start("delete", (raw,), sandbox=place.id)))
    if reply.error is None:
        return _plain.DeleteResult(path=path)
    if reply.error in ("file_not_found", "not_a_directory"):
        return _plain.DeleteResult(error=f"Error: '{path}' not found")
    words = reply.error.replace("_", " ") if reply.error in ("permission_denied", "invalid_path") else sentence(reply)
    return _plain.DeleteResult(error=f"Error deleting file '{path}': {words}")


def store(place: Place, path: str, data: bytes, mode: int | None = None) -> Exchange[Reply]:
    """Writes bytes to a file, whole or not at all."""
    raw = place.encode(path)
    if raw is None:
        return invalid_path()
    if len(data) <= WINDOW:
        return (yield from request(start("write", (raw,), data, sandbox=place.id, mode=mode)))
    return (yield from store_stream(place, raw, iter((data,)), mode))


def store_stream(place: Place, path: bytes, pieces: Iterator[bytes], mode: int | None = None) -> Exchange[Reply]:
    """Writes pieces to a file as they come, whole or not at all."""
    yield start("write", (path,), sandbox=place.id, more=True, mode=mode)
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


def check_files(files: object) -> list[tuple[str, bytes]]:
    """The argument of `upload_files`.

    Raises:
        TypeError: If it is no list of paths, each with its content.
    """
    checked = []
    for at, pair in enumerate(check_list("files", files, "(path, content) pairs")):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:  # noqa: PLR2004 - a pair
            raise wrong_type(f"files[{at}]", pair, "a pair of a path and its content")
        path, content = pair
        check_text(f"the path of files[{at}]", path)
        if not isinstance(content, (bytes, bytearray, memoryview)):
            raise wrong_type(f"the content of files[{at}]", content, "bytes")
        checked.append((path, bytes(content)))
    return checked


def check_paths(paths: object) -> list[str]:
    """The argument of `download_files`.

    Raises:
        TypeError: If it is no list of paths.
    """
    return check_texts("paths", paths)


def upload_files(place: Place, files: Sequence[tuple[str, bytes]]) -> Exchange[list[_plain.FileUploadResponse]]:
    """Several files; each fares for itself."""
    responses = []
    for path, data in files:
        if not place.expand(path).startswith("/"):
            responses.append(_plain.FileUploadResponse(path=path, error="invalid_path"))
            continue
        reply = yield from store(place, path, data)
        error = None if reply.error is None else transfer_error(reply)
        responses.append(_plain.FileUploadResponse(path=path, error=error))
    return responses


def download_files(place: Place, paths: Sequence[str]) -> Exchange[list[_plain.FileDownloadResponse]]:
    """Several files; each fares for itself."""
    responses = []
    for path in paths:
        raw = place.encode(path) if place.expand(path).startswith("/") else None
        if raw is None:
            responses.append(_plain.FileDownloadResponse(path=path, error="invalid_path"))
            continue
        reply = yield from request(start("download", (raw,), sandbox=place.id))
        if reply.error is None:
            responses.append(_plain.FileDownloadResponse(path=path, content=reply.body))
        else:
            responses.append(_plain.FileDownloadResponse(path=path, error=transfer_error(reply)))
    return responses


def _lines(name: str, value: int) -> int:
    return min(max(check_count(name, value, "a number of lines, as an int"), 0), _MAX_LINES)


def _optional(end: dict[str, Any], name: str) -> int | None:
    value = end.get(name)
    if value is not None and type(value) is not int:
        msg = f"field {name} of a reply is not a number: {value!r}"
        raise ProtocolError(msg)
    return value
