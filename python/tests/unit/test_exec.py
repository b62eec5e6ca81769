from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_serve import FakeServe, Request

from sandy import Sandbox, SandboxError, SandboxGoneError


def ends(**end: Any) -> dict[str, Any]:
    return {"wall_ms": 1500, "user_ms": 2, "system_ms": 3, "max_rss_kib": 4, **end}


def test_execute_sends_the_command_as_data(serve: FakeServe) -> None:
    with Sandbox(timeout=7, max_output_bytes=1000) as sandbox:
        assert sandbox.execute("echo 'ü' \udcff\0") == sandbox.execute("echo 'ü' \udcff\0")
    request = serve.requests("exec")[0]
    assert request.args == [b"echo '\xc3\xbc' \xff\0", b""]
    fields = {name: value for name, value in request.header.items() if name not in ("id", "op", "args")}
    assert fields == {"sandbox": "sb1", "shell": True, "keep": 1000, "timeout_ms": 7000}


@pytest.mark.parametrize(("timeout", "sent"), [(None, 1_800_000), (0, None), (3, 3000)])
def test_execute_timeout(serve: FakeServe, timeout: int | None, sent: int | None) -> None:
    Sandbox().execute("true", timeout=timeout)
    assert serve.requests("exec")[0].header.get("timeout_ms") == sent


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf")])
def test_a_senseless_timeout_is_a_value_error(serve: FakeServe, timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        Sandbox().execute("true", timeout=timeout)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="timeout"):
        Sandbox(timeout=timeout)


@pytest.mark.parametrize(
    ("end", "output", "code"),
    [
        (ends(reason="exited", code=3), "out", 3),
        (ends(reason="timed_out"), "out\n[sandy] the command timed out after 5 s; it and all that it started were killed\n", 124),
        (ends(reason="signalled", signal=9, core=False), "out\n[sandy] killed by SIGKILL (signal 9)\n", 137),
        (ends(reason="signalled", signal=40, core=False), "out\n[sandy] killed by signal 40\n", 168),
        (ends(reason="cancelled"), "out\n[sandy] the command was cancelled; it and all that it started were killed\n", 125),
        (
            ends(reason="could_not_start", errno=2, code=127),
            "out\n[sandy] could not start the command: ENOENT: No such file or directory\n",
            127,
        ),
    ],
)
def test_execute_says_what_was_special(serve: FakeServe, end: dict[str, Any], output: str, code: int) -> None:
    def handler(request: Request) -> None:
        request.event("stdout", b"out")
        request.end(**end)

    serve.on["exec"] = handler
    response = Sandbox(timeout=5).execute("x")
    assert (response.output, response.exit_code, response.truncated) == (output, code, False)


@pytest.mark.parametrize("end", [ends(reason="signalled", signal=31), ends(reason="exited", code=159)])
def test_a_refused_system_call_is_explained(serve: FakeServe, end: dict[str, Any]) -> None:
    serve.on["exec"] = lambda request: request.end(**end)
    response = Sandbox().execute("x")
    assert response.output.startswith("[sandy] killed by SIGSYS (signal 31): the seccomp policy refuses")
    assert "32-bit" in response.output
    assert response.exit_code == 159


def test_left_out_bytes_are_counted_also_those_of_cut_characters(serve: FakeServe) -> None:
    def handler(request: Request) -> None:
        request.event("stdout", b"head" + "€".encode()[:2])
        request.event("stdout", "€".encode()[1:] + b"tail", tail=True)
        request.exited(omitted={"stdout": 1000, "stderr": 0})

    serve.on["exec"] = handler
    sandbox = Sandbox()
    response = sandbox.execute("x")
    assert response.truncated
    assert response.output == "head\n[sandy] 1004 bytes of output were left out here\ntail"
    outcome = sandbox.run("x")
    assert (outcome.stdout_omitted, outcome.truncated) == (1000, True)
    assert outcome.stdout == b"head\xe2\x82\n[sandy] 1000 bytes of output were left out here\n\x82\xactail"


def test_output_that_is_not_text(serve: FakeServe) -> None:
    def handler(request: Request) -> None:
        request.event("stdout", b"a\xff\xf0b\0")
        request.exited()

    serve.on["exec"] = handler
    assert Sandbox().execute("x").output == "a��b\0"


def test_output_larger_than_the_window_gets_credit(serve: FakeServe) -> None:
    def handler(request: Request) -> None:
        window, sent = 1_048_576, 0
        while sent < 8_000_000:
            while window < 262_144:
                credit = request.next()
                assert credit.header["op"] == "credit"
                window += credit.header["bytes"]
            request.event("stdout", b"y" * 262_144)
            window -= 262_144
            sent += 262_144
        request.exited()

    serve.on["exec"] = handler
    assert len(Sandbox().execute("x").output) == 31 * 262_144


