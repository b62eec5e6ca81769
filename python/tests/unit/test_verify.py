"""`Sandbox.verify`: what `sandy verify` is asked, and what is made of its answer. A program of the test's stands in for it."""

from __future__ import annotations

import asyncio
import json
import pathlib
import shlex
from collections.abc import Callable
from typing import Any

import pytest
from fake_serve import FakeServe

from sandy import ProtocolError, Sandbox, SandboxError, SandboxStartError, Verification
from sandy._verify import read_verification

PASSED: dict[str, Any] = {
    "name": "read-home",
    "class": "files",
    "rows": [37],
    "attack": "read a file of your home directory",
    "verdict": "pass",
    "detail": "refused: ENOENT",
}
FAILED = {**PASSED, "name": "write-home", "verdict": "fail", "detail": "succeeded", "allowed_by": "--write /home/me"}
UNTRIED = {**PASSED, "name": "x32", "class": "syscalls", "verdict": "untried", "detail": "refused outside a sandbox too: ENOSYS"}


def answer(*attacks: dict[str, Any], **other: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "sandy": "0.1.0",
        "passed": True,
        "seconds": 1.5,
        "degraded": ["limits.memory"],
        "attacks": list(attacks),
        **other,
    }


Program = Callable[..., pathlib.Path]


@pytest.fixture
def program(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Makes a `sandy` that keeps its arguments and input, prints this, and ends with this status."""

    def make(text: str, status: int = 0, error: str = "") -> pathlib.Path:
        script = (
            f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {tmp_path}/arguments\ncat > {tmp_path}/input\n"
            f"printf %s {shlex.quote(text)}\nprintf %s {shlex.quote(error)} >&2\nexit {status}\n"
        )
        (tmp_path / "sandy").write_text(script)
        (tmp_path / "sandy").chmod(0o755)
        monkeypatch.setenv("SANDY_PROGRAMS", str(tmp_path))
        return tmp_path

    return make


def test_the_policy_and_what_was_found(serve: FakeServe, program: Program, tmp_path: pathlib.Path) -> None:
    directory = program(json.dumps(answer(PASSED, FAILED, UNTRIED, passed=False)), 1)
    found = Sandbox(read=[tmp_path], seccomp="strict").verify(classes=["files", "syscalls"])
    assert (directory / "arguments").read_text().split() == [
        "verify", "--json", "--policy", "-", "--class", "files", "--class", "syscalls",
    ]  # fmt: skip
    policy = json.loads((directory / "input").read_text())
    assert policy["filesystem"]["read"] == [str(tmp_path)]
    assert policy["seccomp"] == "strict"
    assert [finding.verdict for finding in found.findings] == ["pass", "fail", "untried"]
    assert not found.passed
    assert [finding.name for finding in found.failures] == ["write-home"]
    assert found.failures[0].allowed_by == "--write /home/me"
    assert found.findings[0].allowed_by == ""
    assert (found.degraded, found.seconds, found.findings[2].attack_class) == (("limits.memory",), 1.5, "syscalls")


def test_all_was_refused(serve: FakeServe, program: Program) -> None:
    directory = program(json.dumps(answer(PASSED)))
    found = asyncio.run(Sandbox().averify())
    assert isinstance(found, Verification)
    assert found.passed
    assert found.failures == ()
    assert (directory / "arguments").read_text().split() == ["verify", "--json", "--policy", "-"]


def test_no_sandbox_can_be_started(serve: FakeServe, program: Program) -> None:
    program("", 125, "sandy: bubblewrap: there is no program bwrap\nhint: install it\n")
    with pytest.raises(SandboxStartError) as caught:
        Sandbox().verify()
    assert (caught.value.what, caught.value.fix) == ("bubblewrap", "install it")


def test_other_ends(serve: FakeServe, program: Program) -> None:
    program("", 2, "sandy: something else\n")
    with pytest.raises(SandboxError, match=r"^something else$"):
        Sandbox().verify()
    program("", 143)
    with pytest.raises(SandboxError, match="status 143"):
        Sandbox().verify()


def test_a_status_that_says_otherwise(serve: FakeServe, program: Program) -> None:
    for status, attack in ((0, FAILED), (1, PASSED)):
        program(json.dumps(answer(attack)), status)
        with pytest.raises(ProtocolError, match=f"status {status}"):
            Sandbox().verify()


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        answer(version=2),
        answer(attacks=None),
        answer(attacks=[7]),
        answer({**PASSED, "verdict": "maybe"}),
        answer({**PASSED, "detail": 7}),
        answer({key: value for key, value in PASSED.items() if key != "class"}),
        answer(degraded=[1]),
        answer(seconds="soon"),
    ],
)
def test_impossible_answers(document: object) -> None:
    with pytest.raises(ProtocolError):
        read_verification(json.dumps(document).encode())


def test_an_answer_that_is_no_json() -> None:
    with pytest.raises(ProtocolError):
        read_verification(b"{")


def test_classes(serve: FakeServe) -> None:
    with pytest.raises(ValueError, match=r"'file'.*network, sockets"):
        Sandbox().verify(classes=["file"])
    with pytest.raises(TypeError, match="classes"):
        Sandbox().verify(classes=7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="classes"):
        Sandbox().verify(classes="files")


def test_a_policy_that_is_not_known(serve: FakeServe) -> None:
    sandbox = Sandbox()
    sandbox._document = None  # as of one that was attached to
    with pytest.raises(SandboxError, match="isn't known here"):
        sandbox.verify()
    with pytest.raises(SandboxError, match="isn't known here"):
        asyncio.run(sandbox.averify())
