"""The file operations that find something: `ls`, `glob` and `grep`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from sandy import _plain
from sandy._arguments import check_count, check_text
from sandy._errors import ProtocolError
from sandy._exchange import Reply, request, start
from sandy._files import invalid_path
from sandy._place import Place, decode_path, encode_path, join
from sandy._texts import listing_error

if TYPE_CHECKING:
    from sandy._exchange import Exchange
    from sandy._results import FileInfo, GrepMatch

GLOB_MAX_MATCHES: Final = 10_000
GLOB_BUDGET_MS: Final = 5_000
GREP_BUDGET_MS: Final = 15_000
MAX_LISTING: Final = 67_108_864
"""Bytes of names or lines that one listing may bring into this process's memory."""

_MAGIC: Final = frozenset("*?[{")


class Anchored(NamedTuple):
    """An absolute pattern: the directory that it starts with, and the rest, whose "/" at its start binds it to that directory."""

    root: str
    pattern: str


def split_pattern(pattern: str, place: Place) -> Anchored | None:
    """Takes an absolute pattern apart.

    None for one that is not absolute, or has no directory before its first wildcard: "/*.py" starts at the directory that is
    searched, as deepagents' backends have it, and so does "/a.py", as both are the same in the workspace.
    """
    parts = place.expand(pattern).split("/")
    literal = next((at for at, part in enumerate(parts) if not _MAGIC.isdisjoint(part)), len(parts))
    literal = min(literal, len(parts) - 1)
    root = "".join(f"/{part}" for part in parts[:literal] if part not in ("", "."))
    # ".." is for the agent to refuse, as anywhere in a pattern.
    if parts[0] or not root or ".." in parts:
        return None
    return Anchored(root, "/" + "/".join(parts[literal:]))


def ls(place: Place, path: str) -> Exchange[_plain.LsResult]:
    """A directory's entries, links not followed."""
    check_text("path", path)
    raw = place.encode(path)
    if raw is None:
        return _plain.LsResult(error=listing_error(path, invalid_path()))
    reply = yield from request(start("ls", (raw,), sandbox=place.id), limit=MAX_LISTING)
    if reply.error is not None and not reply.cut:
        return _plain.LsResult(error=listing_error(path, reply))
    if reply.cut:
        return _plain.LsResult(error=f"Path '{path}': more than {MAX_LISTING} bytes of names")
    parent = place.absolute(path)
    entries: list[FileInfo] = [{"path": _child(parent, record[1:]), "is_dir": record[:1] == b"d"} for record in _records(reply)]
    return _plain.LsResult(entries=entries)


def glob(place: Place, pattern: str, path: str | None) -> Exchange[_plain.GlobResult]:
    """Files that match a pattern: an absolute one by their absolute path, others by where they are below a directory."""
    check_text("pattern", pattern)
    if path is not None:
        check_text("path", path, "a str or None")
    root = place.absolute(path) if path else place.workspace
    anchored = split_pattern(pattern, place)
    if anchored is not None:
        reply = yield from _glob(place, anchored.root, anchored.pattern)
        # Where there is no such directory, "/" may have been meant as the directory that is searched.
        if reply.error not in ("file_not_found", "not_a_directory"):
            return _found(anchored.root, reply)
    return _found(root, (yield from _glob(place, root, pattern)))


def _glob(place: Place, root: str, pattern: str) -> Exchange[Reply]:
    raw, raw_pattern = encode_path(root), encode_path(pattern)
    if raw is None:
        return invalid_path()
    if raw_pattern is None:
        return Reply({"error": "invalid_pattern"})
    opening = start("glob", (raw, raw_pattern), sandbox=place.id, max_matches=GLOB_MAX_MATCHES, budget_ms=GLOB_BUDGET_MS)
    return (yield from request(opening, limit=MAX_LISTING))


def _found(root: str, reply: Reply) -> _plain.GlobResult:
    if reply.error is not None and not reply.cut:
        return _plain.GlobResult(error=listing_error(root, reply))
    matches: list[FileInfo] = [{"path": _child(root, record), "is_dir": False} for record in _records(reply)]
    # What can't be read is named first: a narrower search would not find it either.
    reason: Literal["budget", "unreadable"] | None = None
    if reply.cut or reply.end.get("truncated") is True:
        reason = "budget"
    if reply.number("walk_errors") or reply.end.get("truncation_reason") == "unreadable":
        reason = "unreadable"
    return _plain.GlobResult(matches=matches, truncated=reason is not None, truncation_reason=reason)


def grep(
    place: Place,
    pattern: str,
    path: str | None,
    glob: str | None,  # noqa: A002, RUF100 - deepagents' name
    *,
    max_count: int | None,
    exclude: Sequence[str],
) -> Exchange[_plain.GrepResult]:
    """Lines that have a text, below a directory or in a file."""
    check_text("pattern", pattern)
    for name, text in (("path", path), ("glob", glob)):
        if text is not None:
            check_text(name, text, "a str or None")
    cap = None if max_count is None else max(check_count("max_count", max_count, "an int or None"), 0)
    root = place.absolute(path) if path else place.workspace
    anchored = split_pattern(glob, place) if glob else None
    # Only towards what is below the directory that was asked for: `path` is the limit of the search.
    if anchored is not None and f"{anchored.root}/".startswith(f"{root.rstrip('/')}/"):
        reply = yield from _grep(place, anchored.root, (pattern, anchored.pattern), exclude, cap)
        if reply.error not in ("file_not_found", "not_a_directory"):
            return _matching(anchored.root, reply)
    return _matching(root, (yield from _grep(place, root, (pattern, glob or ""), exclude, cap)))


def _grep(place: Place, root: str, wanted: tuple[str, str], exclude: Sequence[str], cap: int | None) -> Exchange[Reply]:
    raw = encode_path(root)
    if raw is None:
        return invalid_path()
    # The directory that was asked for is searched whatever its name.
    own_name = root.rstrip("/").rpartition("/")[2]
    names = [name for name in exclude if name != own_name]
    try:
        strings = [text.encode("utf-8", "surrogateescape") for text in (*wanted, *names)]
    except UnicodeEncodeError:
        return Reply({"error": "invalid_pattern"})
    opening = start("grep", (raw, *strings), sandbox=place.id, max_count=cap, budget_ms=GREP_BUDGET_MS)
    return (yield from request(opening, limit=MAX_LISTING))


def _matching(root: str, reply: Reply) -> _plain.GrepResult:
    if reply.error is not None and not reply.cut:
        return _plain.GrepResult(error=listing_error(root, reply))
    matches = _grep_matches(_records(reply), root)
    incomplete = reply.cut or reply.end.get("truncated") is True
    # A file that can't be read may have matches too: an empty success would hide that.
    unreadable = reply.number("walk_errors") or reply.number("unreadable")
    return _plain.GrepResult(matches=matches, truncated=bool(incomplete or unreadable))


def _child(parent: str, name: bytes) -> str:
    return join(parent, decode_path(name))


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
        path = _child(root, name) if name else root
        matches.append({"path": path, "line": int(line), "text": text.decode("utf-8", "replace")})
    return matches