def test_run_keeps_all_apart(serve: FakeServe) -> None:
    def handler(request: Request) -> None:
        request.event("stdout", b"out")
        request.event("stderr", b"err")
        request.end(**ends(reason="signalled", signal=11, core=True))

    serve.on["exec"] = handler
    outcome = Sandbox().run(["prog", "a b", ""], cwd="/tmp", env={"K": "v=1"}, timeout=1.5)
    assert (outcome.reason, outcome.exit_code, outcome.signal, outcome.core_dumped) == ("signalled", 139, 11, True)
    assert (outcome.stdout, outcome.stderr, outcome.ok) == (b"out", b"err", False)
    assert (outcome.wall_time, outcome.user_time, outcome.system_time, outcome.max_rss) == (1.5, 0.002, 0.003, 4096)
    assert outcome.degraded == ("limits.memory",)
    request = serve.requests("exec")[0]
    assert request.args == [b"prog", b"a b", b"", b"/tmp", b"K=v=1"]
    assert request.header["argc"] == 3
    assert request.header["shell"] is False
    assert request.header["merge"] is False
    assert request.header["timeout_ms"] == 1500


@pytest.mark.parametrize("size", [0, 10, 1_048_576, 5_000_000])
@pytest.mark.parametrize("kind", ["bytes", "file", "pieces"])
def test_stdin_flows_as_credit_allows(serve: FakeServe, size: int, kind: str) -> None:
    got = bytearray()

    def handler(request: Request) -> None:
        assert request.header["stdin"] == "pipe"
        got.extend(request.data)
        owed = 0
        while True:
            frame = request.next()
            if frame.header["op"] == "eof":
                break
            assert frame.header["op"] == "data"
            assert len(frame.data) <= 262_144
            got.extend(frame.data)
            owed += len(frame.data)
            assert owed <= 1_048_576
            if owed > 700_000:
                request.event("credit", bytes=owed)
                owed = 0
        request.exited()

    serve.on["exec"] = handler
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    sources: dict[str, Any] = {"bytes": data, "file": io.BytesIO(data), "pieces": iter((data[:3], b"", data[3:]))}
    assert Sandbox().run(["cat"], stdin=sources[kind]).ok
    assert got == data


def test_stdin_ends_when_the_command_does(serve: FakeServe) -> None:
    serve.on["exec"] = lambda request: request.exited(7)
    assert Sandbox().run(["true"], stdin=b"x" * 5_000_000).exit_code == 7


def test_text_files_are_refused_as_stdin(serve: FakeServe) -> None:
    with pytest.raises(TypeError, match="binary mode"):
        Sandbox().run(["cat"], stdin=io.StringIO("x"))  # type: ignore[arg-type]


def test_streamed_output_is_not_kept(serve: FakeServe) -> None:
    def handler(request: Request) -> None:
        assert request.header["stream"] is True
        request.event("started", pid=5)
        request.event("stdout", b"1")
        request.event("stderr", b"2")
        request.event("stdout", b"3")
        request.exited()

    serve.on["exec"] = handler
    got: list[tuple[str, bytes]] = []
    outcome = Sandbox().run("x", on_output=lambda stream, data: got.append((stream, data)))
    assert got == [("stdout", b"1"), ("stderr", b"2"), ("stdout", b"3")]
    assert (outcome.stdout, outcome.stderr) == (b"", b"")


def test_a_dead_sandbox_is_explained_and_not_raised(serve: FakeServe) -> None:
    serve.on["exec"] = lambda request: request.end(error="no_sandbox", detail="its agent died")
    sandbox = Sandbox()
    response = sandbox.execute("x")
    assert (response.output, response.exit_code) == ("[sandy] the sandbox is gone: its agent died\n", 125)
    with pytest.raises(SandboxGoneError, match="its agent died"):
        sandbox.run("x")


def test_a_command_that_is_too_large_is_explained(serve: FakeServe) -> None:
    response = Sandbox().execute("x" * 67_108_865)
    assert response.exit_code == 125
    assert "67108865" in response.output


def test_text_that_no_bytes_stand_for(serve: FakeServe) -> None:
    assert Sandbox().execute("echo \ud800").exit_code == 125


@pytest.mark.parametrize(
    "end", [{"reason": "vanished"}, {}, {"reason": "exited", "code": "0"}, {"reason": "exited", "code": True}]
)
def test_an_end_without_sense_is_no_success(serve: FakeServe, end: dict[str, Any]) -> None:
    serve.on["exec"] = lambda request: request.end(**ends(**end))
    assert Sandbox().execute("x").exit_code == 125


