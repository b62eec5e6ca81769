"""Rows 34 to 36, 40 and 45: processes of the sandbox against the host, the agent, and the end."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable

import pytest
from support import Cli, descendants, finish, host, need, processes_with, program_of, wait_until

Processes = Callable[[], list[int]]
Probe = Callable[..., pathlib.Path]


def test_t34_b140_other_processes(sandy: Cli) -> None:
    other = subprocess.Popen(["sleep", "333"], env={"MARK": "zz-mark", "PATH": "/usr/bin:/bin"})
    try:
        script = f"ps axeww | grep zz-mar[k]; cat /proc/{other.pid}/environ | tr '\\0' '\\n'; kill -0 {other.pid} && echo alive"
        control = host(script)
        assert control.text.count("zz-mark") >= 1 and "alive" in control.text
        got = sandy.sh(script)
        assert got.out == b"", got
        assert sandy.sh("ls /proc | grep -c '^[0-9]*$'").text.strip() in ("4", "5")  # agent, supervisor, sh, ls, grep
    finally:
        other.kill()
        other.wait()


def test_t34_b140_kernel_files(sandy: Cli) -> None:
    script = (
        "head -c1 /proc/kcore; head -c1 /proc/kmsg; ls /sys/kernel/debug; sysctl -w kernel.hostname=x; echo x > /proc/sys/kernel/hostname;"
        "echo b > /proc/sysrq-trigger; echo 0 > /proc/sys/vm/drop_caches; echo '|/tmp/x' > /proc/sys/kernel/core_pattern;"
        "echo 1000 > /proc/self/loginuid; echo -1000 > /proc/self/oom_score_adj; cat /proc/1/stack; echo x > /proc/sys/kernel/modprobe;"
        "head -c1 /dev/mem; head -c1 /dev/kmsg; ls /dev/dri /dev/disk /dev/vda /dev/sda"
    )
    settings = [path for path in map(pathlib.Path, ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname")) if path.exists()]
    before = [path.read_text() for path in settings]
    got = sandy.sh(script)
    assert got.out == b"", got
    assert [path.read_text() for path in settings] == before
    assert sandy.sh("cat /proc/sys/kernel/hostname").text == "sandbox\n"


def test_t34_roots_of_others(sandy: Cli, tmp_path: pathlib.Path) -> None:
    (tmp_path / "key").write_text("s3cr3t")
    paths = [f"/proc/{who}/{what}{tmp_path}/key" for who in ("self", "1", "$$", "$PPID", "thread-self", os.getpid(), os.getppid()) for what in ("root", "cwd")]
    assert host(f"cat /proc/self/root{tmp_path}/key").text == "s3cr3t"
    got = sandy.sh("cat " + " ".join(paths))
    assert got.out == b""


def test_t34_the_agents_file_cannot_be_overwritten(sandy: Cli, programs: pathlib.Path) -> None:
    # CVE-2019-5736: the program behind /proc/self/exe, once it is not running.
    before = (programs / "sandy-agent").read_bytes()
    script = "echo x > /run/sandy-agent; rm /run/sandy-agent; mv /run/sandy-agent /run/x; chmod u+w /run/sandy-agent; cp /bin/true /run/sandy-agent; (exec 3>/proc/1/exe); (echo x > /proc/$PPID/exe); true"
    sandy.sh(script).ok()
    assert (programs / "sandy-agent").read_bytes() == before
    assert os.access(programs / "sandy-agent", os.X_OK)


@pytest.mark.parametrize("way", ["ld", "copy", "memfd", "interpreter", "direct", "proc"])
def test_t35_a_denied_program(sandy: Cli, ws: pathlib.Path, way: str) -> None:
    # There are no exec rules, which a loader or a copy would get around: a denied program's bytes are not there.
    tools = ws / "tools"
    tools.mkdir()
    shutil.copy("/usr/bin/printenv", tools / "denied")
    (ws / "script").write_text(f"#!{tools}/denied\n")
    (ws / "script").chmod(0o755)
    loader = next((p for p in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(p)), "")
    memfd = "import os; f = os.memfd_create('m'); os.write(f, open('tools/denied', 'rb').read()); os.execv(f'/proc/self/fd/{f}', ['denied', 'PROOF'])"
    script = {
        "ld": f"{loader} tools/denied PROOF", "copy": "cp tools/denied c && ./c PROOF", "memfd": f'python3 -c "{memfd}"',
        "interpreter": "./script PROOF", "direct": "tools/denied PROOF", "proc": "exec 3<tools/denied && /proc/self/fd/3 PROOF",
    }[way]
    options = ["--env", "PROOF=ran"]
    assert "ran" in sandy.sh(script, *options).text or way == "interpreter"
    got = sandy.sh(script, *options, "--deny", "tools/denied")
    assert got.status != 0 and "ran" not in got.text


def test_t36_helpers_in_the_workspace_and_path(sandy: Cli, ws: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for name in ("bwrap", "sandy-launch", "sandy-agent", "sandy"):
        (ws / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (ws / name).chmod(0o755)
    for mode in (0o777, 0o755):
        for path in (f".:{sandy.env['PATH']}", f":{sandy.env['PATH']}", f"{ws}:{sandy.env['PATH']}", ".", str(ws)):
            ws.chmod(mode)
            got = sandy.run("true", env={"PATH": path})
            assert got.status == 0, got.error
    assert not (tmp_path / "ran").exists()
    got = sandy.run("true", env={"SANDY_BWRAP": "bwrap"})
    assert got.status == 125 and "SANDY_BWRAP" in got.error and not (tmp_path / "ran").exists()


def test_t36_what_decides_the_next_start_is_not_writable(sandy: Cli, ws: pathlib.Path, home: pathlib.Path, programs: pathlib.Path) -> None:
    # Policy files, and Sandy's own programs, in the workspace: as in a checkout, or a virtual environment of the project.
    (ws / "own.json").write_text('{"version": 1, "extends": "default", "rows": []}')
    (ws / "conf").mkdir()
    (ws / "conf/policy.json").write_text('{"version": 1, "filesystem": {"workspace": {"path": "."}}, "seccomp": {"file": "own.json"}}')
    shutil.copytree(programs, ws / ".venv/programs")
    installed = Cli(ws / ".venv/programs", home, ws)
    before = {path: path.read_bytes() for path in ws.rglob("*") if path.is_file()}
    script = """
