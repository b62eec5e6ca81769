"""Processes that go on: the group "Process, signals, pty, output" over spawn and asyncio, and what befalls a client."""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import importlib
import multiprocessing
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable

import pytest

from deepagents_sandbox import CommandNotStartedError, ProcessNotFoundError, Sandbox, SandboxGoneError

Find = Callable[[], list[str]]
Until = Callable[..., None]

EVERY_BYTE = bytes(range(256))
PYTHON = pathlib.Path(__file__).parents[2]


# The cases.


def test_b019_a_server_in_the_background(be: Sandbox) -> None:
    before = time.monotonic()
    server = be.spawn(["python3", "-u", "-m", "http.server", "8123", "--bind", "127.0.0.1"])
    assert time.monotonic() - before < 1
    assert next(iter(server)).startswith(b"Serving HTTP")
    server.close()
    assert be.execute("curl -s http://127.0.0.1:8123/ | grep -c 'Directory listing'").output == "2\n"
    again = be.process(server.number)
    assert b"GET / HTTP" in again.log().data
    again.signal(signal.SIGTERM)
    outcome = again.wait(10)
    assert (outcome.reason, outcome.signal) == ("signalled", signal.SIGTERM)


def test_b019_nothing_survives_close(marker: str, processes: Find, until: Until) -> None:
    with Sandbox() as sandbox:
        sandbox.spawn(f"setsid sleep {marker} & (setsid sleep {marker} &) ; sleep {marker}")
        sandbox.spawn(["sleep", marker], pty=True)
        until(lambda: len(processes()) == 4)
    assert not processes()


def test_b020_commands_that_read(be: Sandbox) -> None:
    assert be.spawn("cat; python3; read x; echo rc=$?").communicate(timeout=20).stdout == b"rc=1\n"
    data = EVERY_BYTE * 4000
    assert be.spawn(["cat"], stdin=data).communicate(timeout=20).stdout == data
    with be.spawn("read x; echo got $x; cat", stdin="pipe") as process:
        reading = iter(process)
        process.write("word\n")
        assert next(reading) == b"got word\n"
        process.write(b"more")
        process.close_stdin()
        assert b"".join(reading) == b"more"
        assert process.wait(5).ok


def test_b022_what_ignores_signals_is_killed_with_all_it_started(be: Sandbox, marker: str, processes: Find, until: Until) -> None:
    command = f"trap '' TERM HUP INT; (trap '' TERM; setsid sleep {marker})& sleep {marker}"
    process = be.spawn(command, timeout=0.5)
    assert process.wait(10).reason == "timed_out"
    until(lambda: not processes())
    process = be.spawn(command)
    until(lambda: len(processes()) == 2)
    process.signal(signal.SIGTERM)
    with pytest.raises(TimeoutError):
        process.wait(0.3)
    process.kill()
    assert process.wait(10).reason == "cancelled"
    until(lambda: not processes())