def test_closed_sandboxes_refuse(serve: FakeServe) -> None:
    sandbox = Sandbox()
    sandbox.close()
    sandbox.close()
    assert len(serve.requests("close")) == 1
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run("true")
    with pytest.raises(SandboxError, match="closed"):
        sandbox.read("/x")
    response = sandbox.execute("true")
    assert (response.output, response.exit_code) == ("[sandy] sandbox sb1 is closed\n", 125)


@pytest.mark.parametrize("env", [{"": "x"}, {"A=B": "x"}, {"A": "x\0"}])
def test_impossible_variables(serve: FakeServe, env: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="env"):
        Sandbox().run("true", env=env)


def raises() -> Iterator[bytes]:
    yield b"x"
    raise KeyError("mine")


@pytest.mark.parametrize(
    ("stdin", "error", "text"),
    [
        (raises, KeyError, "mine"),
        (lambda: iter([b"x", "text"]), TypeError, "a piece of stdin must be bytes, not str"),
        (lambda: [1], TypeError, "a piece of stdin must be bytes, not int"),
    ],
)
def test_stdin_that_fails_cancels_the_command(
    serve: FakeServe, stdin: Callable[[], Any], error: type[Exception], text: str
) -> None:
    serve.on["exec"] = lambda _: None  # no answer: only the end of the connection can end it
    sandbox = Sandbox()
    with pytest.raises(error, match=text):
        sandbox.run(["cat"], stdin=stdin())
    assert serve.disconnected.wait(5)
    serve.on["exec"] = lambda request: request.exited()
    assert sandbox.run("true").ok


def test_a_coroutine_that_its_loop_left_cancels_the_command(serve: FakeServe) -> None:
    serve.on["exec"] = lambda _: None
    running = Sandbox().arun("true")

    async def begin() -> None:
        running.send(None)  # up to the wait for the answer

    asyncio.run(begin())
    running.close()
    assert serve.disconnected.wait(5)


def streamed(request: Request) -> None:
    for piece in (b"0123456789", b"ab", "c€".encode()[:-1], b"", "€".encode()[-1:], b"def\n"):
        request.event("stdout", piece)
    request.exited(3)


@pytest.mark.parametrize("keep", [0, 1, 2, 9, 10, 11, 16, 20, 21, 22, 23, 24, 1000])
def test_execute_streams_and_responds_as_without(serve: FakeServe, keep: int) -> None:
    got: list[tuple[str, bytes]] = []
    serve.on["exec"] = streamed
    response = Sandbox(max_output_bytes=keep).execute("x", on_output=lambda *piece: got.append(piece))
    assert serve.requests("exec")[0].header["stream"] is True
    data = b"".join(piece for _, piece in got)
    assert (data, {stream for stream, _ in got}) == ("0123456789abc€def\n".encode(), {"stdout"})

    def kept(request: Request) -> None:  # as the agent keeps it
        head, tail = data[: keep - keep // 2], data[len(data) - keep // 2 :]
        if len(data) <= keep:
            head, tail = data, b""
        request.event("stdout", head)
        request.event("stdout", tail, tail=True)
        request.exited(3, omitted={"stdout": len(data) - len(head) - len(tail), "stderr": 0})

    serve.on["exec"] = kept
    assert response == Sandbox(max_output_bytes=keep).execute("x")
    assert response.truncated == (keep < len(data))


async def test_aexecute_streams(serve: FakeServe) -> None:
    got: list[bytes] = []
    serve.on["exec"] = streamed
    async with Sandbox() as sandbox:
        response = await sandbox.aexecute("x", on_output=lambda _, piece: got.append(piece))
    assert (response.output.encode(), response.exit_code) == (b"".join(got), 3)


@pytest.mark.parametrize("error", [ValueError("mine"), OSError("mine"), SandboxError("mine"), KeyError("mine")])
def test_what_on_output_raises_is_not_taken_for_the_sandboxs(serve: FakeServe, error: Exception) -> None:
    def fail(stream: str, piece: bytes) -> None:
        raise error

    serve.on["exec"] = lambda request: request.event("stdout", b"x")
    sandbox = Sandbox()
    with pytest.raises(type(error), match="mine"):
        sandbox.execute("x", on_output=fail)
    assert serve.disconnected.wait(5)
    with pytest.raises(type(error), match="mine"):
        asyncio.run(sandbox.aexecute("x", on_output=fail))
    with pytest.raises(TypeError, match="on_output must be"):
        sandbox.execute("x", on_output=5)  # type: ignore[arg-type]
