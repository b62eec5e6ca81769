"""Rows 22 to 26 and 32: system calls that lead past the sandbox. The same probe is run outside, where nothing forbids it."""

from __future__ import annotations

import fcntl
import os
import pathlib
import platform
import pty
import shutil
import subprocess
import termios
from collections.abc import Callable

import pytest
from support import Cli, host, need, wait_until

Probe = Callable[..., pathlib.Path]


@pytest.fixture
def attempt(sandy: Cli, probe: Probe) -> Callable[..., tuple[dict[str, str], dict[str, str]]]:
    """What the named attempts gave outside, and in a sandbox."""

    def run(*names: str, options: tuple[str, ...] = ()) -> tuple[dict[str, str], dict[str, str]]:
        program = probe("attempt")

        def read(text: str) -> dict[str, str]:
            return dict(line.split(": ") for line in text.splitlines())

        outside = host(f"{program} {' '.join(names)}", cwd=sandy.workspace).ok()
        inside = sandy.run(program, *names, options=options).ok()
        first, second = read(outside.text), read(inside.text)
        assert set(first) == set(second) == set(names)
        return first, second

    return run


@pytest.mark.parametrize("policy", ["default", "strict"])
def test_t22_vsock(attempt: Callable[..., tuple[dict[str, str], dict[str, str]]], policy: str) -> None:
    names = ("vsock", "vsock_high_bits", "vsock_pair", "packet", "packet_old", "alg", "netlink_audit", "netlink_netfilter")
    outside, inside = attempt(*names, "netlink_route", "unix_pair", options=("--seccomp", policy))
    assert all(inside[name] in ("EAFNOSUPPORT", "EPROTONOSUPPORT", "EPERM") for name in names), inside
    assert inside["unix_pair"] == outside["unix_pair"] == outside["netlink_route"] == "OK"  # the probe can tell
    assert inside["netlink_route"] == ("OK" if policy == "default" else inside["netlink_audit"])
    need(outside["vsock"] == "OK" or outside["alg"] == "OK" or outside["netlink_netfilter"] == "OK", "a kernel with AF_VSOCK, AF_ALG or netfilter, for the control")


def test_t22_wsl_interop(sandy: Cli) -> None:
    got = sandy.sh("ls /run/WSL /mnt/c; echo $WSL_INTEROP; /mnt/c/Windows/System32/cmd.exe /c whoami", env={"WSL_INTEROP": "/run/WSL/1_interop"})
    assert got.out == b"\n" and got.status == 127


def test_t23_io_uring(attempt: Callable[..., tuple[dict[str, str], dict[str, str]]]) -> None:
    outside, inside = attempt("io_uring_setup", "io_uring_enter", "io_uring_register")
    assert set(inside.values()) == {"ENOSYS"}  # so that libuv and others fall back
    need(outside["io_uring_setup"] != "ENOSYS", "a kernel with io_uring, for the control")
    assert outside["io_uring_enter"] == "EBADF"


@pytest.mark.parametrize("policy", ["default", "strict"])
def test_t24_x32_and_i386(attempt: Callable[..., tuple[dict[str, str], dict[str, str]]], policy: str) -> None:
    need(platform.machine() == "x86_64", "x86-64")
    outside, inside = attempt("x32", "i386", "i386_socketcall", options=("--seccomp", policy))
    assert set(inside.values()) == {"KILLED"}
    assert outside["x32"] in ("OK", "ENOSYS")  # the kernel was reached
    assert "KILLED" not in outside.values()


def test_t24_a_32_bit_program(sandy: Cli, probe: Probe) -> None:
    need(platform.machine() == "x86_64", "x86-64")
    program = probe("hello32", "-m32", "-nostdlib", "-fno-stack-protector")
    if (control := host(str(program))).out != b"hello\n":
        need(False, f"a kernel that runs 32-bit programs: {control.error}")
    got = sandy.run(program)
    assert got.status == 128 + 31 and got.out == b""
    assert "32-bit" in got.error


def test_t24_new_calls(attempt: Callable[..., tuple[dict[str, str], dict[str, str]]]) -> None:
    outside, inside = attempt("clone3", "clone3_user", "openat2", "open_by_handle_at", options=())
    assert inside["clone3"] == inside["clone3_user"] == "ENOSYS"
    assert outside["clone3"] == outside["openat2"] == "OK"
    assert inside["openat2"] == "ENOSYS" and inside["open_by_handle_at"] == "EPERM"


def test_t25_no_descriptor_of_others_can_be_taken(
    sandy: Cli, attempt: Callable[..., tuple[dict[str, str], dict[str, str]]]
) -> None:
    outside, inside = attempt("take_descriptor", "read_parent", "trace_child", "trace_parent")
    assert set(inside.values()) == {"EPERM"}
    assert "OK" in outside.values() or outside["take_descriptor"] == "EPERM"  # yama may restrict others' too
    got = sandy.sh("ls /proc/1/fd; cat /proc/1/environ; readlink /proc/1/exe; cat /proc/1/maps; head -c1 /proc/1/mem; ls /proc/1/task/1/fd; ls /proc/1/map_files")
    assert got.out == b"" and got.error.count("ermission denied") >= 5, got.error
    own = sandy.sh("ls /proc/$$/fd; readlink /proc/$$/exe").ok()
    assert own.lines[:3] == ["0", "1", "2"] and own.lines[-1].startswith("/usr/bin/")


