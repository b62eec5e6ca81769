"""The results as plain objects, for use without deepagents. Their shapes are in `_results`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sandy._results import FileData, FileInfo, GrepMatch


@dataclass(frozen=True, slots=True)
class ExecuteResponse:
    """See `sandy.ExecuteResponse`."""

    output: str
    exit_code: int | None = None
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class FileUploadResponse:
    """See `sandy.FileUploadResponse`."""

    path: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class FileDownloadResponse:
    """See `sandy.FileDownloadResponse`."""

    path: str
    content: bytes | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ReadResult:
    """See `sandy.ReadResult`."""

    error: str | None = None
    file_data: FileData | None = None
    total_lines: int | None = None
    start_line: int | None = None
    end_line: int | None = None
    next_offset: int | None = None
    no_lines_requested: bool = False


@dataclass(frozen=True, slots=True)
class WriteResult:
    """See `sandy.WriteResult`."""

    error: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class EditResult:
    """See `sandy.EditResult`."""

    error: str | None = None
    path: str | None = None
    occurrences: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """See `sandy.DeleteResult`."""

    error: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class LsResult:
    """See `sandy.LsResult`."""

    error: str | None = None
    entries: list[FileInfo] | None = None


@dataclass(frozen=True, slots=True)
class GlobResult:
    """See `sandy.GlobResult`."""

    error: str | None = None
    matches: list[FileInfo] | None = None
    truncated: bool = False
    truncation_reason: Literal["budget", "unreadable"] | None = None


@dataclass(frozen=True, slots=True)
class GrepResult:
    """See `sandy.GrepResult`."""

    error: str | None = None
    matches: list[GrepMatch] | None = None
    truncated: bool = False
