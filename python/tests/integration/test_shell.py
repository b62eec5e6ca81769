"""`Sandbox.shell`: a state that lasts, and outcomes that no output can forge; with bash, and with sh where there is no bash."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from deepagents_sandbox import Sandbox, SandboxError, Shell, ShellEndedError
from sandy import _shell_script

HIDES_BASH = "/usr/bin/bash"


@pytest.fixture(scope="module", params=["bash", "sh"])
def box(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox with bash, and one in which there is none."""
    hidden = [] if request.param == "bash" else [HIDES_BASH]
    with Sandbox(deny=hidden, timeout=60) as sandbox:
        assert (sandbox.run("command -v bash && bash -c true").exit_code == 0) == (request.param == "bash")
        yield sandbox


@pytest.fixture
def shell(box: Sandbox) -> Iterator[Shell]:
    with box.shell() as shell:
        yield shell


def out(shell: Shell, command: str, code: int = 0) -> str:
    outcome = shell.run(command, timeout=20)
    assert (outcome.reason, outcome.exit_code) == ("exited", code), outcome
    return outcome.stdout.decode()


def test_its_state_lasts(shell: Shell) -> None:
    assert out(shell, "echo hello; pwd") == "hello\n/workspace\n"
    assert out(shell, "mkdir -p d; cd d; x='a  b'; f() { echo \"f $1\"; }; alias ll='echo LL'; export E=1; umask 027") == ""
    assert out(shell, 'pwd; echo "$x"; f 1; sh -c "echo $E"; umask') == "/workspace/d\na  b\nf 1\n1\n0027\n"
    assert out(shell, "ll") == "LL\n"
    assert out(shell, "(exit 7)", 7) == ""
    assert out(shell, "echo $?; false", 1) == "7\n"
    assert out(shell, "echo $?") == "1\n"
    assert out(shell, "echo $?") == "0\n"


def test_output_and_error_are_one_and_input_is_empty(shell: Shell) -> None:
    assert out(shell, "echo 1; echo 2 >&2; echo 3; cat; printf x") == "1\n2\n3\nx"
    assert out(shell, "printf y; sh -c 'printf z >&2'") == "yz"


def test_commands_get_no_descriptor_but_three(shell: Shell) -> None:
    assert out(shell, "ls /proc/self/fd").split() == ["0", "1", "2", "3"]  # the last is ls's own
    assert out(shell, "ls -l /proc/self/fd/0").endswith("/dev/null\n")


@pytest.mark.parametrize(
    "command",
    [
        "if",
        "echo 'unterminated",
        'echo "x',
        "echo $(",
        "echo ${",
        "(",
        "echo `x",
        "echo $((",
        "}",
        ")",
        "fi",
        "case x in",
        "<<",
        "&&",
    ],
)
def test_syntax_errors_are_told_and_end_nothing(shell: Shell, command: str) -> None:
    out(shell, "kept=1")
    outcome = shell.run(command, timeout=20)
    assert (outcome.reason, outcome.ok) == ("exited", False)
    assert outcome.stdout
    assert out(shell, "echo $kept") == "1\n"


@pytest.mark.parametrize("command", ["${nope?msg}", "set -u; echo $nope; echo never", "readonly r=1; r=2", "unset -f nope; nope"])
def test_errors_that_end_scripts_end_nothing(shell: Shell, command: str) -> None:
    outcome = shell.run(command, timeout=20)
    assert outcome.exit_code != 0
    assert b"never" not in outcome.stdout
    assert out(shell, "set +u; echo alive") == "alive\n"


def test_heredocs_lines_and_quotes(shell: Shell) -> None:
    assert out(shell, "cat <<EOF\na $((1 + 1))\nEOF\ncat <<'EOF'\n$x 'y' \"z\"\nEOF\n") == "a 2\n$x 'y' \"z\"\n"
    assert out(shell, "for i in 1 2\ndo\n  echo $i  # a comment\ndone") == "1\n2\n"
    assert out(shell, "echo a # 'comment") == "a\n"
    assert out(shell, "") == ""
    assert out(shell, "# nothing") == ""
    assert out(shell, " -n; true || echo").startswith(("-n", "sh: ", "bash: "))  # no option of eval
    assert out(shell, "echo 'ü€'") == "ü€\n"
    assert "b" in out(shell, "cat <<EOF\nb")  # its end is missing


