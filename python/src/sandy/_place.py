"""Where a request goes, and what the paths of its caller mean there."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A sandbox: its name, and its directories as seen inside."""

    id: str
    workspace: str
    home: str

    def expand(self, path: str) -> str:
        """The path with "~" or "~/" at its start as the home, as a shell in the sandbox has it; "./~" is a file of that name."""
        return f"{self.home.rstrip('/')}{path[1:]}" if path == "~" or path.startswith("~/") else path

    def absolute(self, path: str) -> str:
        """The path as the caller sees it, absolute: relative ones are in the workspace."""
        path = self.expand(path)
        return path if path.startswith("/") else join(self.workspace, path)

    def encode(self, path: str) -> bytes | None:
        """The bytes to send for a path; None as for `encode_path`."""
        return encode_path(self.expand(path))


def join(parent: str, name: str) -> str:
    """A child's path. Names that the agent already made absolute stay as they are."""
    return name if name.startswith("/") else f"{parent.rstrip('/')}/{name}"


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
