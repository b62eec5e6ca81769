"""Kept sandboxes as they are listed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """A sandbox that outlives its creator, as it was when it was listed.

    Attributes:
        id: Its id, for `Sandbox.attach`, or where it does not run for `Sandbox(id=…)`.
        name: The name that it was given; empty where it has none.
        running: Whether it runs; else its workspace is kept.
        created_at: When it was made, in UTC.
        idle_timeout: Seconds without any request after which it ends; None is never.
    """

    id: str
    name: str
    running: bool
    created_at: datetime
    idle_timeout: float | None


def to_time(milliseconds: int) -> datetime:
    """A time of the Unix epoch."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
