"""Interactive use: B032, and what a terminal of the caller's looks like before, during and after."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest
from rig import Rig
from support import Cli, descendants, program_of, wait_until
from terminal import Terminal

pytest_plugins = ["rig.fixtures"]

Processes = Callable[[], list[int]]


def test_b032_resize(terminal: Callable[..., Terminal]) -> None:
    tty = terminal("run", "--", "sh", "-c", "trap 'stty size' WINCH; stty size; echo ready; while :; do sleep 0.05; done")
    assert b"30 90" in tty.expect(b"ready")
    tty.resize(41, 123)
    tty.expect(b"41 123")
    tty.type(b"\x03")
    assert tty.process.wait(10) == 130
    assert tty.restored()


def test_b032_ctrl_c_ends_the_command(terminal: Callable[..., Terminal]) -> None:
    tty = terminal("run", "--", "sh", "-c", "echo ready; sleep 60")
    tty.expect(b"ready")
    assert not tty.restored()  # raw: every key goes inside
    tty.type(b"\x03")
    assert tty.process.wait(10) == 130
    assert tty.restored()


def test_b032_ctrl_c_can_be_handled(terminal: Callable[..., Terminal]) -> None:
    tty = terminal("run", "--", "sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done")
    tty.expect(b"ready")
    tty.type(b"\x03")
    tty.expect(b"caught")
    assert tty.process.wait(10) == 5


def test_b032_ctrl_z_does_not_wedge_the_outer_shell(sandy: Cli, terminal: Callable[..., Terminal]) -> None:
    tty = terminal(shell=True)
    tty.expect(b"OUTER> ")
    tty.type(f"{sandy.program} run -- sh -c 'echo re''ady; sleep 1; echo do''ne'\n".encode())
    tty.expect(b"\nready")
    tty.type(b"\x1a")
    # Without job control inside, a stopped command would never go on: the key is the sandbox's shell's, or nothing happens.
    tty.type(b"\x03")
    tty.expect(b"OUTER> ")
    tty.type(b"echo still $((40+2))\n")
    tty.expect(b"still 42")


def test_b032_the_terminal_is_restored_after_a_kill(terminal: Callable[..., Terminal]) -> None:
    tty = terminal("run", "--", "sh", "-c", "echo ready; kill -9 $$")
    assert tty.process.wait(10) == 137
    assert tty.restored()
    # The sandbox itself dies.
    tty = terminal("run", "--", "sh", "-c", "echo ready; sleep 60")
    tty.expect(b"ready")
    victims = [pid for pid in descendants(tty.process.pid) if program_of(pid) == "bwrap"]
    os.kill(victims[0], signal.SIGKILL)
    assert tty.process.wait(10) == 125
    assert tty.restored()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_b032_the_terminal_is_restored_after_a_signal(terminal: Callable[..., Terminal], number: signal.Signals) -> None:
    tty = terminal("run", "--", "sh", "-c", "echo ready; sleep 60")
    tty.expect(b"ready")
    tty.process.send_signal(number)
    assert tty.process.wait(10) == 128 + number
    assert tty.restored()


def test_b032_a_closed_terminal_ends_all(sandy: Cli, marker: str, processes: Processes) -> None:
    tty = Terminal(sandy, "run", "--", "sh", "-c", f"trap '' HUP; echo ready; sleep {marker}")
    tty.expect(b"ready")
    os.close(tty.slave)
    os.close(tty.master)
    tty.process.wait(10)
    wait_until(lambda: processes() == [])


def test_shell_has_job_control(terminal: Callable[..., Terminal]) -> None:
    tty = terminal("shell")
    tty.type(b"PS1='IN''NER> '\n")
    tty.expect(b"INNER> ")
    tty.type(b"tty; id -un; echo $TERM\n")
    seen = tty.expect(rb"xterm\r\n")
    assert b"/dev/pts/0" in seen and b"sandbox" in seen
    tty.type(b"sleep 50\n")
    time.sleep(0.3)
    tty.type(b"\x1a")
    tty.expect(b"Stopped")
    tty.type(b"jobs; kill %1; stty size\n")
    tty.expect(b"30 90")
    tty.type(b"sleep 50\n")
    time.sleep(0.3)
    tty.type(b"\x03")
    tty.type(b"echo rc=$?\n")
    tty.expect(b"rc=130")
    tty.type(b"exit 9\n")
    assert tty.process.wait(10) == 9
    assert tty.restored()


def test_shell_wants_a_terminal(sandy: Cli) -> None:
    got = sandy.call("shell")
    assert got.status == 125 and "not a terminal" in got.error and "sandy run" in got.error


def test_tty_option(sandy: Cli, terminal: Callable[..., Terminal]) -> None:
    assert sandy.run("tty", options=["--tty", "never"]).text.strip() == "not a tty"
    assert sandy.run("tty", options=["--tty", "always"]).ok().text.strip() == "/dev/pts/0"
    tty = terminal("run", "--tty", "never", "--", "sh", "-c", "tty; echo end")
    assert b"not a tty" in tty.expect(b"end")
    assert tty.process.wait(10) == 0
    tty = terminal("run", "--", "sh", "-c", "tty; echo end")
    assert b"/dev/pts/0" in tty.expect(b"end")


def test_the_hosts_terminal_is_not_the_one_inside(terminal: Callable[..., Terminal]) -> None:
    tty = terminal("run", "--", "python3", "-c", "import os; s = os.fstat(0); print(s.st_dev, s.st_ino, os.ttyname(0), 'end')")
    seen = tty.expect(b"end").split(b"\r\n")[-1].split()
    outer = os.fstat(tty.slave)
    assert (int(seen[0]), int(seen[1])) != (outer.st_dev, outer.st_ino)
    assert seen[2] == b"/dev/pts/0"


def test_what_no_rule_names_is_asked_for(terminal: Callable[..., Terminal], sandy: Cli, rig: Rig) -> None:
    sandy.env |= rig.environment
    script = "for n in a b c b c; do curl -sS http://$n.example/; done; read word; echo got $word"
    one = terminal("run", "--ask", "--allow-domain", "a.example", "--", "sh", "-c", script)
    one.expect(rb"(?s)hello from a.*connect to b\.example:80.*Enter: ")
    one.type(b"always\n")
    one.expect(rb"(?s)hello from b.*connect to c\.example:80.*Enter: ")
    assert not rig.requests("c")
    one.type(b"deny\n")
    one.expect(rb"(?s)hello from b")
    one.type(b"word\n")  # what is typed is the command's again
    one.expect(rb"got word")
    one.expect(rb"blocked: c\.example:80")
    assert one.process.wait(10) == 0 and one.restored()
    assert not rig.requests("c") and len(rig.requests("b")) == 2


def test_first_letters_are_answers_and_others_are_named(terminal: Callable[..., Terminal], sandy: Cli, rig: Rig) -> None:
    sandy.env |= rig.environment
    one = terminal("run", "--ask", "--allow-domain", "a.example", "--", "sh", "-c", "for n in b c c; do curl -sS http://$n.example/; done; true")
    one.expect(rb"connect to b\.example:80.*Enter: ")
    one.type(b"yes\n")
    one.expect(rb'(?s)"yes" is none of once, always and deny.*connect to b\.example:80.*Enter: ')
    one.type(b"o\n")
    one.expect(rb"(?s)hello from b.*connect to c\.example:80.*Enter: ")
    one.type(b"d\n")
    one.expect(rb"blocked: c\.example:80")
    assert one.process.wait(10) == 0
    assert len(rig.requests("b")) == 1 and not rig.requests("c")


@pytest.mark.parametrize("tty", ["auto", "never"])
def test_a_question_ends_with_its_command(terminal: Callable[..., Terminal], sandy: Cli, rig: Rig, tty: str) -> None:
    sandy.env |= rig.environment
    began = time.monotonic()
    one = terminal("run", "--ask", "--tty", tty, "--allow-domain", "a.example", "--", "sh", "-c", "curl -sS -m 1 http://b.example/; echo finished")
    one.expect(rb"connect to b\.example:80.*Enter: ")
    seen = one.expect(rb"finished")
    assert b"not allowed: b.example:80 (the command ended before an answer)" in seen
    assert one.process.wait(10) == 0 and one.restored() and time.monotonic() - began < 15
    assert not rig.requests("b")


def test_a_question_ends_with_its_client(terminal: Callable[..., Terminal], sandy: Cli, rig: Rig) -> None:
    sandy.env |= rig.environment
    began = time.monotonic()
    one = terminal("run", "--ask", "--allow-domain", "a.example", "--", "sh", "-c", "curl -sS -m 1 http://b.example/; echo next; read word; echo got $word; curl -sS http://b.example/")
    one.expect(rb"connect to b\.example:80.*Enter: ")
    one.expect(rb"not allowed: b\.example:80 \(there was no answer while it waited\)")
    one.expect(rb"next")
    assert time.monotonic() - began < 20
    one.type(b"word\n")
    # That it was not waited for is no refusal: who asks again is asked for.
    one.expect(rb"(?s)got word.*connect to b\.example:80.*Enter: ")
    one.type(b"once\n")
    one.expect(rb"hello from b")
    one.expect(rb"blocked: b\.example:80 \(not in the allowlist, and closed before there was an answer\)")
    assert one.process.wait(10) == 0 and one.restored()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("command", ["exec curl -sS http://b.example/", "trap '' TERM HUP; curl -sS http://b.example/; while :; do sleep 1; done"])
def test_a_question_keeps_no_signal_away(terminal: Callable[..., Terminal], sandy: Cli, rig: Rig, number: signal.Signals, status: int, command: str) -> None:
    sandy.env |= rig.environment
    one = terminal("run", "--ask", "--allow-domain", "a.example", "--", "sh", "-c", command)
    one.expect(rb"connect to b\.example:80.*Enter: ")
    one.process.send_signal(number)
    one.expect(rb"not allowed: b\.example:80 \(a signal came before an answer\)")
    assert one.process.wait(20) == status and one.restored()
    assert not rig.requests("b")


def test_asking_needs_a_terminal_and_a_network(terminal: Callable[..., Terminal], sandy: Cli) -> None:
    got = sandy.run("true", options=["--ask", "--allow-domain", "a.example"])
    assert got.status == 125 and "--ask" in got.error and "terminal" in got.error
    one = terminal("run", "--ask", "--policy", "no-network", "--", "true")
    one.expect(rb"--ask.*no network")
    assert one.process.wait(10) == 125


def test_asking_alone_is_a_network_of_what_is_asked_for(terminal: Callable[..., Terminal], sandy: Cli, rig: Rig) -> None:
    sandy.env |= rig.environment
    one = terminal("run", "--ask", "--", "sh", "-c", "curl -sS http://a.example/; curl -sS http://b.example/; true")
    one.expect(rb"connect to a\.example:80.*Enter: ")
    one.type(b"once\n")
    one.expect(rb"(?s)hello from a.*connect to b\.example:80.*Enter: ")
    one.type(b"deny\n")
    one.expect(rb"blocked: b\.example:80")
    assert one.process.wait(10) == 0 and not rig.requests("b")
