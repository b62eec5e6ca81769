"""`sandy verify`: the attack suite as a command. A sandbox of the default policy withstands it, and one of a weakened policy is told from that."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
from rig import Rig
from rig.net import Net
from support import USUAL_PATH, Cli, host, wait_until

pytest_plugins = ["rig.fixtures"]

CLASSES = ["network", "sockets", "syscalls", "files", "processes", "host-side", "limits"]
ROOT = os.geteuid() == 0

# Attacks that every machine has what it takes for, on which this suite runs.
ALWAYS: dict[str, set[str]] = {
    "network": {"tcp-loopback", "udp-loopback", "list-connect", "list-http", "list-host-header", "list-socks", "list-nul", "list-newline", "list-port", "list-loopback", "list-metadata", "list-address", "dns-tunnel"},
    "sockets": {"stream-home", "datagram-home", "later-home", "stream-tmp", "datagram-tmp", "later-tmp", "abstract-stream", "abstract-datagram", "descriptors"},
    "syscalls": {"clone-user", "unshare-user", "setns", "mount-tmpfs", "bind-root", "remount", "chroot", "fsopen", "open-tree", "openat2", "raw-socket", "packet-socket"},
    "files": {"read-home", "write-home", "read-tmp", "write-tmp", "beside", "symbolic-link", "planted-link", "state-directory", "set-user-id", "lease"},
    "processes": {"environment-of-another", "signal", "root-of-another", "environment", "outstay", "daemon"},
    "host-side": {"download-link", "upload-link", "download-fifo", "error-escapes", "left-behind", "list-escapes"},
    "limits": {"cgroup", "forks", "memory"},
}

Verify = Callable[..., dict[str, dict[str, Any]]]


@pytest.fixture
def verify(sandy: Cli) -> Verify:
    """Runs it with these options; the attacks by name. `status`: what it is to end with."""

    def run(*options: str | pathlib.Path, status: int = 0, env: dict[str, str] | None = None) -> dict[str, dict[str, Any]]:
        got = sandy.call("verify", "--json", *options, env=env, timeout=110)
        assert got.status == status, f"{got.status}\n{got.text}\n{got.error}"
        document = json.loads(got.out)
        attacks = document["attacks"]
        assert document["passed"] == (status == 0)
        assert document["succeeded"] == sum(attack["verdict"] == "fail" for attack in attacks)
        names = [attack["name"] for attack in attacks]
        assert len(names) == len(set(names))
        return {attack["name"]: attack for attack in attacks}

    return run


def failed(attacks: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, attack in attacks.items() if attack["verdict"] == "fail"}


def test_the_default_sandbox_withstands_all(sandy: Cli, home: pathlib.Path) -> None:
    before = set(os.listdir("/tmp"))
    began = time.monotonic()
    got = sandy.call("verify", "--json", timeout=110)
    assert time.monotonic() - began < 60
    assert (got.status, got.error) == (0, ""), got.text
    document = json.loads(got.out)
    assert set(document) == {"version", "sandy", "passed", "refused", "succeeded", "untried", "seconds", "degraded", "attacks"}
    assert (document["version"], document["passed"], document["succeeded"]) == (1, True, 0)
    assert document["sandy"] == sandy.call("--version").text.split()[1]
    attacks = document["attacks"]
    assert document["refused"] + document["untried"] == len(attacks) >= 90
    for attack in attacks:
        assert set(attack) == {"name", "class", "rows", "attack", "verdict", "detail"}
        assert attack["class"] in CLASSES and attack["verdict"] in ("pass", "untried")
        assert attack["rows"] and all(1 <= row <= 47 for row in attack["rows"])
        assert attack["detail"] and attack["detail"].isprintable()
        assert attack["verdict"] == "untried" or attack["detail"].startswith("refused: ")
    # By class, in this order, and none of those that can be tried wherever sandboxes start is left out.
    assert [attack["class"] for attack in attacks] == sorted((attack["class"] for attack in attacks), key=CLASSES.index)
    for name, wanted in ALWAYS.items():
        tried = {attack["name"] for attack in attacks if attack["class"] == name and attack["verdict"] == "pass"}
        assert wanted - tried <= ({"cgroup", "forks", "memory"} if name == "limits" else set()), wanted - tried
    # Nothing of it stays behind.
    assert [name for name in os.listdir(home) if "sandy-verify" in name] == []
    assert [name for name in set(os.listdir("/tmp")) - before if "sandy-verify" in name] == []
    assert os.listdir(sandy.workspace) == []


def test_the_table_for_people(sandy: Cli) -> None:
    got = sandy.call("verify", "--class", "files", "--class", "limits").ok()
    head, *rows = got.lines
    at = head.index("what happened")
    assert head.split()[:3] == ["class", "rows", "attack"]
    attacks = [row for row in rows if row.split()[0] in CLASSES]
    assert {row.split()[0] for row in attacks} == {"files", "limits"}
    for row in attacks:
        assert row[at:].startswith(("refused: ", "not possible to try here: ")) and row[at - 1] == " " and row[at] != " "
        assert row[at - 6 : at].strip() == ("PASS" if row[at:].startswith("refused") else "-")
    refused = sum(" PASS " in row for row in attacks)
    assert rows[-1].startswith(f"{len(attacks)} attacks: {refused} refused, 0 succeeded, {len(attacks) - refused} not possible to try here (")


@pytest.mark.parametrize("name", CLASSES)
def test_one_class(verify: Verify, name: str) -> None:
    attacks = verify("--class", name)
    assert {attack["class"] for attack in attacks.values()} == {name}
    assert ALWAYS[name] <= set(attacks)


def test_wrong_arguments(sandy: Cli) -> None:
    got = sandy.call("verify", "--class", "file")
    assert got.status == 2 and "host-side" in got.error and got.out == b""
    assert sandy.call("verify", "word").status == 2
    got = sandy.call("verify", "--policy", "/nonexistent")
    assert got.status == 125 and "/nonexistent" in got.error and got.out == b""


def test_a_sandbox_that_cannot_be_started(sandy: Cli) -> None:
    got = sandy.call("verify", env={"SANDY_BWRAP": "/nonexistent"})
    assert got.status == 125 and "SANDY_BWRAP" in got.error and got.out == b""
    got = sandy.call("verify", "--read", "/nonexistent/path")
    assert got.status == 125 and "/nonexistent/path" in got.error and got.out == b""


@pytest.mark.parametrize("options", [("--seccomp", "strict"), ("--private-workspace",), ("--hostname", "other", "--tmp-size", "1M")])
def test_policies_that_are_not_weaker(verify: Verify, options: tuple[str, ...]) -> None:
    assert failed(verify(*options)) == set()


def test_a_workspace_of_ones_own_is_left_as_it_was(verify: Verify, ws: pathlib.Path) -> None:
    (ws / "mine").write_text("mine")
    assert failed(verify("--workspace", ws, "--class", "files", "--class", "host-side")) == set()
    assert os.listdir(ws) == ["mine"] and (ws / "mine").read_text() == "mine"


def test_a_policy_file_and_what_it_denies(sandy: Cli, verify: Verify, tmp_path: pathlib.Path) -> None:
    (tmp_path / "shown/keys").mkdir(parents=True)
    (tmp_path / "shown/keys/key").write_text("k")
    (tmp_path / "shown/list").write_text("l")
    policy = tmp_path / "shown/policy.json"
    policy.write_text(json.dumps({"version": 1, "filesystem": {"write": [str(tmp_path / "shown")], "deny": [str(tmp_path / "shown/keys"), str(tmp_path / "shown/list")]}}))
    attacks = verify("--policy", policy, "--class", "files")
    assert [attacks[name]["verdict"] for name in ("policy-file", "denied-1", "denied-2")] == ["pass"] * 3
    assert "keys" in attacks["denied-1"]["attack"] and "list" in attacks["denied-2"]["attack"]
    # Named by a rule of its own, it is writable: that is what the rule is for.
    attacks = verify("--policy", policy, "--write", policy, "--class", "files", status=1)
    assert failed(attacks) == {"policy-file"}
    assert attacks["policy-file"]["allowed_by"] == f"--write {policy}"


# The test of the test: what a policy gives away is told, and by which rule.


def test_weakened_the_home_directory(verify: Verify, home: pathlib.Path) -> None:
    attacks = verify("--write", home, "--unsafe-broad-workspace", status=1)
    wanted = {"read-home", "write-home", "later-home", "symbolic-link", "planted-link", "root-of-another", "download-link", "upload-link"}
    assert failed(attacks) == wanted
    assert {attacks[name]["allowed_by"] for name in wanted} == {f"--write {home}"}
    if ROOT:  # what root has for itself is shown by no rule that only lets it be read
        return
    # Read-only: nothing can be changed, but sockets can be connected to.
    attacks = verify("--read", home, status=1)
    assert failed(attacks) == wanted - {"write-home", "upload-link"}


def test_weakened_by_a_link(verify: Verify, home: pathlib.Path, tmp_path: pathlib.Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(home)
    attacks = verify("--read", link, "--class", "files", status=1)
    assert "read-home" in failed(attacks) and attacks["read-home"]["allowed_by"] == f"--read {link}"


def test_weakened_where_it_has_another_name_inside(verify: Verify, home: pathlib.Path, tmp_path: pathlib.Path) -> None:
    # A policy file's workspace is at /workspace, where the host's paths mean nothing.
    file = tmp_path / "broad.json"
    file.write_text(json.dumps({"version": 1, "filesystem": {"workspace": {"path": str(home)}, "unsafe_broad_workspace": True}}))
    attacks = verify("--policy", file, "--class", "files", "--class", "sockets", "--class", "host-side", status=1)
    assert {"read-home", "write-home", "later-home", "symbolic-link", "download-link"} <= failed(attacks)
    assert all(str(home) in attacks[name]["allowed_by"] for name in failed(attacks))


def test_what_is_denied_is_tried_where_it_is_inside(verify: Verify, tmp_path: pathlib.Path) -> None:
    project = tmp_path / "project"
    for name in ("private/shown", "only/shown"):
        (project / name).mkdir(parents=True)
    (project / "private/key").write_text("private")
    (project / "only/shown/it").write_text("public")
    policy = project / "policy.json"
    filesystem: dict[str, Any] = {"workspace": {"path": str(project)}, "deny": [str(project / "private"), str(project / "only")], "read": [str(project / "only/shown")]}
    policy.write_text(json.dumps({"version": 1, "filesystem": filesystem}))
    attacks = verify("--policy", policy, "--class", "files")
    # Not "no such file": they are there, and refused.
    assert attacks["denied-2"]["verdict"] == "pass" and attacks["denied-2"]["detail"] == "refused: EACCES", attacks["denied-2"]
    assert attacks["policy-file"]["detail"] == "refused: EROFS"
    # What a rule shows below is no find, and nothing else is there.
    assert attacks["denied-1"]["verdict"] == "untried"


def test_a_home_that_is_the_directory_for_temporary_files(verify: Verify) -> None:
    verify("--class", "files", env={"HOME": "/tmp"})


def test_names_of_secrets_in_any_spelling_and_number(verify: Verify, tmp_path: pathlib.Path) -> None:
    many = {f"A{number}_KEY": "x" for number in range(210)}
    names = ["openai_api_key", "GH_PAT", "BORG_PASSPHRASE", "ZZ_TOKEN"]
    file = tmp_path / "passing.json"
    for name in names:
        file.write_text(json.dumps({"version": 1, "environment": {"pass": [name]}}))
        attacks = verify("--policy", file, "--class", "processes", status=1, env=many | {name: "hunter2"})
        assert {attacks[one]["allowed_by"] for one in failed(attacks)} == {f"environment.pass {name}"}


def test_weakened_a_directory_of_sockets(verify: Verify, tmp_path: pathlib.Path) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    env = {"XDG_RUNTIME_DIR": str(runtime)}
    assert failed(verify("--class", "sockets", env=env)) == set()
    option = "--write" if ROOT else "--read"  # what root has for itself is shown by no other rule
    attacks = verify(option, runtime, "--class", "sockets", status=1, env=env)
    # Those that are there when it starts are hidden.
    assert failed(attacks) == {"later-runtime"} and attacks["stream-runtime"]["verdict"] == "pass"
    assert attacks["later-runtime"]["allowed_by"] == f"{option} {runtime}"
    assert "seen outside" in attacks["later-runtime"]["detail"]


def test_weakened_system_calls(verify: Verify, tmp_path: pathlib.Path) -> None:
    policy = tmp_path / "all.json"
    policy.write_text('{"version": 1, "description": "for a test", "default": {"action": "allow", "reason": "to see what is told"}, "rows": []}')
    attacks = verify("--seccomp", policy, "--class", "syscalls", "--class", "files", status=1)
    strong = verify("--class", "syscalls", "--class", "files")
    assert {"openat2", "setns", "set-user-id"} <= failed(attacks)
    # What is a failure now was refused before, and no right comes with it: namespaces and mounts are refused by other layers.
    assert {strong[name]["verdict"] for name in failed(attacks)} == {"pass"}
    assert {attacks[name]["allowed_by"] for name in failed(attacks)} == {f"seccomp.file {policy}"}
    assert not failed(attacks) & {"unshare-user", "clone-user", "mount-tmpfs", "bind-root", "remount", "chroot", "fsopen", "read-home"}


def test_weakened_tracing(verify: Verify) -> None:
    attacks = verify("--unsafe-ptrace", "--class", "syscalls", status=1)
    assert "trace-child" in failed(attacks) <= {"trace-child", "take-descriptor"}
    assert attacks["trace-child"]["allowed_by"] == "seccomp.unsafe_ptrace"


def test_weakened_the_environment(verify: Verify) -> None:
    env = {"AWS_SECRET_ACCESS_KEY": "s3cr3t-of-a-cloud", "GITHUB_TOKEN": "s3cr3t-of-a-forge"}
    attacks = verify("--class", "processes", env=env)
    assert failed(attacks) == set() and attacks["secret-variables"]["verdict"] == "pass"
    attacks = verify("--env", "GITHUB_TOKEN", "--class", "processes", status=1, env=env)
    assert failed(attacks) == {"secret-variables"}
    assert attacks["secret-variables"]["allowed_by"] == "environment.pass GITHUB_TOKEN"
    assert "s3cr3t" not in json.dumps(attacks)
    # A value of the sandbox's own under such a name is no secret of the caller's.
    attacks = verify("--env", "GITHUB_TOKEN=another", "--class", "processes", env=env)
    assert attacks["secret-variables"]["verdict"] == "pass"
    attacks = verify("--env", "SANDY_VERIFY_SECRET", "--class", "processes", status=1)
    assert failed(attacks) == {"environment"} and attacks["environment"]["allowed_by"] == "environment.pass SANDY_VERIFY_SECRET"


def test_weakened_the_network(verify: Verify) -> None:
    assert failed(verify("--allow-domain", "example.org", "--class", "network")) == set()
    # Names below a reserved domain (RFC 2606), and a cloud's metadata address.
    attacks = verify("--allow-domain", "*.example.com", "--allow-private", "169.254.169.254:80", "--class", "network", status=1)
    assert failed(attacks) == {"list-connect", "list-http", "list-socks", "list-metadata", "dns-tunnel"}
    assert attacks["dns-tunnel"]["allowed_by"].endswith("*.example.com") and "169.254.169.254" in attacks["list-metadata"]["allowed_by"]


def test_weakened_what_names_stand_for(verify: Verify, home: pathlib.Path) -> None:
    own = home / ".config/sandy/policies"
    own.mkdir(parents=True)
    attacks = verify("--write", own.parent, "--class", "files")
    assert attacks["policies"]["verdict"] == "pass"
    # A rule that names the directory is consent.
    attacks = verify("--write", own, "--class", "files", status=1)
    assert failed(attacks) == {"policies"} and attacks["policies"]["allowed_by"] == f"--write {own}"
    assert os.listdir(own) == []


def test_a_name_that_was_asked_for_is_out(net: Net, rig: Rig, verify: Verify, tmp_path: pathlib.Path) -> None:
    # The attack gets "no such name", which a server of names has said: it was asked.
    file = tmp_path / "real.json"
    file.write_text(json.dumps({"version": 1, "network": {"mode": "allowlist", "allow": ["*.example.com"], "dns_answers": "real"}}))
    attacks = verify("--policy", file, "--class", "network", status=1, env=dict(net.env))
    assert "dns-tunnel" in failed(attacks) and attacks["dns-tunnel"]["allowed_by"].endswith("*.example.com")


def test_an_attack_program_that_does_not_work_passes_nothing(sandy: Cli, programs: pathlib.Path, open_directory: pathlib.Path, home: pathlib.Path, ws: pathlib.Path) -> None:
    # One that ends at once, says nothing, or says what it likes: what it should have shown is not shown.
    for script in ("exit 0", "kill -9 $$", "echo refused EPERM", "echo nonce refused EPERM"):
        copy = open_directory / f"programs-{len(os.listdir(open_directory))}"
        subprocess.run(["cp", "-a", programs, copy], check=True)
        (copy / "sandy-attack").unlink()
        (copy / "sandy-attack").write_text(f"#!/bin/sh\n{script}\n")
        (copy / "sandy-attack").chmod(0o755)
        got = Cli(copy, home, ws).call("verify", "--class", "syscalls")
        assert got.status == 125 and "hint: " in got.error and got.out == b"", got


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_by_a_signal_it_leaves_nothing(sandy: Cli, home: pathlib.Path, ws: pathlib.Path, number: signal.Signals) -> None:
    process = sandy.start("verify", "--workspace", ws)
    wait_until(lambda: os.listdir(ws), 20)  # the attacks have begun
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert os.listdir(ws) == [] and [name for name in os.listdir(home) if "sandy-verify" in name] == []


@pytest.mark.parametrize("delay", [0.02, 0.05, 0.1, 0.2, 0.4])
def test_ended_by_a_signal_at_any_time_it_leaves_nothing(sandy: Cli, home: pathlib.Path, ws: pathlib.Path, delay: float) -> None:
    process = sandy.start("verify", "--workspace", ws)
    time.sleep(delay)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=30)
    # Before it has made anything, the signal ends it.
    assert process.returncode in (-signal.SIGHUP, 128 + signal.SIGHUP)
    assert os.listdir(ws) == [] and [name for name in os.listdir(home) if "sandy-verify" in name] == []


def test_few_descriptors(sandy: Cli, programs: pathlib.Path, home: pathlib.Path) -> None:
    for most in (14, 18, 24):
        got = host(f"ulimit -n {most}; exec {programs}/sandy verify", env={"HOME": str(home), "PATH": USUAL_PATH}, timeout=110)
        assert got.status == 125 and "hint: " in got.error, got
        assert [name for name in os.listdir(home) if "sandy-verify" in name] == []


def test_what_a_killed_one_leaves_the_next_one_removes(sandy: Cli, verify: Verify, home: pathlib.Path) -> None:
    process = sandy.start("verify")
    wait_until(lambda: any("sandy-verify" in name for name in os.listdir(home)), 20)
    process.kill()
    process.communicate(timeout=30)
    left = [home / name for name in os.listdir(home) if "sandy-verify" in name]
    assert left
    long_ago = time.time() - 3600
    for path in left:
        os.utime(path, (long_ago, long_ago))
    verify("--class", "files")
    assert [name for name in os.listdir(home) if "sandy-verify" in name] == []


def test_python(api: type, ws: pathlib.Path) -> None:
    with api(deny=["/usr/share/doc"], open_files=512) as sandbox:
        found = sandbox.verify(classes=["files", "host-side"])
        assert found.passed and found.failures == ()
        assert {finding.attack_class for finding in found.findings} == {"files", "host-side"}
        assert "denied-1" in {finding.name for finding in found.findings}
        assert sandbox.run("echo on").stdout == b"on\n"
    weak = api(workspace=ws, seccomp={"unsafe_ptrace": True})
    found = weak.verify(classes=["syscalls"])
    assert not found.passed and "trace-child" in {finding.name for finding in found.failures}
    assert {finding.allowed_by for finding in found.failures} == {"seccomp.unsafe_ptrace"}
    assert os.listdir(ws) == []
    weak.close()
