"""deepagents' own texts and its view of which files are text, for our file operations."""

from __future__ import annotations

from deepagents.backends import utils
from deepagents.backends.sandbox import MAX_BINARY_BYTES, TRUNCATION_MSG
from deepagents.backends.utils import EMPTY_CONTENT_WARNING, EMPTY_OLD_STRING_ERROR

from sandy._texts import Texts, is_binary_name

# deepagents has no public name for its classification by extension; where this one is gone, ours is close to it.
_classify = getattr(utils, "_get_backend_read_file_type", None)


def is_binary(path: str) -> bool:
    """Whether `read` shows a file of this name as bytes, as the middleware of the installed deepagents expects."""
    return is_binary_name(path) if _classify is None else _classify(path) != "text"


TEXTS = Texts(
    empty_file=EMPTY_CONTENT_WARNING,
    empty_old_string=EMPTY_OLD_STRING_ERROR,
    truncated=TRUNCATION_MSG,
    max_binary=MAX_BINARY_BYTES,
    is_binary=is_binary,
)