def test_a_nul_is_refused(shell: Shell) -> None:
    with pytest.raises(ValueError, match="NUL"):
        shell.run("echo a\0b")
    assert out(shell, "echo $?") == "0\n"


def test_long_commands_and_much_output(box: Sandbox, shell: Shell) -> None:
    word = "x" * 300_000
    assert out(shell, f"v='{word}'; echo ${{#v}}") == "300000\n"
    outcome = shell.run("head -c 50000000 /dev/zero | tr '\\0' y", timeout=60)
    assert (outcome.exit_code, outcome.stdout_omitted) == (0, 50_000_000 - 1_048_576)
    assert out(shell, "echo $?") == "0\n"
    assert shell.run("printf 0123456789", max_output_bytes=4).stdout == b"01\n[sandy] 6 bytes of output were left out here\n89"
    pieces: list[bytes] = []
    shell.run("echo a; sleep 0.1; echo b >&2", on_output=lambda stream, data: pieces.append(data))
    assert pieces == [b"a\n", b"b\n"]


def test_output_can_forge_nothing(shell: Shell) -> None:
    fake = "SANDY_" + "0" * 32
    assert out(shell, f"echo 'bash: {fake}: 0' >&2; echo 'x: {fake}: 0'; false", 1).count(fake) == 2
    # Also to whatever descriptors the shell itself holds, were one found.
    scan = (
        "for n in 3 4 5 6 7 8 9 10 11 12 13 60 61 62 63 255; do"
        " command eval \"echo ': FAKE: 0' >&$n\" 2>/dev/null; done; echo end; false"
    )
    scan = scan.replace("FAKE", fake)
    outcome = shell.run(scan, timeout=20)
    assert (outcome.exit_code, outcome.stdout[-4:]) == (1, b"end\n")
    assert out(shell, "echo still in step") == "still in step\n"


@pytest.mark.parametrize("name", ["printf", "echo", "test", "cd", "kill", "exit_", "true", "case_", "command"])
def test_functions_of_any_name(shell: Shell, name: str) -> None:
    out(shell, f"{name}() {{ return 5; }}")
    assert shell.run(f"{name} x", timeout=20).exit_code == 5
    # Of sh it is known that it loses its eval there.
    lost = name == "command" and shell._descriptor == _shell_script.SH
    out(shell, f"unset -f {name}", 5 if lost else 0)


def test_functions_with_the_names_of_special_builtins(box: Sandbox, shell: Shell) -> None:
    if out(shell, "echo $BASH_VERSION") == "\n":
        pytest.skip("sh has no such functions")
    out(shell, "eval() { echo mine; }; unset() { echo mine; }; set() { echo mine; }; exec() { echo mine; }; trap() { :; }")
    assert out(shell, "eval x; unset y; set z; exec w") == "mine\n" * 4
    assert out(shell, "false", 1) == ""


def test_aliases_of_any_name(shell: Shell) -> None:
    out(shell, "alias command=false eval=false printf='echo alias' exec=false")
    assert out(shell, "printf x") == "alias x\n"
    assert out(shell, "(exit 3)", 3) == ""


def test_options_and_traps(shell: Shell) -> None:
    assert out(shell, "set -x; echo a; set +x").replace("++", "+") == "+ echo a\na\n+ set +x\n"
    out(shell, "set -v")
    assert out(shell, "echo a").endswith("a\n")
    out(shell, "set +v; set -f; IFS=0123456789")
    assert out(shell, "(exit 123)", 123) == ""
    assert out(shell, "echo *") == "*\n"
    out(shell, "unset IFS; trap 'echo interrupted' INT; trap 'echo usr' USR1")
    assert out(shell, "kill -USR1 $$; echo b") == "usr\nb\n"


@pytest.mark.parametrize(
    "command",
    [
        "IFS=0123456789; readonly IFS",
        "readonly __sandy=1",
        ":() { echo mine; }",
        "alias :='echo alias'",
        "set -C; set -f; set -u",
    ],
)
def test_what_cannot_be_assigned_or_is_named_otherwise(box: Sandbox, command: str) -> None:
    with box.shell() as shell:
        if command.startswith(":") and out(shell, "echo $BASH_VERSION") == "\n":
            return  # sh has no such functions
        out(shell, command)
        assert out(shell, "echo a") == "a\n"
        assert out(shell, "(exit 123)", 123) == ""
        assert out(shell, 'echo "$?"') == "123\n"
        assert shell.run("sleep 100", timeout=0.3).reason == "timed_out"
        assert out(shell, "echo b") == "b\n"


