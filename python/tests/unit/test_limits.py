"""What a client sees of a sandbox's limits: what a command met, what it uses, and limits that change."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fake_serve import FakeServe

from sandy import PolicyError, ProtocolError, Sandbox, SandboxError, SandboxGoneError

END: dict[str, Any] = {"wall_ms": 1, "user_ms": 2, "system_ms": 3, "max_rss_kib": 4}
NOTE = "killed: memory limit 64 MiB, peak 64 MiB, by process python3"
USAGE: dict[str, Any] = {
    "memory": 5,
    "memory_peak": 9,
    "cpu_us": 1_500_000,
    "throttled_us": 0,
    "oom_kills": 1,
    "forks_refused": 2,
    "processes": 3,
    "io_read": 7,
    "io_written": 8,
    "cpu_pressure": 0.5,
    "memory_limit": 64 << 20,
    "cpus_limit": 1.5,
    "pids_limit": 40,
}


def test_what_a_command_met(serve: FakeServe) -> None:
    notes = [NOTE, "process limit 20 reached"]
    end = {**END, "signal": 9, "memory_peak": 64 << 20, "limit_notes": notes}
    serve.on["exec"] = lambda request: request.end(**end, reason="out_of_memory")
    outcome = Sandbox().run("true")
    assert (outcome.reason, outcome.exit_code, outcome.memory_peak) == ("out_of_memory", 137, 64 << 20)
    assert outcome.limits_hit == (NOTE, "process limit 20 reached")
    response = Sandbox().execute("true")
    assert response.output == f"[sandy] {NOTE}\n[sandy] process limit 20 reached\n"
    assert response.exit_code == 137


def test_a_command_that_met_none(serve: FakeServe) -> None:
    serve.on["exec"] = lambda request: request.end(**END, reason="exited", code=137)
    outcome = Sandbox().run("true")
    assert (outcome.reason, outcome.memory_peak, outcome.limits_hit) == ("exited", None, ())
    assert Sandbox().execute("true").output == ""


@pytest.mark.parametrize("notes", [7, [7], {"a": 1}])
def test_impossible_notes(serve: FakeServe, notes: object) -> None:
    serve.on["exec"] = lambda request: request.end(**END, reason="exited", code=0, limit_notes=notes)
    with pytest.raises(ProtocolError):
        Sandbox().run("true")


def test_limits_are_changed(serve: FakeServe) -> None:
    serve.on["limits"] = lambda request: request.end()
    sandbox = Sandbox()
    sandbox.set_limits(memory="1G", cpus=1.5)
    asyncio.run(sandbox.aset_limits(pids=40))
    first, second = serve.requests("limits")
    assert json.loads(first.args[0]) == {"version": 1, "limits": {"memory": "1G", "cpus": 1.5}}
    assert json.loads(second.args[0]) == {"version": 1, "limits": {"pids": 40}}
    assert first.header["sandbox"] == "sb1"


def test_limits_that_are_refused(serve: FakeServe) -> None:
    serve.on["limits"] = lambda request: request.end(error="policy", detail="limits.memory: no\nhint: less")
    with pytest.raises(PolicyError, match=r"limits\.memory"):
        Sandbox().set_limits(memory="1Q")
    serve.on["limits"] = lambda request: request.end(error="no_sandbox", detail="it ended")
    with pytest.raises(SandboxGoneError, match="it ended"):
        Sandbox().set_limits(memory="1G")
    with pytest.raises(TypeError, match="memory"):
        Sandbox().set_limits(memory=[1])  # type: ignore[arg-type]


def test_what_it_uses(serve: FakeServe) -> None:
    serve.on["stats"] = lambda request: request.end(**USAGE)
    usage = Sandbox().stats()
    assert (usage.memory, usage.memory_peak, usage.swap, usage.cpu_time, usage.processes) == (5, 9, None, 1.5, 3)
    assert (usage.cpu_pressure, usage.memory_pressure) == (0.5, None)
    assert usage.limits == {"memory": 64 << 20, "cpus": 1.5, "pids": 40}
    assert asyncio.run(Sandbox().astats()) == usage


def test_nobody_counts(serve: FakeServe) -> None:
    serve.on["stats"] = lambda request: request.end(error="no_cgroup", detail="no control group")
    with pytest.raises(SandboxError, match="no control group\nhint: sandy doctor"):
        Sandbox().stats()
    serve.on["stats"] = lambda request: request.end(**{**USAGE, "cpus_limit": "many"})
    with pytest.raises(ProtocolError):
        Sandbox().stats()