def test_b024_a_killed_client_leaves_nothing(marker: str, processes: Find, until: Until) -> None:
    code = f"""
        from sandy import Sandbox
        process = Sandbox().spawn("sleep {marker} & sleep {marker} & wait")
        print("ready", flush=True)
        process.wait()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"ready\n"
        until(lambda: len(processes()) == 2)
        client.kill()
    until(lambda: not processes())


def test_b025_no_descriptor_and_no_zombie_is_left(be: Sandbox) -> None:
    be.spawn("true").wait(5)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(200):
        assert be.spawn("true").wait(10).ok
    assert len(os.listdir("/proc/self/fd")) <= before + 1
    assert be.execute("ps -e -o stat= | grep -c Z").output == "0\n"
    assert len([info for info in be.list_processes() if not info.running]) <= 65


def test_b027_what_cannot_start_is_told_apart(be: Sandbox, ws: str) -> None:
    with pytest.raises(CommandNotStartedError, match="ENOENT") as caught:
        be.spawn(["no-such-program"])
    assert caught.value.exit_code == 127
    be.execute(f"echo x > {ws}/file")
    with pytest.raises(CommandNotStartedError, match="EACCES") as caught:
        be.spawn([f"{ws}/file"])
    assert caught.value.exit_code == 126
    with pytest.raises(CommandNotStartedError, match="working directory"):
        be.spawn("true", cwd=f"{ws}/nope")
    assert be.spawn("no-such-program").wait(5).exit_code == 127
    assert be.spawn("exit 1").wait(5).exit_code == 1


def test_b028_output_of_any_bytes(be: Sandbox) -> None:
    assert be.spawn(r"printf 'a\377\360b\0c'").communicate(timeout=10).stdout == b"a\377\360b\0c"
    process = be.spawn("seq 20000000")
    digest, size = hashlib.sha256(), 0
    for chunk in process:
        assert chunk.offset == size
        digest.update(chunk)
        size += len(chunk)
    assert digest.hexdigest() == be.execute("seq 20000000 | sha256sum").output.split()[0]


def test_b031_terminals(be: Sandbox) -> None:
    process = be.spawn("tty; stty size; test -t 0 -a -t 1 -a -t 2 && echo all; echo $TERM", pty=(31, 97))
    lines = process.communicate(timeout=10).stdout.decode().split("\r\n")
    assert re.fullmatch("/dev/pts/[0-9]+", lines[0])
    assert lines[1:3] == ["31 97", "all"]


def test_b032_a_terminal_is_resized_and_interrupts(be: Sandbox) -> None:
    process = be.spawn("trap 'stty size' WINCH; echo ready; while :; do sleep 0.1; done", pty=True)
    reading = iter(process)
    assert next(reading) == b"ready\r\n"
    process.resize(40, 123)
    assert next(reading) == b"40 123\r\n"
    process.write(b"\x03")
    outcome = process.wait(10)
    assert outcome.signal == signal.SIGINT or outcome.exit_code == 130


def test_a_dialogue_at_a_terminal(be: Sandbox) -> None:
    with be.spawn(["python3", "-q"], pty=True, env={"TERM": "dumb", "PYTHONSTARTUP": ""}) as python:
        seen = b""
        python.write("6 * 7\n")
        for chunk in python:
            seen += chunk
            if b"42" in seen:
                break
        python.write("exit(5)\n")
        assert python.wait(10).exit_code == 5


def test_64_terminals_at_once(be: Sandbox) -> None:
    processes = [be.spawn(["cat"], pty=True) for _ in range(64)]
    for number, process in enumerate(processes):
        process.write(f"line {number}\n\x04")
    for number, process in enumerate(processes):
        assert process.communicate(timeout=30).stdout == f"line {number}\r\nline {number}\r\n".encode()


def test_b034_an_inner_limit_is_seen(be: Sandbox) -> None:
    outcome = be.spawn("timeout 1 sleep 9; echo code:$?", timeout=20).communicate(timeout=30)
    assert (outcome.stdout, outcome.exit_code) == (b"code:124\n", 0)


# What is kept, and found again.


def test_the_log_and_attaching_again() -> None:
    with Sandbox(log_size="64K") as sandbox:
        process = sandbox.spawn("seq 100000; read x; echo end", stdin="pipe")
        process.close()
        number = process.number
        end = time.monotonic() + 10
        while not sandbox.read_log(number, None).data.endswith(b"\n100000\n"):
            assert time.monotonic() < end
        log = sandbox.read_log(number)
        assert (log.running, log.next_offset) == (True, 588895)
        assert log.lost == log.offset > 0
        assert len(log.data) == 588895 - log.offset <= 65536 + 16384
        again = sandbox.process(number, offset=588895 - 7)
        reading = iter(again)
        assert next(reading) == b"100000\n"
        again.write("\n")
        assert b"".join(reading) == b"end\n"
        assert again.wait(5).ok
        assert not sandbox.read_log(number, 588895).running
        assert sandbox.read_log(number, 588895).data == b"end\n"
        with pytest.raises(ProcessNotFoundError):
            sandbox.process(99)


def test_a_reader_that_stops_stops_its_process_and_nobody_else(be: Sandbox) -> None:
    process = be.spawn("yes | head -c 50000000; echo done >&2", merge=False)
    reading = iter(process)
    next(reading)
    time.sleep(0.5)
    assert process.poll() is None
    assert process.log(None).next_offset < 10_000_000
    assert be.execute("echo others go on").output == "others go on\n"
    assert sum(len(chunk) for chunk in reading if chunk.stream == "stdout") < 50_000_000
    assert process.wait(10).ok
    assert process.offset == 50_000_005


def test_on_output_streams(be: Sandbox) -> None:
    times: list[float] = []
    response = be.execute(
        "for i in 1 2 3; do echo $i; sleep 0.2; done; seq 300000", on_output=lambda *_: times.append(time.monotonic())
    )
    assert times[-1] - times[0] > 0.5
    assert response == be.execute("for i in 1 2 3; do echo $i; done; seq 300000")


# What befalls a client.


def test_asyncio_cancel(be: Sandbox, marker: str, processes: Find, until: Until) -> None:
    async def use() -> None:
        process = await be.aspawn(f"echo a; sleep {marker}")
        task = asyncio.create_task(collect(process))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(processes()) == 1  # that somebody reads no more is nothing to it
        assert (await process.apoll()) is None
        await process.akill()
        assert (await process).reason == "cancelled"
        for delay in range(20):
            starting = asyncio.create_task(be.aspawn(["sleep", marker]))
            await asyncio.sleep(delay / 4000)
            starting.cancel()
            try:
                await (await starting).akill()  # it had started
            except asyncio.CancelledError:
                continue

    async def collect(process: object) -> list[bytes]:
        return [chunk async for chunk in process]  # type: ignore[attr-defined]

    asyncio.run(use())
    until(lambda: not processes())


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_many_in_one_event_loop(be: Sandbox, loop: str) -> None:
    async def one(number: int) -> None:
        process = await be.aspawn(["cat"], stdin="pipe")
        data = EVERY_BYTE * (number * 100)
        assert (await process.acommunicate(data)).stdout == data

    async def use() -> None:
        await asyncio.gather(*(one(number) for number in range(40)))

    factory = asyncio.new_event_loop if loop == "asyncio" else pytest.importorskip("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(use())


def test_a_thread_that_dies_takes_nothing_along(be: Sandbox, marker: str, processes: Find, until: Until) -> None:
    found: list[int] = []

    def start() -> None:
        process = be.spawn(["sleep", marker])
        found.append(process.number)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    time.sleep(0.3)
    assert len(processes()) == 1
    be.process(found[0]).kill()
    until(lambda: not processes())


def test_keyboard_interrupt(be: Sandbox) -> None:
    process = be.spawn("echo a; read x; echo $x", stdin="pipe")
    for wait in (process.wait, lambda: list(process), process.communicate):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            wait()
    process.write("b\n")
    assert process.wait(5).ok
    assert process.log().data == b"a\nb\n"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_os_fork(be: Sandbox) -> None:
    process = be.spawn(["cat"], stdin="pipe")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            try:
                process.write(b"x")
            except SandboxGoneError:
                with Sandbox() as own:
                    status = 0 if own.spawn(["cat"], stdin=b"own").communicate(timeout=20).stdout == b"own" else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert process.communicate(b"parent", timeout=10).stdout == b"parent"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_multiprocessing(be: Sandbox, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parent / "helpers"))
    work = importlib.import_module("spawned_work").work
    held = be.spawn(["cat"], stdin="pipe")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        assert list(pool.map(work, range(6))) == [b"%d" % number for number in range(6)]
    assert held.communicate(b"still", timeout=10).stdout == b"still"


def test_xdist_with_four_workers(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "test_many.py").write_text(
        textwrap.dedent("""
            import pytest
            from sandy import Sandbox

            @pytest.fixture(scope="session")
            def box():
                with Sandbox() as sandbox:
                    yield sandbox

            @pytest.mark.parametrize("number", range(24))
            def test_it(box, number):
                assert box.spawn(["cat"], stdin=str(number)).communicate(timeout=60).stdout == str(number).encode()
                with Sandbox() as own:
                    assert own.execute("echo x").output == "x\\n"
        """)
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n4", "-p", "no:cacheprovider", "-p", "no:asyncio", "-W", "error", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "24 passed" in done.stdout


def test_the_example_of_a_web_server() -> None:
    done = subprocess.run(
        [sys.executable, str(PYTHON / "examples" / "web_server.py")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("<h1>Hello from the sandbox</h1>") == 3  # written, curl's, and this machine's
    assert "on this machine" in done.stdout
    assert '"GET / HTTP/1.1" 200' in done.stdout  # curl's; the other may still be on its way to the log
