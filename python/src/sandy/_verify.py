"""The attack suite: `sandy verify` on a sandbox's policy, and what it says."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from sandy._arguments import check_texts
from sandy._errors import ProtocolError, SandboxError, SandboxStartError
from sandy._programs import find_sandy

Verdict = Literal["pass", "fail", "untried"]

CLASSES: Final = ("network", "sockets", "syscalls", "files", "processes", "host-side", "limits")
_VERSION: Final = 1
_PATIENCE: Final = 120.0
_FOUND: Final = (0, 1)
_CANNOT_START: Final = 125


@dataclass(frozen=True, slots=True)
class Finding:
    """One attack, and what became of it.

    Attributes:
        name: A word for it that stays: `"read-home"`.
        attack_class: `"network"`, `"sockets"`, `"syscalls"`, `"files"`, `"processes"`, `"host-side"` or `"limits"`.
        attack: What was tried, in words.
        verdict: `"pass"`: refused. `"fail"`: it succeeded, or nothing shows that it did not. `"untried"`: it is not possible to
            try it on this machine, since it does not succeed outside a sandbox either.
        detail: What happened, or why it can't be tried.
        allowed_by: Of a failure, where that is known, what in the policy allows it; else empty.
    """

    name: str
    attack_class: str
    attack: str
    verdict: Verdict
    detail: str
    allowed_by: str


@dataclass(frozen=True, slots=True)
class Verification:
    """All attacks of a run.

    Attributes:
        findings: Each attack.
        degraded: The policy's limits that this machine does not enforce.
        seconds: How long it took.
    """

    findings: tuple[Finding, ...]
    degraded: tuple[str, ...]
    seconds: float

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The attacks that succeeded."""
        return tuple(finding for finding in self.findings if finding.verdict == "fail")

    @property
    def passed(self) -> bool:
        """Whether none succeeded."""
        return not self.failures


def check_classes(classes: object) -> list[str]:
    """The names of attack classes.

    Raises:
        TypeError: If it is something else.
        ValueError: If there is no such class.
    """
    names = check_texts("classes", classes)
    for name in names:
        if name not in CLASSES:
            msg = f"classes has {name!r}: there are {', '.join(CLASSES)}"
            raise ValueError(msg)
    return names


def run_verify(document: bytes, classes: Iterable[str]) -> Verification:
    """Attacks fresh sandboxes of a policy.

    Raises:
        SandboxStartError: If there is no program `sandy`, or no sandbox can be started.
        SandboxError: If it does not end, or fails otherwise.
    """
    words = [word for name in classes for word in ("--class", name)]
    try:
        done = subprocess.run(  # noqa: S603 - found by find_sandy; the words are ours
            [find_sandy(), "verify", "--json", "--policy", "-", *words],
            input=document,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        msg = f"sandy verify did not end within {_PATIENCE:.0f} s"
        raise SandboxError(msg) from None
    said = done.stderr.decode(errors="replace").strip().removeprefix("sandy: ")
    if done.returncode == _CANNOT_START:
        raise SandboxStartError.from_text(said)
    if done.returncode not in _FOUND:
        raise SandboxError(said or f"sandy verify ended with status {done.returncode}")
    found = read_verification(done.stdout)
    if found.passed != (done.returncode == 0):
        msg = f"sandy verify ended with status {done.returncode} and {len(found.failures)} failures"
        raise ProtocolError(msg)
    return found


def read_verification(text: bytes) -> Verification:
    """What `sandy verify --json` prints.

    Raises:
        ProtocolError: If it is something else.
    """
    try:
        document = json.loads(text)
        if document["version"] != _VERSION:
            msg = f"sandy verify speaks version {document['version']!r}, and this package version {_VERSION}"
            raise ProtocolError(msg)
        degraded = tuple(_text(word) for word in document["degraded"])
        return Verification(tuple(map(_finding, document["attacks"])), degraded, float(document["seconds"]))
    except (ValueError, KeyError, TypeError) as error:
        msg = f"an impossible answer of sandy verify: {error!r}"
        raise ProtocolError(msg) from error


def _finding(attack: dict[str, Any]) -> Finding:
    verdict = attack["verdict"]
    if verdict not in ("pass", "fail", "untried"):
        raise ValueError(verdict)
    name, attack_class, words, detail = (_text(attack[key]) for key in ("name", "class", "attack", "detail"))
    return Finding(name, attack_class, words, verdict, detail, _text(attack.get("allowed_by", "")))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
