"""The sentences that file operations answer with, for a model to read.

They are the ones that deepagents' middleware and its standard tests know, so that an agent meets the same words whichever
backend it has. `deepagents_sandbox` puts deepagents' own texts in the fields of `Texts`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sandy._exchange import Reply

_IMAGES: Final = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".ico", ".tiff", ".heic")
_SOUND_AND_FILM: Final = (".mp3", ".wav", ".ogg", ".flac", ".m4a", ".aac", ".mp4", ".mov", ".avi", ".mkv", ".webm", ".mpeg")
_DOCUMENTS: Final = (".pdf", ".ppt", ".pptx", ".doc", ".docx", ".xls", ".xlsx", ".parquet")
_ARCHIVES: Final = (".zip", ".gz", ".bz2", ".xz", ".zst", ".tar", ".7z", ".whl")
_CODE: Final = (".so", ".o", ".a", ".exe", ".bin", ".pyc", ".class")
_BINARY_SUFFIXES: Final = frozenset(_IMAGES + _SOUND_AND_FILM + _DOCUMENTS + _ARCHIVES + _CODE)

_WORDS: Final = {
    "not_a_directory": "not a directory",
    "not_a_file": "not a regular file",
    "read_only": "the file system is read-only there",
    "no_space": "no space is left there",
    "too_large": "too large",
    "exists": "it exists already",
    "no_change": "old_string and new_string are the same",
}


def is_binary_name(path: str) -> bool:
    """Whether a file of this name is shown as bytes, whatever is in it."""
    return PurePosixPath(path).suffix.lower() in _BINARY_SUFFIXES


@dataclass(frozen=True, slots=True)
class Texts:
    """What may differ between users of the same operations."""

    empty_file: str = "(the file is empty)"
    empty_old_string: str = "Error: old_string is empty: give the exact text to replace."
    truncated: str = "\n\n[The page was cut at its size limit. Go on with a larger offset, or a smaller limit.]"
    max_binary: int = 512_000
    is_binary: Callable[[str], bool] = is_binary_name


def transfer_error(reply: Reply) -> str:
    """The error of an upload or a download: one of deepagents' four words, or a sentence."""
    error = reply.error or "io"
    if error == "not_a_directory":
        return "file_not_found"
    if error in ("file_not_found", "permission_denied", "is_directory", "invalid_path"):
        return error
    return sentence(reply)


def sentence(reply: Reply) -> str:
    """What went wrong, as words for a person."""
    error = reply.error or "io"
    words = _WORDS.get(error)
    if error == "no_sandbox":
        words = "the sandbox is gone"
    if words is None:
        return reply.detail or error
    return f"{words}: {reply.detail}" if reply.detail else words


def read_error(path: str, reply: Reply, texts: Texts) -> str:
    """The error of a read."""
    error = reply.error
    if error == "offset":
        offset, lines = reply.number("offset"), reply.number("lines")
        return f"File '{path}': Line offset {offset} exceeds file length ({lines} lines)"
    if error == "too_large":
        return f"File '{path}': Binary file exceeds maximum preview size of {texts.max_binary} bytes"
    if error in ("is_directory", "not_a_directory"):
        error = "not_a_file" if error == "is_directory" else "file_not_found"
    if error in ("file_not_found", "not_a_file", "permission_denied", "invalid_path"):
        return f"File '{path}': {error}"
    return f"File '{path}': {sentence(reply)}"


def edit_error(path: str, old: str, reply: Reply, texts: Texts) -> str:
    """The error of an edit."""
    match reply.error:
        case "file_not_found" | "not_a_directory":
            return f"Error: File '{path}' not found"
        case "permission_denied":
            return f"Error: Permission denied editing file '{path}'"
        case "not_a_file" | "is_directory":
            return f"Error: '{path}' is not a regular file"
        case "not_a_text_file":
            return f"Error: File '{path}' is not a text file"
        case "string_not_found":
            return f"Error: String not found in file: '{old}'"
        case "multiple_occurrences":
            return f"Error: String '{old}' appears multiple times. Use replace_all=True to replace all occurrences."
        case "empty_old_string":
            return texts.empty_old_string
        case _:
            return f"Error editing file '{path}': {sentence(reply)}"


def listing_error(path: str, reply: Reply) -> str:
    """The error of ls, glob and grep."""
    error = "path_not_found" if reply.error == "file_not_found" else reply.error
    if error in (
        "path_not_found",
        "not_a_directory",
        "permission_denied",
        "invalid_pattern",
        "pattern_too_broad",
        "invalid_path",
    ):
        return f"Path '{path}': {error}"
    return f"Path '{path}': {sentence(reply)}"
