"""The base of all of a sandbox's parts: which sandbox of which server it is, and how requests get there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from sandy._errors import SandboxError
from sandy._exchange import request, start

if TYPE_CHECKING:
    from sandy._exchange import Exchange
    from sandy._place import Place
    from sandy._server import Server

T = TypeVar("T")

ALIVE_PATIENCE: Final = 10.0
"""Seconds that a server has to say whether a sandbox runs."""


class Connected:
    """A sandbox that runs. Its subclasses set the attributes."""

    _serve: Server
    _place: Place
    _degraded: tuple[str, ...]
    _closed: bool
    _keep: int
    _timeout: float

    @property
    def id(self) -> str:
        """The sandbox's name, unique on this machine."""
        return self._place.id

    @property
    def degraded(self) -> tuple[str, ...]:
        """What the machine does not enforce of what is on by default, such as `limits.memory`."""
        return self._degraded

    def _call(self, exchange: Exchange[T]) -> T:
        self._check_open()
        return self._serve.run(exchange)

    async def _acall(self, exchange: Exchange[T]) -> T:
        self._check_open()
        return await self._serve.arun(exchange)

    def _alive(self) -> bool:
        """Whether it may be used, as far as is known without asking."""
        return not self._closed and self._serve.usable

    def _ask_alive(self) -> Exchange[bool]:
        """Whether it runs, says the server."""
        reply = yield from request(start("describe", patience=ALIVE_PATIENCE, sandbox=self._place.id))
        return reply.error is None

    def _check_open(self) -> None:
        if self._closed:
            msg = f"sandbox {self._place.id} is closed"
            raise SandboxError(msg)