for f in own.json conf/policy.json .venv/programs/sandy; do
  echo '{}' > $f; echo x >> $f; rm -f $f; mv $f moved; ln -f /bin/true $f; cp /bin/true new && mv -f new $f
done
mv .venv old; mv conf other; rm -rf .venv conf; touch .venv/programs/more; echo mine > ok; touch conf/free .venv/free
"""
    got = installed.run("sh", "-c", script, options=["-p", "conf/policy.json"])
    assert got.status == 0, got.error
    assert {path: path.read_bytes() for path in before} == before
    assert (ws / "ok").read_text() == "mine\n" and (ws / "conf/free").exists() and (ws / ".venv/free").exists()
    assert sorted(os.listdir(ws / ".venv/programs")) == sorted(os.listdir(programs))
    # A rule that names one is consent.
    assert installed.run("sh", "-c", "echo >> own.json", options=["-p", "conf/policy.json", "--write", "own.json"]).status == 0
    assert (ws / "own.json").read_bytes().endswith(b"\n")


def test_t36_no_project_file_widens_the_policy(sandy: Cli, ws: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "key").write_text("s3cr3t")
    text = json.dumps({"version": 1, "filesystem": {"read": [str(tmp_path)]}})
    for name in ("policy.json", ".sandy.json", "sandy.json", ".sandy/policy.json", ".config/sandy/policy.json"):
        (ws / name).parent.mkdir(parents=True, exist_ok=True)
        (ws / name).write_text(text)
    assert sandy.sh(f"cat {tmp_path}/key").out == b""
    assert sandy.sh(f"cat {tmp_path}/key", "-p", "policy.json").text == "s3cr3t"  # named by the caller: the control


def test_t36_programs_are_not_writable(sandy: Cli, programs: pathlib.Path) -> None:
    for name in ("sandy", "sandy-launch", "sandy-agent"):
        status = (programs / name).stat()
        assert not status.st_mode & 0o022
    got = sandy.sh(f"ls {programs}; echo x > {programs}/sandy", "--read", programs)
    assert got.status != 0 and "Read-only" in got.error


def test_t36_b131_loader_variables_of_the_caller(sandy: Cli, tmp_path: pathlib.Path) -> None:
    library, script = tmp_path / "evil.so", tmp_path / "evil.sh"
    source = tmp_path / "evil.c"
    source.write_text(f'#include <fcntl.h>\n__attribute__((constructor)) static void init(void) {{ open("{tmp_path}/preloaded", O_CREAT | O_WRONLY, 0600); }}\n')
    need(shutil.which("cc") and subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=False).returncode == 0, "a C compiler")
    script.write_text(f"touch {tmp_path}/sourced\n")
    env = {"BASH_ENV": str(script), "ENV": str(script), "LD_PRELOAD": str(library), "LD_LIBRARY_PATH": str(tmp_path), "LD_AUDIT": str(library)}
    subprocess.run(["bash", "-c", "true"], env={"PATH": "/usr/bin:/bin"} | env, check=True, stderr=subprocess.DEVNULL)
    assert (tmp_path / "preloaded").exists() and (tmp_path / "sourced").exists()
    (tmp_path / "sourced").unlink()
    # The caller's own LD_PRELOAD is in the caller's own `sandy`; what it starts has none of it.
    process = sandy.start("run", "--", "sh", "-c", "env; cat /proc/1/environ; bash -c true; grep -c evil /proc/self/maps; read x", env=env, stdin=subprocess.PIPE)
    time.sleep(1)
    for pid in descendants(process.pid):
        try:
            maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
            environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        except PermissionError:
            continue
        assert "evil" not in maps and b"evil" not in environment, program_of(pid)
    out, err = process.communicate(b"\n", timeout=20)
    assert b"evil" not in out and out.strip().endswith(b"0")
    assert not (tmp_path / "sourced").exists()


@pytest.mark.parametrize("how", ["exit", "timeout"])
def test_t40_survivors(sandy: Cli, probe: Probe, marker: str, processes: Processes, how: str) -> None:
    program = probe("daemon")
    kinds = ("plain", "setsid", "double", "ignore", "stop", "nodeathsig", "subreaper", "deep")
    script = "; ".join(f"./{program.name} {kind} {marker}" for kind in kinds)
    ready = f"n=0; while [ $n -lt {len(kinds)} ]; do n=$(ls started-* 2>/dev/null | wc -l); sleep 0.05; done; echo all"
    if how == "exit":
        assert sandy.sh(f"{script}; {ready}").ok().out == b"all\n"
    else:
        got = sandy.sh(f"{script}; {ready}; sleep {marker}", "--timeout", "3")
        assert got.status == 124 and got.out == b"all\n"
    assert processes() == []


def test_t40_survivors_of_a_timed_out_call_in_a_living_sandbox(api: type, compile_c: Probe, marker: str, processes: Processes) -> None:
    program = compile_c("daemon")
    with api() as be:
        be.upload_files([("/workspace/daemon", program.read_bytes())])
        be.execute("chmod +x daemon")
        kept = be.execute(f"sleep {marker} & echo kept").output  # of another call: lives on
        assert kept == "kept\n"
        kinds = ("plain", "setsid", "double", "ignore", "stop", "nodeathsig", "subreaper", "deep")
        got = be.execute("; ".join(f"./daemon {kind} {marker}" for kind in kinds) + f"; sleep {marker}", timeout=3)
        assert got.exit_code == 124
        wait_until(lambda: len(processes()) == 1, 3, "the end of all but the other call's process")
        assert be.execute("echo on").output == "on\n"
    assert processes() == []


def test_t40_a_small_fork_bomb_ends(sandy: Cli, probe: Probe, marker: str, processes: Processes) -> None:
    # 300 processes that fork anew when they are killed off one by one: bounded by a count, so that a fault here is harmless.
    program = probe("daemon")
    before = time.monotonic()
    got = sandy.sh(f"./{program.name} bomb {marker}; sleep {marker}", "--timeout", "2")
    assert got.status == 124
    assert time.monotonic() - before < 20
    assert processes() == []


@pytest.mark.parametrize("number", ["KILL", "STOP", "TERM"])
def test_t40_killing_everything_inside(sandy: Cli, number: str) -> None:
    # kill -1: all that a process may signal. The sandbox may end by it; `sandy` says how, and does not hang.
    victim = subprocess.Popen(["sleep", "300"])
    try:
        script = f"import os; from signal import SIG{number} as n; os.kill(-1, n); os.kill(os.getppid(), n); os.kill(1, n); print('done')"
        process = sandy.start("run", "--timeout", "5", "--", "python3", "-c", script)
        got = finish(process, timeout=25)
        assert got.status in (0, 124, 125, 128 + getattr(signal, f"SIG{number}")), got
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


@pytest.mark.parametrize("number", ["KILL", "STOP"])
def test_t40_killing_the_supervisors(api: type, marker: str, processes: Processes, number: str) -> None:
    # One command kills another's supervisor: that one is over, with all its processes; the sandbox and other commands go on.
    with api() as be:
        be.execute(f"sleep {marker} &")
        inside = be.execute(f"kill -{number} $PPID; sleep 0.3; echo still", timeout=5)
        assert inside.exit_code != 0 or "still" in inside.output
        after = be.execute("echo on", timeout=10)
        assert after.output == "on\n" or after.exit_code == 125, after
    assert processes() == []


def test_t40_the_command_stops_its_parent_at_the_time_limit(sandy: Cli, marker: str, processes: Processes) -> None:
    before = time.monotonic()
    got = sandy.sh(f"kill -STOP $PPID; setsid sleep {marker} & sleep {marker}", "--timeout", "2")
    assert got.status in (124, 125) and time.monotonic() - before < 12
    assert processes() == []


def test_t45_b131_environment_of_the_caller(sandy: Cli) -> None:
    secrets = {
        "OPENAI_API_KEY": "s3cr3t", "AWS_SECRET_ACCESS_KEY": "s3cr3t", "GITHUB_TOKEN": "s3cr3t", "KUBECONFIG": "s3cr3t", "SSH_AUTH_SOCK": "s3cr3t",
        "DBUS_SESSION_BUS_ADDRESS": "s3cr3t", "PYTHONPATH": "s3cr3t", "GIT_DIR": "s3cr3t", "NODE_OPTIONS": "s3cr3t", "BASH_FUNC_x%%": "() { s3cr3t; }",
        "LANG": "s3cr3t", "TERM": "s3cr3t", "USER": "s3cr3t",
    }
    assert host("env", env=secrets).text.count("s3cr3t") >= len(secrets) - 1  # dash drops the function
    script = "env; cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/*/cmdline | tr '\\0' ' '"
    got = sandy.sh(script, env=secrets)
    assert "s3cr3t" not in got.text
    names = {line.partition("=")[0] for line in sandy.run("env", env=secrets).ok().lines}
    assert names == {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"}
    got = sandy.run("env", options=["--env", "GITHUB_TOKEN", "--env", "OTHER=set"], env=secrets).ok()
    assert "GITHUB_TOKEN=s3cr3t" in got.lines and "OTHER=set" in got.lines and got.text.count("s3cr3t") == 1


def test_t45_b130_secrets_on_no_command_line(sandy: Cli, tmp_path: pathlib.Path) -> None:
    # Given by name or by a policy file; what is written on our own command line was the caller's choice.
    policy = tmp_path / "policy.json"
    policy.write_text('{"version": 1, "environment": {"set": {"K": "s3cr3t-of-the-policy"}}}')
    process = sandy.start("run", "-p", policy, "--env", "L", "--", "sh", "-c", "echo $K $L; read x", env={"L": "s3cr3t-passed"}, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"s3cr3t-of-the-policy s3cr3t-passed\n"  # type: ignore[union-attr]
    words = [pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() for pid in [process.pid, *descendants(process.pid)]]
    assert len(words) >= 4 and b"s3cr3t" not in b"".join(words)
    for pid in descendants(process.pid):
        if program_of(pid) in ("bwrap", "sandy-launch"):
            with_environment = pathlib.Path(f"/proc/{pid}/environ")
            try:
                assert with_environment.read_bytes() == b""
            except PermissionError:
                pass
    process.communicate(b"\n", timeout=20)
    plan = sandy.call("plan", "-p", policy, "--env", "L", "--", "true", env={"L": "s3cr3t-passed"}).ok()
    assert "s3cr3t" not in plan.text  # what is shown to people does not show it
    assert "s3cr3t" not in sandy.call("plan", "--json", "-p", policy, "--env", "L", "--", "true", env={"L": "s3cr3t-passed"}).ok().text


def test_t45_the_caller_is_not_readable(sandy: Cli) -> None:
    assert processes_with(str(sandy.workspace)) == []
    got = sandy.sh(f"cat /proc/{os.getpid()}/environ /proc/{os.getppid()}/cmdline; cat ~/.bash_history ~/.netrc ~/.aws/credentials /root/.ssh/id_rsa /etc/shadow /etc/ssh/*key")
    assert got.out == b""
