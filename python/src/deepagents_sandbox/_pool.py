"""Pools of backends."""

from __future__ import annotations

from deepagents_sandbox._sandbox import Sandbox
from sandy._pool import BasePool


class SandboxPool(BasePool[Sandbox]):
    """As `sandy.SandboxPool`, of backends for `create_deep_agent`."""

    _make = Sandbox
