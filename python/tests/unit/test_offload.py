"""Large output of an agent's command: a file in the sandbox, and a preview."""

from __future__ import annotations

from typing import Any

import pytest
from fake_serve import FakeServe, Request

from deepagents_sandbox import ExecuteResponse, Sandbox
from deepagents_sandbox._offload import preview

ENDED: dict[str, Any] = {"wall_ms": 1, "user_ms": 1, "system_ms": 1, "max_rss_kib": 1}


def prints(output: bytes, **end: Any) -> Any:
    def handler(request: Request) -> None:
        if output:
            request.event("stdout", output)
        fields: dict[str, Any] = {"reason": "exited", "code": 0} | ENDED | end
        request.end(**fields)

    return handler


def test_small_output_is_returned(serve: FakeServe) -> None:
    serve.on["exec"] = prints(b"x" * 100, code=3)
    done = Sandbox().execute_with_offload("make", "/large/x", max_inline_bytes=100)
    assert (done.offloaded, done.response.output, done.response.exit_code) == (False, "x" * 100, 3)
    request = serve.requests("exec")[0]
    assert request.args == [b"make", b""]  # as it is, not wrapped
    assert request.header["keep"] == 10_485_760
    assert serve.requests("write") == []


@pytest.mark.parametrize(("wanted", "keep"), [(5000, 5000), (1 << 40, 67_108_864)])
def test_the_capture_limit(serve: FakeServe, wanted: int, keep: int) -> None:
    Sandbox().execute_with_offload("make", "/large/x", max_inline_bytes=100, max_capture_bytes=wanted, timeout=7)
    header = serve.requests("exec")[0].header
    assert (header["keep"], header["timeout_ms"]) == (keep, 7000)


async def test_output_before_a_time_limit_is_kept(serve: FakeServe) -> None:
    note = "[sandy] the command timed out after 7 s; it and all that it started were killed\n"
    sandbox = Sandbox(timeout=7)
    serve.on["exec"] = prints(b"so far", reason="timed_out")
    for done in (
        sandbox.execute_with_offload("make", "/large/x", max_inline_bytes=100),
        await sandbox.aexecute_with_offload("make", "/large/x", max_inline_bytes=100),
    ):
        assert (done.offloaded, done.response.output, done.response.exit_code) == (False, f"so far\n{note}", 124)
    lines = "".join(f"{n}\n" for n in range(100))
    serve.on["exec"] = prints(lines.encode(), reason="timed_out")
    for done in (
        sandbox.execute_with_offload("make", "/large/x", max_inline_bytes=100),
        await sandbox.aexecute_with_offload("make", "/large/x", max_inline_bytes=100),
    ):
        assert (done.offloaded, done.response.exit_code, done.preview_has_truncation_marker) == (True, 124, True)
        assert done.response.output == f"0\n1\n2\n3\n4\n... [91 lines truncated] ...\n96\n97\n98\n99\n{note}"
        request = serve.requests("write")[-1]
        assert (request.args, request.data) == ([b"/large/x"], (lines + note).encode())


def test_the_file_has_the_bytes_as_they_were(serve: FakeServe) -> None:
    output = b"\xff\0" * 100
    serve.on["exec"] = prints(output)
    assert Sandbox().execute_with_offload("x", "/large/x", max_inline_bytes=100).offloaded
    assert serve.requests("write")[0].data == output


def test_output_that_can_not_be_stored_is_said_to_be_cut(serve: FakeServe) -> None:
    serve.on["exec"] = prints(b"x\n" * 1000)
    serve.on["write"] = lambda request: request.end(error="no_space", detail="write")
    done = Sandbox().execute_with_offload("x", "/large/x", max_inline_bytes=100)
    assert (done.offloaded, done.response.truncated, done.preview_has_truncation_marker) == (False, True, False)
    assert "could not be stored in /large/x: no space is left there" in done.response.output
    assert len(done.response.output) < 300


def test_what_goes_wrong_is_reported(serve: FakeServe) -> None:
    sandbox = Sandbox()
    serve.on["exec"] = lambda request: request.end(error="no_sandbox", detail="its agent died")
    done = sandbox.execute_with_offload("x", "/large/x", max_inline_bytes=1)
    assert (done.offloaded, done.response.exit_code) == (False, 125)
    assert done.response.output == "[sandy] the sandbox is gone: its agent died\n"
    assert sandbox.execute_with_offload("\ud800", "/large/x", max_inline_bytes=1).response.exit_code == 125
    sandbox.close()
    assert "closed" in sandbox.execute_with_offload("x", "/large/x", max_inline_bytes=1).response.output


def test_a_subclass_sees_the_commands_of_agents(serve: FakeServe) -> None:
    seen: list[str] = []

    class Watched(Sandbox):
        def execute(self, command: str, *, timeout: int | None = None, **options: Any) -> ExecuteResponse:
            seen.append(command)
            return super().execute(command, timeout=timeout, **options)

    Watched().execute_with_offload("make", "/large/x", max_inline_bytes=100)
    assert len(seen) == 1
    assert "make" in seen[0]


def test_previews() -> None:
    assert preview("a" * 10_000).text == f"{'a' * 2000}\n... [long lines are cut here] ...\n{'a' * 2000}"
    assert not preview("a" * 10_000).marked
    wide = preview("ü" * 3_000 + "\nx" * 20)
    assert wide.marked
    assert wide.text.startswith("ü" * 1000 + "\n... [long lines are cut here] ...\n... [11 lines truncated] ...\nx\n")
    assert preview("\n".join(map(str, range(12)))).text == "0\n1\n2\n3\n4\n... [2 lines truncated] ...\n7\n8\n9\n10\n11"
