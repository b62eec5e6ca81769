"""For workers that `multiprocessing` spawns: they import what they run."""

from __future__ import annotations

from sandy import Sandbox


def work(number: int) -> bytes:
    """Has a server of its own."""
    with Sandbox() as sandbox:
        return sandbox.spawn(["cat"], stdin=b"%d" % number).communicate(timeout=30).stdout
