from __future__ import annotations

import os
import pathlib
import socket
import stat
from typing import Any

import pytest
from fake_serve import FakeServe

from sandy import Sandbox, SandboxError, SandboxStartError, _kept_server
from sandy._create import Keep, check_kept

RECORD = {
    "id": "0123456789abcdef",
    "name": "n",
    "state": "running",
    "created_ms": 1500,
    "idle_ms": 2500,
    "socket": "/s",
    "pid": 1,
}


@pytest.fixture
def program(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A `sandy` that is a script of the test's."""
    monkeypatch.setenv("SANDY_PROGRAMS", str(tmp_path))
    return tmp_path / "sandy"


def script(program: pathlib.Path, text: str) -> None:
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(
    ("idle", "milliseconds"),
    [
        (90, 90_000),
        (0.5, 500),
        ("30m", 1_800_000),
        ("1h30m", 5_400_000),
        ("1d 2h", 93_600_000),
        ("500ms", 500),
        ("1.5h", 5_400_000),
    ],
)
def test_idle_timeouts(idle: float | str, milliseconds: int) -> None:
    assert check_kept(True, None, idle, None) == Keep(None, milliseconds, None)


@pytest.mark.parametrize("idle", [-1, float("nan"), "", "30", "m", "30 minutes", "1h-5m"])
def test_senseless_idle_timeouts(idle: float | str) -> None:
    with pytest.raises(ValueError, match="idle_timeout is"):
        check_kept(True, None, idle, None)


def test_what_is_for_kept_ones_only(serve: FakeServe) -> None:
    sandbox = Sandbox()
    assert (sandbox.kept, sandbox.name) == (False, "")
    for end in (sandbox.stop, sandbox.remove):
        with pytest.raises(SandboxError, match="for a sandbox that is kept"):
            end()
    assert not serve.requests("close")


def test_the_list(program: pathlib.Path) -> None:
    script(program, 'test "$*" = \'ps --json\' && cat "$(dirname $0)/said"')
    said = program.with_name("said")
    said.write_text("[]")
    assert Sandbox.list() == []
    said.write_text(str([RECORD, {**RECORD, "state": "stopped", "name": "", "idle_ms": 0}]).replace("'", '"'))
    first, second = Sandbox.list()
    assert (first.id, first.name, first.running, first.idle_timeout, first.created_at.timestamp()) == (
        RECORD["id"],
        "n",
        True,
        2.5,
        1.5,
    )
    assert (second.running, second.idle_timeout) == (False, None)
    said.write_text("no")
    with pytest.raises(SandboxError, match="no JSON"):
        Sandbox.list()
    said.write_text("[{}]")
    with pytest.raises(SandboxError, match="install the same version"):
        Sandbox.list()


def test_a_verb_that_fails(program: pathlib.Path) -> None:
    script(program, "echo 'sandy: x: it runs' >&2; exit 1")
    with pytest.raises(SandboxError, match=r"^x: it runs$"):
        Sandbox.discard("x")


def test_a_server_that_does_not_start(program: pathlib.Path) -> None:
    script(program, "echo 'sandy: no: not here' >&2; exit 125")
    with pytest.raises(SandboxStartError, match="not here"):
        Sandbox(keep=True)
    script(program, "exit 0")
    with pytest.raises(SandboxStartError, match="ended"):
        Sandbox(keep=True)


@pytest.mark.parametrize("depth", [1, 30])
def test_sockets_at_paths_of_any_length(tmp_path: pathlib.Path, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path.joinpath(*["directory"] * depth)
    directory.mkdir(parents=True)
    monkeypatch.chdir(directory)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        listener.listen()
        before = len(os.listdir("/proc/self/fd"))
        with _kept_server.connect(os.fsencode(directory / "s")) as connected:
            assert connected.getpeername()
        with pytest.raises(OSError, match="No such file"):
            _kept_server.connect(os.fsencode(directory / "t"))
        assert len(os.listdir("/proc/self/fd")) == before


def test_entries_are_found_by_id_and_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def entries() -> list[Any]:
        return [_kept_server.Entry(RECORD), _kept_server.Entry({**RECORD, "id": "f" * 16, "name": "m", "state": "stopped"})]

    monkeypatch.setattr(_kept_server, "entries", entries)
    assert _kept_server.find("n").id == _kept_server.find("0123456789abcdef").id
    with pytest.raises(SandboxError, match="no kept sandbox has the id or the name 'x'"):
        Sandbox.attach("x")
    with pytest.raises(SandboxError, match="has stopped"):
        Sandbox.attach("m")