def test_a_trap_that_skips_everything_hangs_nothing(box: Sandbox) -> None:
    with box.shell() as shell:
        if out(shell, "echo $BASH_VERSION") == "\n":
            pytest.skip("sh has no such traps")
        before = time.monotonic()
        shell.run("shopt -s extdebug; trap 'false' DEBUG", timeout=20)
        for _ in range(3):
            outcome = shell.run("echo never", timeout=20)
            assert (outcome.reason, outcome.stdout) == ("exited", b"")
        assert not shell.ended
        assert time.monotonic() - before < 10


def test_set_e_ends_it_at_the_first_failure_only(shell: Shell) -> None:
    out(shell, "set -e; false || true")
    assert out(shell, "echo $-; ! true || echo x").endswith("x\n")
    outcome = shell.run("echo before; false; echo never", timeout=20)
    assert (outcome.reason, outcome.exit_code, outcome.stdout) == ("exited", 1, b"before\n")
    with pytest.raises(ShellEndedError, match="exited with status 1"):
        shell.run("true")


def test_exit(shell: Shell) -> None:
    outcome = shell.run("trap 'echo trap' EXIT; echo a; exit 3", timeout=20)
    # bash says what it says at a terminal.
    assert (outcome.reason, outcome.exit_code, outcome.stdout.replace(b"exit\n", b"")) == ("exited", 3, b"a\ntrap\n")
    assert shell.ended
    for _ in range(2):
        with pytest.raises(
            ShellEndedError, match=r"the shell has ended: exited with status 3\. Sandbox\.shell\(\) makes another"
        ):
            shell.run("true")
    shell.close()


def test_exec_and_a_killed_shell(box: Sandbox) -> None:
    shell = box.shell()
    outcome = shell.run("exec sh -c 'echo replaced; cat; exit 4'", timeout=20)
    assert (outcome.exit_code, outcome.stdout, shell.ended) == (4, b"replaced\n", True)
    shell = box.shell()
    outcome = shell.run("kill -KILL $$", timeout=20)
    assert (outcome.reason, outcome.signal, outcome.exit_code) == ("signalled", 9, 137)
    with pytest.raises(ShellEndedError, match="signalled"):
        shell.run("true")


def test_exec_of_redirections(shell: Shell) -> None:
    out(shell, "exec 2>/dev/null; echo lost >&2")
    assert out(shell, "echo back >&2") == "back\n"
    out(shell, "exec >file; echo in it")
    out(shell, "exec 3>other; echo three >&3")
    assert out(shell, "echo more >&3") == ""
    out(shell, "exec 3>&-")


@pytest.mark.parametrize(
    "command", ["sleep 300", "while :; do :; done", "sh -c 'sleep 300'; echo never", "(sleep 300); echo never"]
)
def test_a_time_limit_leaves_the_state(shell: Shell, command: str) -> None:
    out(shell, "kept=5; cd /tmp")
    before = time.monotonic()
    outcome = shell.run(f"echo begun; {command}", timeout=0.5)
    assert (outcome.reason, outcome.exit_code) == ("timed_out", 124)
    assert b"begun\n" in outcome.stdout
    assert b"never" not in outcome.stdout
    assert 0.4 < time.monotonic() - before < 2.5
    assert out(shell, "echo $kept $PWD") == "5 /tmp\n"


def test_what_ignores_the_interrupt_is_killed_with_the_shell(
    box: Sandbox, marker: str, processes: Callable[[], list[str]], until: Callable[[Callable[[], object]], None]
) -> None:
    with box.shell() as shell:
        outcome = shell.run(f"echo a; trap '' INT; sleep {marker} & sleep {marker}", timeout=0.5)
        assert (outcome.reason, outcome.exit_code, outcome.stdout.splitlines()[0]) == ("timed_out", 124, b"a")
        assert shell.ended
        with pytest.raises(ShellEndedError, match="outlived its time limit"):
            shell.run("true")
        until(lambda: not processes())


