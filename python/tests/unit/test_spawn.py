"""Starting a program that is no `sandy serve`: what is said, and that nothing is left."""

from __future__ import annotations

import os
import pathlib
import time

import pytest
from fake_serve import FakeServe

from sandy import Sandbox, SandboxStartError, _process


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    """The file that will be started as `sandy`."""
    monkeypatch.setenv("SANDY_PROGRAMS", str(tmp_path))
    monkeypatch.setattr(_process, "_current", None)
    return tmp_path / "sandy"


def write(stub: pathlib.Path, script: str) -> None:
    stub.write_text(f"#!/bin/sh\n{script}\n")
    stub.chmod(0o755)


def test_what_a_failing_program_says_is_told(stub: pathlib.Path) -> None:
    write(stub, "echo something is missing >&2; exit 3")
    with pytest.raises(SandboxStartError) as caught:
        Sandbox()
    assert str(caught.value).startswith("sandy serve: sandy serve ended (exit status 3): something is missing\nhint: ")


def test_a_program_that_hangs_is_ended(stub: pathlib.Path, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(_process, "HELLO_PATIENCE", 0.3)
    write(stub, f"echo $$ > {tmp_path}/pid; exec sleep 100")
    before = time.monotonic()
    with pytest.raises(SandboxStartError, match="no answer within"):
        Sandbox()
    assert time.monotonic() - before < 3
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_program_that_can_not_be_executed(stub: pathlib.Path) -> None:
    stub.write_text("#!/nonexistent/interpreter\n")
    stub.chmod(0o755)
    with pytest.raises(SandboxStartError, match="No such file"):
        Sandbox()


def test_the_child_has_its_own_session_and_no_stray_descriptors(stub: pathlib.Path, tmp_path: pathlib.Path) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    write(
        stub,
        f'ls -l /proc/$$/fd > {tmp_path}/fds; cut -d" " -f6 /proc/$$/stat > {tmp_path}/sid; echo $$ $PWD $@ > {tmp_path}/pid',
    )
    with pytest.raises(SandboxStartError):
        Sandbox()
    os.close(reader)
    os.close(writer)
    pid, directory, *arguments = (tmp_path / "pid").read_text().split()
    assert (tmp_path / "sid").read_text().strip() == pid
    assert directory == "/"
    assert arguments[:2] == ["serve", "--fd"]
    targets = [line.split(" -> ")[1] for line in (tmp_path / "fds").read_text().splitlines() if " -> " in line]
    assert not [target for target in targets if target.startswith("pipe:")]
    assert len([target for target in targets if target.startswith("socket:")]) == 1


@pytest.mark.parametrize(
    "answer", [{}, {"sandbox": 5, "args": [0, 0, 0]}, {"sandbox": "x", "args": []}, {"sandbox": "x", "args": [9]}]
)
def test_an_impossible_answer_is_no_sandbox(serve: FakeServe, answer: dict[str, object]) -> None:
    serve.on["create"] = lambda request: request.peer.send({"id": request.header["id"], "ev": "end", **answer})
    with pytest.raises(SandboxStartError):
        Sandbox()
