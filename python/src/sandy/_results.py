"""What the operations return, as shapes: the same in `sandy` and in `deepagents_sandbox`, which returns deepagents' own objects.

Operations that a model uses report failure in `error`, as a word or a sentence, and don't raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, Protocol, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ExecuteResponse(Protocol):
    """What a command did, for a model to read."""

    @property
    def output(self) -> str:
        """Standard output and standard error in the order in which they were written, and notes that start with `[sandy]`."""

    @property
    def exit_code(self) -> int | None:
        """The exit status: 128+n for signal n, 124 for a time limit, 125 where the sandbox could not run it."""

    @property
    def truncated(self) -> bool:
        """Whether bytes were left out; a note in `output` says where and how many."""


class FileUploadResponse(Protocol):
    """How one file of `upload_files` fared."""

    @property
    def path(self) -> str:
        """The path that was asked for."""

    @property
    def error(self) -> str | None:
        """None, or `file_not_found`, `permission_denied`, `is_directory`, `invalid_path`, or a sentence."""


class FileDownloadResponse(Protocol):
    """How one file of `download_files` fared."""

    @property
    def path(self) -> str:
        """The path that was asked for."""

    @property
    def content(self) -> bytes | None:
        """The content; None on failure."""

    @property
    def error(self) -> str | None:
        """As for `FileUploadResponse`."""


class FileInfo(TypedDict):
    """A file that was listed or found."""

    path: str
    is_dir: NotRequired[bool]


class GrepMatch(TypedDict):
    """A line that has the text. Lines are counted from 1."""

    path: str
    line: int
    text: str


class FileData(TypedDict):
    """Content of a file: text with encoding "utf-8", or bytes with encoding "base64"."""

    content: str
    encoding: str


class ReadResult(Protocol):
    """A page of a file."""

    @property
    def error(self) -> str | None:
        """What went wrong, or None."""

    @property
    def file_data(self) -> Mapping[str, object] | None:
        """`content` and `encoding`; None on failure."""

    @property
    def total_lines(self) -> int | None:
        """Lines of the file, where that could be found out cheaply."""

    @property
    def start_line(self) -> int | None:
        """The first line of the page, counted from 1."""

    @property
    def end_line(self) -> int | None:
        """The last line of the page, counted from 1."""

    @property
    def next_offset(self) -> int | None:
        """The offset of the next page; None where nothing is left."""

    @property
    def no_lines_requested(self) -> bool:
        """Whether the limit was 0, so that the text was not looked at."""


class WriteResult(Protocol):
    """How a write fared."""

    @property
    def error(self) -> str | None:
        """What went wrong, or None."""

    @property
    def path(self) -> str | None:
        """The file; None on failure."""


class EditResult(Protocol):
    """How an edit fared."""

    @property
    def error(self) -> str | None:
        """What went wrong, or None."""

    @property
    def path(self) -> str | None:
        """The file; None on failure."""

    @property
    def occurrences(self) -> int | None:
        """How many times the text was replaced."""


class DeleteResult(Protocol):
    """How a delete fared."""

    @property
    def error(self) -> str | None:
        """What went wrong, or None."""

    @property
    def path(self) -> str | None:
        """What was deleted; None on failure."""


class LsResult(Protocol):
    """A directory's entries."""

    @property
    def error(self) -> str | None:
        """What went wrong, or None."""

    @property
    def entries(self) -> Sequence[Mapping[str, object]] | None:
        """`path` and `is_dir` of each; None on failure."""


class GlobResult(Protocol):
    """Files that match a pattern."""

    @property
    def error(self) -> str | None:
        """What went wrong, or None."""

    @property
    def matches(self) -> Sequence[Mapping[str, object]] | None:
        """`path` and `is_dir` of each; None on failure."""

    @property
    def truncated(self) -> bool:
        """Whether there may be more matches than these."""

    @property
    def truncation_reason(self) -> str | None:
        """`budget` (a narrower search finds the rest) or `unreadable` (it does not)."""


class GrepResult(Protocol):
    """Lines that have a text."""

    @property
    def error(self) -> str | None:
        """What went wrong, or None."""

    @property
    def matches(self) -> Sequence[Mapping[str, object]] | None:
        """`path`, `line` and `text` of each; None on failure."""

    @property
    def truncated(self) -> bool:
        """Whether there may be more matches than these."""