def test_background_jobs_go_on(shell: Shell) -> None:
    outcome = shell.run("(sleep 0.3; echo later) & echo now", timeout=20)
    assert outcome.wall_time < 0.25
    assert outcome.stdout.splitlines()[-1] == b"now"
    time.sleep(0.5)
    assert out(shell, "echo then") == "later\nthen\n"
    shell.run("sleep 5 & job=$!", timeout=20)
    assert shell.run("sleep 100", timeout=0.3).reason == "timed_out"
    assert out(shell, "kill $job") == ""  # the interrupt was for the foreground


def test_a_directory_that_is_gone(shell: Shell) -> None:
    out(shell, "mkdir gone; cd gone; rmdir ../gone")
    assert out(shell, "echo here; cd /workspace; pwd").splitlines()[-1] == "/workspace"


def test_threads_take_turns(shell: Shell) -> None:
    out(shell, "n=0")
    outputs: list[bytes] = []

    def use() -> None:
        for _ in range(5):
            outputs.append(  # noqa: PERF401
                shell.run("n=$((n + 1)); echo $n; sleep 0.01; echo $n", timeout=20).stdout
            )

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(outputs, key=lambda text: int(text.split()[0])) == [b"%d\n%d\n" % (n, n) for n in range(1, 21)]


def test_turns_that_were_given_up_leave_nothing(shell: Shell) -> None:
    async def use() -> None:
        first = asyncio.create_task(shell.arun("sleep 0.5; echo first"))
        await asyncio.sleep(0.1)
        for _ in range(20):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(shell.arun("true"), 0.001)
        assert len(shell._waiting) == 0
        assert (await first).stdout == b"first\n"

    asyncio.run(use())


def test_asyncio_and_cancel(box: Sandbox) -> None:
    async def use() -> None:
        async with await box.ashell() as shell:
            assert (await shell.arun("x=1; echo $x")).stdout == b"1\n"
            outcomes = await asyncio.gather(*(shell.arun(f"echo {n}; sleep 0.02") for n in range(5)))
            assert [outcome.stdout for outcome in outcomes] == [b"%d\n" % n for n in range(5)]
            assert (await shell.arun("sleep 100", timeout=0.2)).reason == "timed_out"
            task = asyncio.create_task(shell.arun("echo lost; sleep 100"))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            outcome = await shell.arun("echo $x")
            assert (outcome.stdout, outcome.exit_code) == (b"1\n", 0)
            assert (await shell.arun("exit 2")).exit_code == 2
            with pytest.raises(ShellEndedError):
                await shell.arun("true")

    asyncio.run(use())


def test_keyboard_interrupt_interrupts_the_command(shell: Shell) -> None:
    out(shell, "x=1")
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        shell.run("echo lost; sleep 100")
    assert out(shell, "echo $x") == "1\n"


def test_an_exception_of_on_output_interrupts_the_command(shell: Shell) -> None:
    def fail(stream: str, data: bytes) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        shell.run("echo a; sleep 100", on_output=fail)
    assert out(shell, "echo b") == "b\n"


def test_its_end_takes_all_along(
    box: Sandbox, marker: str, processes: Callable[[], list[str]], until: Callable[[Callable[[], object]], None]
) -> None:
    shell = box.shell()
    out(shell, f"sleep {marker} >/dev/null & true")
    until(lambda: len(processes()) == 1)
    shell.close()
    shell.close()
    until(lambda: not processes())
    with pytest.raises(ShellEndedError, match="was closed"):
        shell.run("true")
    shell = box.shell()
    out(shell, f"sleep {marker} >/dev/null & true")
    until(lambda: len(processes()) == 1)
    del shell
    gc.collect()
    until(lambda: not processes())


def test_it_begins_where_it_is_told_to(box: Sandbox) -> None:
    with box.shell(cwd="/tmp", env={"A": "b c"}) as shell:
        assert out(shell, 'pwd; echo "$A"') == "/tmp\nb c\n"
        assert shell.process.command[0] == "sh"


def test_a_sandbox_that_ends() -> None:
    sandbox = Sandbox()
    shell = sandbox.shell()
    sandbox.close()
    with pytest.raises(SandboxError):
        shell.run("true", timeout=20)
    shell.close()