def test_t26_tiocsti(sandy: Cli, probe: Probe) -> None:
    program = probe("attempt")
    names = ("tiocsti", "tiocsti_high_bits", "tioclinux", "window_size")

    def in_terminal(argv: list[str]) -> tuple[str, int]:
        """What the program says about its terminal, and how many bytes somebody typed into ours."""
        master, slave = pty.openpty()
        try:
            process = subprocess.Popen(
                argv, stdin=slave, stdout=subprocess.PIPE, cwd=sandy.workspace, env=sandy.env, start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            )
            out, _ = process.communicate(timeout=30)
            attributes = termios.tcgetattr(slave)
            attributes[3] &= ~termios.ICANON
            termios.tcsetattr(slave, termios.TCSANOW, attributes)
            waiting = int.from_bytes(fcntl.ioctl(slave, termios.FIONREAD, b"\0" * 4), "little")
            return out.decode(), waiting
        finally:
            os.close(master)
            os.close(slave)

    for tty in ("never", "always"):
        out, typed = in_terminal([sandy.program, "run", "--tty", tty, "--", str(program), *names])
        got = dict(line.strip().split(": ") for line in out.splitlines())
        assert typed == 0
        assert got["tiocsti"] == got["tiocsti_high_bits"] == got["tioclinux"] == "EPERM"
        assert got["window_size"] == ("OK" if tty == "always" else "ENOTTY")
    out, typed = in_terminal([str(program), *names])
    got = dict(line.split(": ") for line in out.splitlines())
    assert got["window_size"] == "OK"
    assert (got["tiocsti"], typed) in (("OK", 2), ("EIO", 0))  # EIO: dev.tty.legacy_tiocsti=0 forbids it to all


@pytest.mark.parametrize("policy", ["default", "strict"])
def test_t32_no_new_namespace(attempt: Callable[..., tuple[dict[str, str], dict[str, str]]], policy: str) -> None:
    names = ("unshare_user", "unshare_user_and_mounts", "clone_user", "clone3_user", "setns")
    outside, inside = attempt(*names, options=("--seccomp", policy))
    assert {name: value for name, value in inside.items() if value not in ("EPERM", "ENOSYS")} == {}
    assert outside["unshare_user"] == outside["clone_user"] == "OK"


def in_namespaces(program: pathlib.Path, names: tuple[str, ...], cwd: pathlib.Path) -> dict[str, str]:
    """What the attempts give with all capabilities in namespaces of their own: the control of what no plain user may do."""
    got = host(f"unshare --user --map-root-user --mount {program} {' '.join(names)}", cwd=cwd)
    need(got.status == 0, f"unshare, and user namespaces for it: {got.error}")
    return dict(line.split(": ") for line in got.lines)


def test_t32_no_mount_call(sandy: Cli, probe: Probe) -> None:
    program = probe("attempt")
    mounts = ("mount_tmpfs", "mount_proc", "bind_root", "umount", "chroot", "open_tree", "fsopen")
    others = (
        "remount_writable", "pivot_root", "move_mount", "fsmount", "fspick", "mount_setattr", "device", "whiteout", "bpf", "perf",
        "finit_module", "kexec", "userfaultfd",
    )
    inside = dict(line.split(": ") for line in sandy.run(program, *mounts, *others, "become_root", "fifo").ok().lines)
    assert inside.pop("fifo") == "OK"
    assert inside.pop("become_root") in ("EPERM", "EINVAL")
    assert {name: value for name, value in inside.items() if value != "EPERM"} == {}
    outside = in_namespaces(program, mounts, sandy.workspace)
    # Procfs may be masked where the tests run in a container.
    assert {name for name in mounts if outside[name] == "EPERM"} <= {"mount_proc"}, outside


def test_t32_the_mounts_hold_without_the_filter(sandy: Cli, probe: Probe, tmp_path: pathlib.Path) -> None:
    # Layers: with a seccomp policy that permits it all, there is still no capability and no user namespace to be had.
    policy = tmp_path / "all.json"
    policy.write_text(
        '{"version": 1, "description": "for a test", "default": {"action": "allow", "reason": "to see what the other layers do"}, "rows": []}'
    )
    program = probe("attempt")
    names = (
        "unshare_user", "clone_user", "clone3_user", "mount_tmpfs", "remount_writable", "bind_root", "pivot_root", "chroot", "open_tree",
        "fsopen", "mount_setattr", "become_root", "device",
    )
    got = sandy.run(program, *names, "clone3", options=["--seccomp", policy]).ok()
    inside = dict(line.split(": ") for line in got.lines)
    assert inside.pop("clone3") == "OK"
    # ENOSPC: user.max_user_namespaces, which --disable-userns has set to none.
    assert {name: value for name, value in inside.items() if value not in ("EPERM", "ENOSPC", "EINVAL")} == {}
    outside = dict(line.split(": ") for line in host(f"{program} unshare_user clone_user", cwd=sandy.workspace).ok().lines)
    assert set(outside.values()) == {"OK"}


