"""The sandboxes of the terminal agent dcode (deepagents-code), which finds this by its entry-point group."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from deepagents_sandbox._sandbox import Sandbox
from sandy import SandboxError

if TYPE_CHECKING:
    from deepagents_code.integrations.sandbox_provider import SandboxProviderMetadata

NAME = "sandy"
PACKAGE = "deepagents-sandbox"
WORKSPACE = "/workspace"


class Provider:
    """Makes kept sandboxes on this machine: `dcode --sandbox sandy`, and `--sandbox-id` to come back from another process.

    It has the methods of dcode's `SandboxProvider`, and is none, so that it can be imported without dcode.
    """

    @property
    def metadata(self) -> SandboxProviderMetadata:
        """What dcode says of it."""
        from deepagents_code.integrations.sandbox_provider import (  # noqa: PLC0415 - it is there where it asks
            SandboxInstallHint,
            SandboxProviderMetadata,
        )

        return SandboxProviderMetadata(
            name=NAME,
            working_dir=WORKSPACE,
            install=SandboxInstallHint(kind="package", name=PACKAGE),
            supports_sandbox_id=True,
            supports_snapshot_name=False,
        )

    def get_or_create(self, *, sandbox_id: str | None = None, **kwargs: Any) -> Sandbox:  # noqa: ANN401 - dcode's signature
        """A new sandbox, or one that was made before; where that has stopped, its workspace and policy are gone on with.

        Args:
            sandbox_id: The id or name of a kept one; None makes one.
            kwargs: Arguments of `Sandbox` for a new one: the `params` of dcode's configuration.

        Raises:
            SandboxError: If it can't start. dcode's SandboxNotFoundError, if there is none of that id.
        """
        if sandbox_id is None:
            return Sandbox(**{"keep": True, **kwargs})
        info = next((info for info in Sandbox.list() if sandbox_id in (info.id, info.name)), None)
        if info is None:
            raise _not_found(sandbox_id)
        return Sandbox.attach(info.id) if info.running else Sandbox(id=info.id)

    def delete(self, *, sandbox_id: str, **_: Any) -> None:  # noqa: ANN401 - dcode's signature
        """Ends a sandbox, and removes its private workspace.

        Raises:
            SandboxError: If that fails. dcode's SandboxNotFoundError, if there is none of that id.
        """
        if not any(sandbox_id in (info.id, info.name) for info in Sandbox.list()):
            raise _not_found(sandbox_id)
        Sandbox.discard(sandbox_id)

    async def aget_or_create(self, *, sandbox_id: str | None = None, **kwargs: Any) -> Sandbox:  # noqa: ANN401
        """As `get_or_create`, in a thread."""
        return await asyncio.to_thread(self.get_or_create, sandbox_id=sandbox_id, **kwargs)

    async def adelete(self, *, sandbox_id: str, **kwargs: Any) -> None:  # noqa: ANN401
        """As `delete`, in a thread."""
        await asyncio.to_thread(self.delete, sandbox_id=sandbox_id, **kwargs)


def _not_found(sandbox_id: str) -> Exception:
    text = f"no kept sandbox has the id or the name {sandbox_id!r}: sandy ps --all lists them"
    try:
        from deepagents_code.integrations.sandbox_provider import SandboxNotFoundError  # noqa: PLC0415 - as above
    except ModuleNotFoundError:
        return SandboxError(text)
    error: Exception = SandboxNotFoundError(text)
    return error
