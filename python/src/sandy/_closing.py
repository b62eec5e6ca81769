"""What can be closed, as a context manager of both kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


class Closing(ABC):
    """`with` and `async with` close it at their end."""

    @abstractmethod
    def close(self) -> None:
        """Closes it. May be called again."""

    @abstractmethod
    async def aclose(self) -> None:
        """As `close`."""

    def __enter__(self) -> Self:
        """Is itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Closes it."""
        self.close()

    async def __aenter__(self) -> Self:
        """Is itself."""
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Closes it."""
        await self.aclose()
