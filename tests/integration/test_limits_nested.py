"""In a container of a user's own: a user, a mount, a PID and a cgroup namespace, as rootless engines make them, with a cgroup that was delegated and without."""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import shutil

import pytest
from limits_support import TOUCH, cgroups  # noqa: F401
from support import Cli, Result, host, need

# Root in there first, who mounts; then the user again, as whom an engine runs what isn't to be root (podman's --userns=keep-id). The runtime directory, and what
# says that systemd runs, stay outside, as an image has neither; `host_runtime` leaves them, as toolbox(1) does.
INSIDE = """
: >.inside
mount -t proc none /proc && mount -t tmpfs none /sys/fs && mkdir /sys/fs/cgroup && mount {option} -t cgroup2 none /sys/fs/cgroup {hide} || exit 99
exec unshare -U --map-user={uid} --map-group={gid} sh -c {script}
"""
# As an engine has it: what watches a container is in a cgroup of its own.
DELEGATED = """
group=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)
mkdir $group/supervisor $group/container && echo 0 >$group/container/cgroup.procs || exit 98
{container} &
until test -e .inside; do sleep 0.05; done # what is in the container is in the group by now
rm .inside
for pid in $! $$; do echo $pid >$group/supervisor/cgroup.procs; done
echo +memory +pids +cpu >$group/cgroup.subtree_control || exit 97
wait $!
"""
WATCHED = "for turn in $(seq 100); do grep -qx 0 /sys/fs/cgroup/cgroup.procs || break; sleep 0.1; done; "
HIDE = "&& mount -t tmpfs none /run/systemd && mount -t tmpfs none /run/user"


def contained(sandy: Cli, script: str, *, delegated: str | None, read_only: bool = False, as_root: bool = False, host_runtime: bool = False, ids: str = "-r") -> Result:
    if delegated == "watched from outside":
        script = WATCHED + script
    inside = INSIDE.format(option="-o ro" if read_only else "", hide="" if host_runtime else HIDE, uid=os.geteuid(), gid=os.getegid(), script=shlex.quote(script))
    if as_root:
        inside = inside.rpartition("exec unshare")[0] + f"exec sh -c {shlex.quote(script)}\n"
    container = f"unshare -U {ids} -m -p -f -C sh -c {shlex.quote(inside)}"
    if delegated == "watched from outside":
        container = f"sh -c {shlex.quote(DELEGATED.format(container=container))}"
    if delegated:
        container = f"systemd-run --user --scope -q -p Delegate=yes {container}"
    env = {name: value for name, value in os.environ.items() if name != "SANDY_BWRAP"} | {"HOME": sandy.env["HOME"]}
    return host(container, cwd=sandy.workspace, env=env, timeout=100)


def runs(sandy: Cli, options: str, megabytes: int) -> str:
    return f"{shlex.quote(sandy.program)} run --json outcome.json {options} -- python3 -c {shlex.quote(TOUCH)} {megabytes}; echo $?"


def test_with_a_delegated_cgroup(sandy: Cli) -> None:
    got = contained(sandy, runs(sandy, "--memory 64M --pids 30", 200) + "; " + runs(sandy, "--memory 256M", 100), delegated="watched from outside")
    assert got.lines == ["137", "has it", "0"] and "memory limit 64 MiB" in got.error, got
    assert json.loads((sandy.workspace / "outcome.json").read_text())["degraded"] == []


def test_others_are_in_it(sandy: Cli) -> None:
    # Its first process' parent, which is outside, keeps the kernel from giving the group any controllers for others below it.
    got = contained(sandy, runs(sandy, "--memory 64M", 10) + "; " + runs(sandy, "", 10), delegated="shared")
    assert got.lines == ["125", "has it", "0"] and "in another PID namespace" in got.error and "hint: put them into a cgroup of their own" in got.error, got
    assert "limits.memory" in json.loads((sandy.workspace / "outcome.json").read_text())["degraded"]


@pytest.mark.parametrize("read_only", [True, False])
def test_without_one(sandy: Cli, read_only: bool) -> None:
    got = contained(sandy, runs(sandy, "--memory 64M", 10) + "; " + runs(sandy, "", 10), delegated=None, read_only=read_only)
    assert got.lines == ["125", "has it", "0"], got
    # What was asked for, why not, and what to do.
    assert "--memory" in got.error and "our own cgroup is not ours to write" in got.error and "delegate a cgroup" in got.error, got
    assert "limits.memory" in json.loads((sandy.workspace / "outcome.json").read_text())["degraded"]


def test_a_service_manager_of_the_host(sandy: Cli) -> None:
    # It is to be seen, but knows processes by other numbers: what it would put into our scope is somebody else's.
    with_limit, without = runs(sandy, "--memory 64M", 10), runs(sandy, "", 10)
    got = contained(sandy, f"{with_limit}; {without}", delegated=None, host_runtime=True)
    assert got.lines == ["125", "has it", "0"] and "--memory" in got.error and "hint:" in got.error, got
    assert "limits.memory" in json.loads((sandy.workspace / "outcome.json").read_text())["degraded"]
    # Where it shares the host's cgroups, only the other end of the manager's socket shows it.
    inside = f"mount -t proc none /proc || exit 99; exec unshare -U --map-user={os.geteuid()} --map-group={os.getegid()} sh -c {shlex.quote(with_limit + '; ' + without)}"
    got = host(f"unshare -U -r -m -p -f sh -c {shlex.quote(inside)}", cwd=sandy.workspace, env=dict(os.environ) | {"HOME": sandy.env["HOME"]}, timeout=120)
    assert got.lines == ["125", "has it", "0"] and "PID namespace" in got.error and "hint:" in got.error, got


def test_as_root_of_it(sandy: Cli) -> None:
    # With one id alone there is nobody to become.
    got = contained(sandy, runs(sandy, "--memory 64M", 200), delegated="watched from outside", as_root=True)
    assert got.lines == ["125"] and "hint:" in got.error, got


def test_as_root_of_one_with_a_range_of_ids(sandy: Cli) -> None:
    # As podman and rootless docker have it, by newuidmap(1) and /etc/subuid.
    need(shutil.which("newuidmap") and host(f"grep -q ^$(id -un): /etc/subuid").status == 0, "newuidmap, and a range of ids in /etc/subuid")
    sandy.workspace.chmod(0o777)
    # An image's bubblewrap is the container's root's; the host's is nobody's in here, and has to be named.
    script = "export SANDY_BWRAP=$(command -v bwrap); id -u; wc -l </proc/self/uid_map; " + runs(sandy, "--private-workspace --memory 64M", 200) + "; " + runs(sandy, "--private-workspace --memory 256M", 100)
    got = contained(sandy, script, delegated="watched from outside", as_root=True, ids="-r --map-auto")
    assert got.lines == ["0", "2", "137", "has it", "0"] and "memory limit 64 MiB" in got.error, got


def test_the_control(sandy: Cli) -> None:
    got = contained(sandy, "id -u; cat /proc/self/cgroup; cat /proc/1/comm; test -w /sys/fs/cgroup/cgroup.procs; echo $?", delegated="shared")
    assert got.lines == [str(os.geteuid()), "0::/", "sh", "0"] or got.lines == [str(os.geteuid()), "0::/", "unshare", "0"], got
    assert pathlib.Path("/proc/1/comm").read_text() != "sh\n"