def test_t32_nested_bubblewrap(sandy: Cli) -> None:
    bwrap = shutil.which("bwrap", path=sandy.env["PATH"])
    need(bwrap and host("bwrap --ro-bind / / true").status == 0, "bubblewrap in PATH, working for this user")
    got = sandy.run("bwrap", "--bind", "/", "/", "sh", "-c", "echo inside")
    assert got.status != 0 and got.out == b""


def test_t32_no_capability(sandy: Cli) -> None:
    got = sandy.sh("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/1/status").ok()
    values = [line.split(":\t") for line in got.lines]
    assert len(values) == 14
    for name, value in values:
        assert value == {"NoNewPrivs": "1", "Seccomp": "2"}.get(name, "0" * 16), f"{name} is {value}"


def test_t32_set_user_id_programs_give_nothing(sandy: Cli) -> None:
    su = next((path for path in ("/usr/bin/su", "/usr/bin/passwd") if os.path.exists(path) and os.stat(path).st_mode & 0o4000), None)
    need(su, "a set-user-id program")
    got = sandy.sh(f"cp {su} copy; {su} --version >/dev/null 2>&1; grep Uid /proc/self/status; findmnt -no OPTIONS -T /usr 2>/dev/null || grep ' /usr ' /proc/self/mounts").ok()
    assert "nosuid" in got.lines[-1]


@pytest.mark.root
def test_t32_root_is_an_unprivileged_user_outside(sandy: Cli, marker: str, processes: Callable[[], list[int]]) -> None:
    process = sandy.start("run", "--", "sleep", marker)
    wait_until(lambda: processes())
    wait_until(lambda: any("sleep" in pathlib.Path(f"/proc/{pid}/comm").read_text() for pid in processes()))
    try:
        for pid in processes():
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            uids = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
            if "sandy\n" in pathlib.Path(f"/proc/{pid}/comm").read_text():
                continue
            assert uids == ["65534"] * 4, status
    finally:
        process.kill()
        process.communicate()


@pytest.mark.root
def test_t32_root_reads_no_file_of_roots(sandy: Cli, ws: pathlib.Path, tmp_path: pathlib.Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir(mode=0o755)
    (secrets / "private").write_text("s3cr3t")
    (secrets / "private").chmod(0o600)
    (secrets / "public").write_text("public")
    for path in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        path.chmod(0o755)
    assert (secrets / "private").read_text() == "s3cr3t"
    got = sandy.sh(f"id -u; cat {secrets}/public; cat {secrets}/private; cat /etc/shadow; echo x > new; stat -c %u new", "--read", secrets)
    assert "s3cr3t" not in got.text and got.text.split() == ["1000", "public1000"]
    assert "denied" in got.error
    assert (ws / "new").stat().st_uid == 0  # in the workspace it is the caller's own


@pytest.mark.root
def test_t32_root_with_a_narrow_umask(sandy: Cli, home: pathlib.Path) -> None:
    # The view of /etc is made by root, and read by the sandbox's user.
    shutil.rmtree(home / ".local", ignore_errors=True)
    process = sandy.start("run", "--", "sh", "-c", "cat /etc/passwd >/dev/null && ls /etc/ssl/certs >/dev/null && echo x > f && id -un", preexec_fn=lambda: os.umask(0o077))
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, b"sandbox\n"), err


# What reaches past a sandbox through files that it may use. Each is done outside too, as the control.
PAST_FILES = """
import ctypes, errno, fcntl, os, resource
def attempt(name, call):
    try:
        call()
        print(name, "OK")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
open("f", "a").close()
attempt("lease", lambda: fcntl.fcntl(os.open("f", os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK))
attempt("own limit", lambda: resource.prlimit(0, resource.RLIMIT_CORE, (0, 0)))
attempt("another's limit", lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE))
child = os.fork()
if child == 0:
    import time
    time.sleep(60)
attempt("to set another's", lambda: resource.prlimit(child, resource.RLIMIT_CORE, (0, 0)))
os.kill(child, 9)
attempt("snapshot", lambda: fcntl.ioctl(os.open(".", os.O_RDONLY), 0x50009401, bytearray(4096)))
"""


@pytest.mark.parametrize("policy", ["default", "strict"])
def test_what_reaches_past_the_sandbox_through_files(sandy: Cli, ws: pathlib.Path, policy: str) -> None:
    inside = sandy.run("python3", "-c", PAST_FILES, options=["--seccomp", policy]).ok().lines
    assert inside == ["lease EINVAL", "own limit OK", "another's limit OK", "to set another's EPERM", "snapshot ENOTTY"]
    outside = subprocess.run(["python3", "-c", PAST_FILES], cwd=ws, capture_output=True, text=True, check=True).stdout.splitlines()
    assert outside[0] == "lease OK" and outside[3] == "to set another's OK"
