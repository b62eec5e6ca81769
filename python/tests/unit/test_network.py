"""What a client sees of a sandbox's network: refusals in results, and rules that change."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from fake_serve import FakeServe, Request

from sandy import Denial, PolicyError, ProtocolError, Sandbox, SandboxGoneError

END: dict[str, Any] = {"reason": "exited", "code": 6, "wall_ms": 1, "user_ms": 2, "system_ms": 3, "max_rss_kib": 4}


def refused(count: int) -> list[dict[str, Any]]:
    return [{"target": f"{at}.example:443", "reason": "not in the allowlist"} for at in range(count)]


def test_refusals_are_in_the_result(serve: FakeServe) -> None:
    listed = [*refused(1), {"target": "a.example:80", "reason": "no route to host", "failed": True}]
    serve.on["exec"] = lambda request: request.end(**END, denials=listed)
    sandbox = Sandbox(allow_domains=["a.example"])
    assert sandbox.run("true").denials == (
        Denial("0.example:443", "not in the allowlist"),
        Denial("a.example:80", "no route to host", failed=True),
    )
    assert sandbox.execute("true").output == (
        "[sandy] blocked: 0.example:443 (not in the allowlist)\n[sandy] not reached: a.example:80 (no route to host)\n"
    )


def test_a_model_is_not_told_without_end(serve: FakeServe) -> None:
    def handler(request: Request) -> None:
        request.event("stdout", b"out")
        request.end(**END, denials=refused(30))

    serve.on["exec"] = handler
    lines = Sandbox().execute("true").output.splitlines()
    assert lines[0] == "out"
    assert len(lines) == 12
    assert lines[-1] == "[sandy] blocked: 20 more"
    assert len(Sandbox().run("true").denials) == 30


@pytest.mark.parametrize("denials", [7, [7], [{"target": "a"}], {"a": 1}])
def test_impossible_refusals(serve: FakeServe, denials: object) -> None:
    serve.on["exec"] = lambda request: request.end(**END, denials=denials)
    with pytest.raises(ProtocolError):
        Sandbox().run("true")


@pytest.mark.parametrize("name", ["allow", "deny"])
def test_rules_are_changed(serve: FakeServe, name: str) -> None:
    serve.on["network"] = lambda request: request.end()
    sandbox = Sandbox(allow_domains=[])
    getattr(sandbox, f"{name}_domain")("a.example", "*.b.example:8443")
    request = serve.requests("network")[0]
    assert request.args == [b"a.example", b"*.b.example:8443"]
    assert (request.header["sandbox"], request.header["list"]) == ("sb1", name)


async def test_rules_are_changed_in_asyncio(serve: FakeServe) -> None:
    serve.on["network"] = lambda request: request.end()
    sandbox = Sandbox(allow_domains=[])
    await sandbox.aallow_domain("a.example")
    await sandbox.adeny_domain("a.example")
    assert [request.header["list"] for request in serve.requests("network")] == ["allow", "deny"]


def test_a_rule_that_is_none(serve: FakeServe) -> None:
    serve.on["network"] = lambda request: request.end(error="policy", detail='allow: "*": would name every host\nhint: name them')
    with pytest.raises(PolicyError) as caught:
        Sandbox().allow_domain("*")
    assert (caught.value.what, caught.value.fix) == ("allow", "name them")
    with pytest.raises(TypeError, match=r"rules\[0\]"):
        Sandbox().deny_domain(5)  # type: ignore[arg-type]


def test_rules_of_a_sandbox_that_is_gone(serve: FakeServe) -> None:
    serve.on["network"] = lambda request: request.end(error="no_sandbox", detail="it ended")
    with pytest.raises(SandboxGoneError, match="it ended"):
        Sandbox().allow_domain("a.example")


def test_questions_are_answered(serve: FakeServe) -> None:
    targets = ["once.example:443", "always.example:443", "deny.example:443", "wrong.example:80", "raises.example:80"]
    answers: list[tuple[int, str]] = []
    done = threading.Event()

    def handler(request: Request) -> None:
        for at, target in enumerate(targets):
            request.event("question", question=at + 1, target=target)
            answer = request.next()
            assert answer.header["id"] == request.header["id"]
            answers.append((answer.header["question"], answer.header["verdict"]))
        request.end()
        done.set()

    def on_request(target: str) -> str:
        if target.startswith("raises"):
            raise RuntimeError(target)
        return target.partition(".")[0]

    serve.on["questions"] = handler
    Sandbox(allow_domains=[], on_request=on_request)
    assert done.wait(10)
    assert answers == [(1, "once"), (2, "always"), (3, "deny"), (4, "deny"), (5, "deny")]
    assert serve.requests("create")[-1].header["asks"] is True


def test_nobody_is_asked_without_a_callable(serve: FakeServe) -> None:
    Sandbox(allow_domains=[])
    assert "asks" not in serve.requests("create")[-1].header
    assert not serve.requests("questions")
    with pytest.raises(TypeError, match="on_request"):
        Sandbox(on_request="once")  # type: ignore[arg-type]
