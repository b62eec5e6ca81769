"""Whatever ends a call early ends its command, with all that it started."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandy import Sandbox

Processes = Callable[[], list[str]]
Until = Callable[[Callable[[], object]], None]


class OwnError(Exception):
    """A fault of the caller's own code."""


CAUSES: list[type[BaseException]] = [OwnError, TypeError, OSError, KeyboardInterrupt, SystemExit, GeneratorExit]


@pytest.fixture
def command(marker: str) -> str:
    """Can't be ended politely, and has a descendant that left its process group."""
    return f"trap '' TERM INT HUP; (setsid sleep {marker} &); echo up; cat; sleep {marker}"


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("where", ["stdin", "on_output"])
def test_exceptions_of_the_caller(
    where: str, cause: type[BaseException], command: str, processes: Processes, until: Until
) -> None:
    def stdin() -> Iterator[bytes]:
        yield b"x"
        until(lambda: len(processes()) >= 1)
        raise cause

    def on_output(_stream: str, _data: bytes) -> None:
        until(lambda: len(processes()) >= 1)
        raise cause

    given: dict[str, Any] = {"stdin": stdin()} if where == "stdin" else {"on_output": on_output}
    with Sandbox() as sandbox:
        with pytest.raises(cause):
            sandbox.run(command, **given)
        until(lambda: processes() == [])
        assert sandbox.run("echo on").stdout == b"on\n"

        async def use() -> None:
            again: dict[str, Any] = {"stdin": stdin()} if where == "stdin" else {"on_output": on_output}
            await sandbox.arun(command, **again)

        if cause in (OwnError, TypeError, OSError):  # the others end the event loop too
            with pytest.raises(cause):
                asyncio.run(use())
            until(lambda: processes() == [])


@pytest.mark.parametrize("piece", ["text", 5, None])
def test_pieces_that_are_no_bytes(piece: Any, command: str, processes: Processes, until: Until) -> None:
    def stdin() -> Iterator[Any]:
        until(lambda: len(processes()) >= 1)
        yield piece

    with Sandbox() as sandbox:
        with pytest.raises(TypeError, match="a piece of stdin must be bytes"):
            sandbox.run(command, stdin=stdin())
        until(lambda: processes() == [])


def test_a_file_object_that_gives_text(command: str, processes: Processes, until: Until) -> None:
    class Texts:
        def read(self, _size: int) -> str:
            until(lambda: len(processes()) >= 1)
            return "text"

    with Sandbox() as sandbox:
        with pytest.raises(TypeError, match="open it in binary mode"):
            sandbox.run(command, stdin=Texts())  # type: ignore[arg-type]
        until(lambda: processes() == [])
        with pytest.raises(TypeError, match="opened in binary mode"):
            sandbox.run(command, stdin=io.StringIO("x"))  # type: ignore[arg-type]
        assert processes() == []


async def test_a_cancelled_task_with_input(command: str, processes: Processes, until: Until) -> None:
    async with Sandbox() as sandbox:
        task = asyncio.create_task(sandbox.arun(command, stdin=io.BytesIO(b"x" * 3_000_000)))
        await asyncio.to_thread(until, lambda: len(processes()) >= 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(until, lambda: processes() == [])


def test_at_once(command: str, processes: Processes, until: Until) -> None:
    def stdin() -> Iterator[bytes]:
        raise OwnError
        yield b""

    with Sandbox() as sandbox:
        for _ in range(5):
            with pytest.raises(OwnError):
                sandbox.run(command, stdin=stdin())
        until(lambda: processes() == [])
        # Not at once: the server hears of the end when its connection closes, and the last command may only just have begun.
        until(lambda: sandbox.run("ps -e -o args= | grep -c '[t]rap'").stdout == b"0\n")
