"""Group "Install, doctor, environment": `sandy doctor`, and what `sandy run` says, on machines that lack something.

Each machine is made here: stub programs, namespaces of our own, a chroot. The findings must name the cause and the fix, and where the fix can be
applied here, it must work. Run as an unprivileged user and as root.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import platform
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import pytest
from support import REPOSITORY, USUAL_PATH, need

ROOT = os.geteuid() == 0
BWRAP = shutil.which("bwrap", path=USUAL_PATH) or ""
NAMES = [
    "sandbox start", "bubblewrap", "bubblewrap privileges", "bubblewrap options", "bubblewrap version", "user namespaces", "fresh /proc",
    "seccomp filters", "state directory", "own programs", "user", "kernel", "PATH", "WSL", "Landlock", "cgroup limits", "network allowlist",
]
# What a person must never be told: it takes all protection away.
TOO_MUCH = ["--privileged", "apparmor=unconfined", "seccomp=unconfined", "restrict_unprivileged_userns=0", "unmask=ALL", "setenforce 0"]
# Texts that were meant for a program: a template that nothing filled in, a traceback, an unprintable byte.
RAW = re.compile(r"\{\}|\{[a-z_]+\}|%[sdu]\b|\$\{|Traceback|\bnullptr\b|\(null\)|<[a-z-]+>|[\x00-\x09\x0b-\x1f\x7f]")
# Without this, commands in a namespace of ours would start with rights over it that a user's don't have.
DROP = "setpriv --inh-caps=-all --ambient-caps=-all" if not ROOT else "env"


@pytest.fixture(scope="session")
def works() -> None:
    """In place of the suites' check that a sandbox starts: here machines are examined on which none does."""


@dataclasses.dataclass
class Doctor:
    status: int
    seconds: float
    found: dict[str, dict[str, str]]
    text: str  # of `sandy doctor`, without --json

    def __getitem__(self, name: str) -> dict[str, str]:
        return self.found[name]

    def states(self) -> dict[str, str]:
        return {name: row["state"] for name, row in self.found.items()}


def check_texts(found: list[dict[str, str]]) -> None:
    """What holds on every machine (B115)."""
    assert [row["name"] for row in found] == NAMES
    for row in found:
        assert list(row) == ["name", "state", "detail", "needs", "fix"], row
        assert row["state"] in ("ok", "limited", "missing"), row
        assert row["detail"].strip() and row["needs"].strip(), f"an empty reason: {row}"
        assert bool(row["fix"].strip()) == (row["state"] != "ok"), f"what is not ok has a fix, and nothing else has: {row}"
        for key, value in row.items():
            assert value.isprintable(), (key, value)
            assert not RAW.search(value), (key, value)
            assert not any(word in value for word in TOO_MUCH), (key, value)


class Machine:
    """`sandy` as it would be started on a machine: below a prefix of programs, with an environment."""

    def __init__(self, programs: pathlib.Path, home: pathlib.Path) -> None:
        self.programs = programs
        self.home = home
        self.env = {"HOME": str(home), "PATH": USUAL_PATH}

    def call(self, words: Sequence[str], within: Sequence[str] = (), env: dict[str, str] | None = None, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        env = self.env if env is None else env
        return subprocess.run(
            [*within, str(self.programs / "sandy"), *words], env=env, cwd=self.home, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, check=False
        )

    def doctor(self, within: Sequence[str] = (), env: dict[str, str] | None = None) -> Doctor:
        begin = time.monotonic()
        done = self.call(["doctor", "--json"], within, env)
        seconds = time.monotonic() - begin
        assert done.stderr == "", done.stderr
        found = json.loads(done.stdout)
        check_texts(found)
        text = self.call(["doctor"], within, env)
        assert text.returncode == done.returncode and not RAW.search(text.stdout)
        doctor = Doctor(done.returncode, seconds, {row["name"]: row for row in found}, text.stdout)
        assert (doctor.status == 0) == (doctor["sandbox start"]["state"] == "ok")
        for name, row in doctor.found.items():
            assert f"{row['state']:8} {name} " in text.stdout and row["needs"] in text.stdout
        return doctor

    def run(self, within: Sequence[str] = (), env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return self.call(["run", "--private-workspace", "--", "true"], within, env)

    def refused(self, within: Sequence[str] = (), env: dict[str, str] | None = None) -> tuple[str, str]:
        """The three parts that `sandy run` prints, the last two of them returned, when it can't start."""
        done = self.run(within, env)
        assert done.returncode == 125 and done.stdout == "", (done.returncode, done.stdout, done.stderr)
        first, _, hint = done.stderr.partition("\nhint: ")
        match = re.fullmatch(r"sandy: (.+?): (.+)", first, re.DOTALL)
        assert match and hint.strip(), f"not three parts: {done.stderr!r}"
        assert not RAW.search(done.stderr.replace("\n", " ")) and not any(word in done.stderr for word in TOO_MUCH), done.stderr
        return f"{match[1]}: {match[2]}", hint.strip()


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A directory that user 65534 may enter too: as root, sandboxes are that user's."""
    for directory in [tmp_path, *tmp_path.parents]:
        if directory.stat().st_uid != os.geteuid() or directory == pathlib.Path("/tmp"):
            break
        directory.chmod(directory.stat().st_mode | 0o011)
    yield tmp_path


@pytest.fixture
def machine(programs: pathlib.Path, place: pathlib.Path) -> Machine:
    home = place / "home"
    home.mkdir()
    return Machine(programs, home)


@pytest.fixture
def working(machine: Machine) -> Machine:
    done = machine.run()
    need(done.returncode == 0, f"a machine on which a sandbox starts; here: {done.stderr}")
    return machine


def stub(place: pathlib.Path, body: str, name: str = "bwrap", mode: int = 0o755) -> pathlib.Path:
    directory = place / f"stub-{len(list(place.glob('stub-*')))}"
    directory.mkdir(mode=0o755)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(mode)
    return path


def answers(version: str = "0.8.0", options: str | None = None) -> str:
    """The part of a stub that answers as bubblewrap does."""
    help_text = options or "; ".join(
        f"--{name}" for name in """args as-pid-1 bind-fd chdir dev dir disable-userns gid hostname new-session perms proc remount-ro
        ro-bind-data ro-bind-fd seccomp size symlink tmpfs uid unshare-cgroup-try unshare-ipc unshare-net unshare-pid unshare-user unshare-uts""".split()
    )
    return f'case "$1" in --version) echo "bubblewrap {version}"; exit 0;; --help) echo "{help_text}"; exit 0;; esac'


# A machine that works


def test_finds_what_the_machine_has(working: Machine) -> None:
    doctor = working.doctor()
    assert doctor.status == 0
    for name in NAMES[:4] + ["user namespaces", "fresh /proc", "seccomp filters", "own programs", "user", "network allowlist"]:
        assert doctor[name]["state"] == "ok", doctor[name]
    assert BWRAP.rsplit("/", 1)[1] in doctor["bubblewrap"]["detail"]
    limits = doctor["cgroup limits"]
    assert ("not enforced" in limits["detail"]) == (limits["state"] == "missing") and bool(limits["fix"]) == (limits["state"] != "ok"), limits
    assert str(working.home) in doctor["state directory"]["detail"]
    assert ("65534" if ROOT else str(os.geteuid())) in doctor["user"]["detail"]
    assert "Sandboxes can start here." in doctor.text


def test_b124_the_version_is_the_packages(machine: Machine) -> None:
    version = (REPOSITORY / "VERSION").read_text().strip()
    assert machine.call(["--version"]).stdout == f"sandy {version}\n"
    for name in ("sandy-launch", "sandy-agent", "sandy-proxy"):
        assert subprocess.check_output([machine.programs / name, "--version"], text=True) == f"{name} {version}\n"
    assert f"sandy {version}, sandy-launch {version}, sandy-agent {version}, sandy-proxy {version}" == machine.doctor()["own programs"]["detail"]


def test_old_kernel_is_hinted_at(machine: Machine) -> None:
    """B119: uname(2) tells of a 2.6 here; what works is found by trying all the same."""
    need(shutil.which("setarch", path=USUAL_PATH), "setarch")
    doctor = machine.doctor(["setarch", "--uname-2.6"])
    assert doctor["kernel"]["state"] == "limited" and "5.10" in doctor["kernel"]["fix"]


def test_path_entries_that_are_lost(working: Machine, place: pathlib.Path) -> None:
    lost = place / "my bin"
    lost.mkdir()
    env = working.env | {"PATH": f"{USUAL_PATH}:{lost}:/nonexistent"}
    row = working.doctor(env=env)["PATH"]
    assert row["state"] == "limited" and str(lost) in row["detail"] and "/nonexistent" not in row["detail"]
    assert f"--read '{lost}'" in row["fix"]
    words = row["fix"].partition("sandy run ")[2].replace("'", "")
    done = working.call(["run", "--private-workspace", "--read", words.removeprefix("--read "), "--", "sh", "-c", 'echo "$PATH"'], env=env)
    assert str(lost) in done.stdout.strip().split(":"), done.stderr


# Bubblewrap


def test_b116_a_stub_that_only_answers(machine: Machine, place: pathlib.Path) -> None:
    for body in ("exit 1", "echo 'no such luck' >&2; exit 7", "exit 0", r"printf '\033[31mred\n' >&2; exit 1"):
        env = machine.env | {"SANDY_BWRAP": str(stub(place, f"{answers()}\n{body}"))}
        doctor = machine.doctor(env=env)
        assert doctor.status != 0 and doctor["bubblewrap options"]["state"] == "ok"
        why, hint = machine.refused(env=env)
        assert env["SANDY_BWRAP"] in why + hint and "SANDY_BWRAP" in hint
        if "luck" in body:
            assert "no such luck" in why and "no such luck" in doctor["sandbox start"]["detail"]


def test_b116_a_stub_that_only_knows_its_version(machine: Machine, place: pathlib.Path) -> None:
    env = machine.env | {"SANDY_BWRAP": str(stub(place, 'test "$1" = --version && echo bubblewrap 0.8.0 && exit; exit 3'))}
    doctor = machine.doctor(env=env)
    assert doctor.status != 0 and doctor["bubblewrap"]["state"] == "missing" and "--help" in doctor["bubblewrap"]["detail"]
    assert "SANDY_BWRAP" in machine.refused(env=env)[1]


@pytest.mark.parametrize("body", ["exec sleep 60", f"{answers()}\nexec sleep 60"], ids=["always", "at the start"])
def test_b116_a_stub_that_hangs(machine: Machine, place: pathlib.Path, body: str) -> None:
    doctor = machine.doctor(env=machine.env | {"SANDY_BWRAP": str(stub(place, body))})
    assert doctor.status != 0
    assert "did not answer" in doctor["sandbox start"]["detail"], doctor["sandbox start"]
    assert doctor.seconds < 14, "about 10 s, and some for a busy machine"


def test_b119_mount_propagation_refused(machine: Machine, place: pathlib.Path) -> None:
    env = machine.env | {"SANDY_BWRAP": str(stub(place, f"{answers()}\necho 'bwrap: Failed to make / slave: Permission denied' >&2; exit 1"))}
    row = machine.doctor(env=env)["sandbox start"]
    why, hint = machine.refused(env=env)
    for detail, fix in ((row["detail"], row["fix"]), (why, hint)):
        # The probe by trying knows more about the cause where it fails too.
        assert "Failed to make / slave" in detail
        assert "mount propagation" in detail or "failed (" in detail
        assert "apparmor" in fix.lower() or "seccomp" in fix.lower() or "sysctl" in fix.lower()


@pytest.mark.parametrize(
    ("version", "lacking"),
    [("0.3.1", ["--args", "--disable-userns", "--bind-fd", "--size"]), ("0.6.1", ["--disable-userns", "--size", "--bind-fd"]), ("0.8.0", ["--bind-fd", "--ro-bind-fd"])],
)
def test_b121_too_old(machine: Machine, place: pathlib.Path, version: str, lacking: list[str]) -> None:
    full = answers().split('echo "--')[1].split('"')[0].split("; --")
    options = "; ".join(f"--{name}" for name in full if f"--{name}" not in lacking)
    env = machine.env | {"SANDY_BWRAP": str(stub(place, f"{answers(version, options)}\necho 'bwrap: Unknown option' >&2; exit 1"))}
    doctor = machine.doctor(env=env)
    assert doctor.status != 0
    row = doctor["bubblewrap options"]
    assert row["state"] == "missing" and all(option in row["detail"] for option in lacking) and "0.8.0" in row["detail"]
    assert ("0.10.0" if version == "0.8.0" else "0.8.0") in row["fix"]
    assert doctor["bubblewrap version"]["state"] == "limited" and version in doctor["bubblewrap version"]["detail"]
    why, hint = machine.refused(env=env)
    assert lacking[0] in why and "0.8.0" in hint


@pytest.mark.parametrize(("version", "state"), [("0.8.0", "limited"), ("0.11.2", "limited"), ("0.12.0", "ok")])
def test_version_with_known_faults(machine: Machine, place: pathlib.Path, version: str, state: str) -> None:
    row = machine.doctor(env=machine.env | {"SANDY_BWRAP": str(stub(place, f"{answers(version)}\nexit 1"))})["bubblewrap version"]
    assert row["state"] == state
    if state == "limited":
        assert "symbolic links" in row["detail"] and "Sandy resolves" in row["detail"] and "0.12" in row["fix"]


@pytest.mark.parametrize("version", ["0.11.1", "0.11.2", "0.8.0"])
def test_b135_setuid(working: Machine, place: pathlib.Path, version: str) -> None:
    path = stub(place, f'{answers(version)}\nexec {BWRAP} "$@"', mode=0o4755)
    need(path.stat().st_mode & stat.S_ISUID, "a file system that keeps the setuid bit")
    env = working.env | {"SANDY_BWRAP": str(path)}
    doctor = working.doctor(env=env)
    assert doctor.status != 0
    row = doctor["bubblewrap privileges"]
    assert row["state"] == "missing" and "0.11.0 and 0.11.1" in row["detail"] and row["fix"] == f"sudo chmod u-s {path}"
    assert version in doctor["bubblewrap version"]["detail"]
    why, hint = working.refused(env=env)
    assert "setuid" in why and hint == row["fix"]
    subprocess.run(hint.removeprefix("sudo ").split(), check=True)
    assert working.doctor(env=env).status == 0
    assert working.run(env=env).returncode == 0


@pytest.mark.parametrize("mode", [0o777, 0o755])
def test_fake_bubblewrap_in_path(working: Machine, place: pathlib.Path, mode: int) -> None:
    """B135: what others, or commands in a sandbox, could have put there is not run, whatever PATH says."""
    ran = place / "ran"
    fake = stub(place, f"touch {ran}; {answers()}")
    fake.parent.chmod(mode)
    env = working.env | {"PATH": f"{fake.parent}:{USUAL_PATH}"}
    doctor = working.doctor(env=env)
    assert doctor.status == 0 and not ran.exists()
    assert doctor["bubblewrap"]["detail"].startswith(BWRAP)
    assert working.run(env=env).returncode == 0 and not ran.exists()


def test_no_bubblewrap(machine: Machine, place: pathlib.Path) -> None:
    env = machine.env | {"SANDY_BWRAP": str(place / "not-there")}
    doctor = machine.doctor(env=env)
    assert doctor.status != 0 and doctor["bubblewrap"]["state"] == "missing"
    why, hint = machine.refused(env=env)
    assert "not-there" in why and "SANDY_BWRAP" in hint


# Our own programs, and directories


def test_own_programs_missing_or_of_another_version(machine: Machine, place: pathlib.Path) -> None:
    directory = place / "programs"
    directory.mkdir()
    shutil.copy2(machine.programs / "sandy", directory)
    for name in ("sandy-launch", "sandy-proxy"):
        shutil.copy2(machine.programs / name, directory)
    broken = Machine(directory, machine.home)
    row = broken.doctor()["own programs"]
    assert row["state"] == "missing" and "sandy-agent" in row["detail"] and "install Sandy again" in row["fix"]
    why, hint = broken.refused()
    assert "sandy-agent" in why and "install Sandy again" in hint
    (directory / "sandy-agent").write_text("#!/bin/sh\necho sandy-agent 0.0.1\n")
    (directory / "sandy-agent").chmod(0o755)
    row = broken.doctor()["own programs"]
    assert row["state"] == "limited" and "sandy-agent 0.0.1" in row["detail"]


def test_without_home(working: Machine) -> None:
    env = {"PATH": USUAL_PATH}
    doctor = working.doctor(env=env)
    row = doctor["state directory"]
    assert doctor.status == 0 and row["state"] == "limited" and "HOME" in row["detail"] and "HOME=" in row["fix"]
    assert working.run(env=env).returncode == 0
    assert working.doctor(env={"PATH": USUAL_PATH, "HOME": str(working.home)})["state directory"]["state"] == "ok"


def test_home_that_can_not_be_written_to(working: Machine) -> None:
    env = {"PATH": USUAL_PATH, "HOME": "/proc"}  # nobody can make a directory there, root neither
    row = working.doctor(env=env)["state directory"]
    assert row["state"] == "limited" and "/proc/" in row["detail"] and "XDG_STATE_HOME" in row["fix"]


# Machines made of namespaces. As root: of full user namespaces, so that root can still become user 65534.

MAP_ALL = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
(made, tell), (mapped, go) = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    if libc.unshare(0x10000000) != 0: os._exit(99)
    os.write(tell, b"x"); os.read(mapped, 1)
    os.execvp(sys.argv[1], sys.argv[1:])
os.read(made, 1)
for name in ("uid_map", "gid_map"):
    with open(f"/proc/{pid}/{name}", "w") as file: file.write("0 0 4294967295")
os.write(go, b"x")
status = os.waitpid(pid, 0)[1]
sys.exit(os.waitstatus_to_exitcode(status))
"""


def namespaces(setup: str, *more: str) -> list[str]:
    """A prefix: what follows it runs after `setup`, in a user namespace over which `setup` has all rights, and further namespaces ("-m")."""
    script = f'set -e; {setup}; exec {DROP} "$@"'
    if ROOT:
        words = [sys.executable, "-c", MAP_ALL]
        return words + (["unshare", *more] if more else []) + ["sh", "-c", script, "sh"]
    return ["unshare", "-U", "--map-current-user", "--keep-caps", *more, "sh", "-c", script, "sh"]


@pytest.fixture
def namespaced(working: Machine) -> Machine:
    done = working.run(namespaces("true", "-m"))
    need(done.returncode == 0, f"sandboxes in a user namespace of our own; here: {done.stderr}")
    return working


@pytest.mark.parametrize("kind", ["user", "net", "pid"])
def test_namespaces_switched_off_by_sysctl(namespaced: Machine, kind: str) -> None:
    name = f"user.max_{kind}_namespaces"
    off = f"echo 0 > /proc/sys/user/max_{kind}_namespaces"
    doctor = namespaced.doctor(namespaces(off, "-m"))
    assert doctor.status != 0
    row = doctor["user namespaces"]
    assert row["state"] == "missing" and f"{name} is 0" in row["detail"] and f"sudo sysctl -w {name}=" in row["fix"]
    why, hint = namespaced.refused(namespaces(off, "-m"))
    assert f"{name} is 0" in why and hint == row["fix"]
    setting = re.match(rf"sudo sysctl -w {re.escape(name)}=(\d+)", hint)
    assert setting
    fixed = namespaces(f"{off}; echo {setting[1]} > /proc/sys/user/max_{kind}_namespaces", "-m")
    assert namespaced.doctor(fixed).status == 0
    assert namespaced.run(fixed).returncode == 0


def test_covered_proc(namespaced: Machine) -> None:
    cover = "mount -t tmpfs cover /proc/sys"
    doctor = namespaced.doctor(namespaces(cover, "-m"))
    assert doctor.status != 0
    row = doctor["fresh /proc"]
    assert row["state"] == "missing" and "covers /proc/sys" in row["detail"] and "systempaths=unconfined" in row["fix"] and "umount /proc/sys" in row["fix"]
    assert doctor["user namespaces"]["state"] == "ok"
    why, hint = namespaced.refused(namespaces(cover, "-m"))
    assert "covers /proc/sys" in why and hint == row["fix"]
    fixed = namespaces(f"{cover}; umount /proc/sys", "-m")
    assert namespaced.doctor(fixed).status == 0


def test_chroot(namespaced: Machine, place: pathlib.Path) -> None:
    """In a chroot(2) the kernel makes no user namespace. As in a real one: the directory is no mount point, what is in it may be."""
    root = place / "root"
    binds = []
    for name in ["usr", "bin", "sbin", "lib", "lib64", "lib32", "libx32", "etc", "dev", "tmp"]:
        source = pathlib.Path("/", name)
        if source.is_symlink():
            root.mkdir(exist_ok=True)
            (root / name).symlink_to(os.readlink(source))
        elif source.is_dir():
            (root / name).mkdir(parents=True)
            binds.append(f"mount --rbind /{name} {root}/{name}")
    for directory in (root / "proc", root / "programs"):
        directory.mkdir()
    binds += [f"mount --rbind /proc {root}/proc", f"mount --bind {namespaced.programs} {root}/programs"]
    inside = Machine(pathlib.Path("/programs"), namespaced.home)
    prefix = namespaces("; ".join(binds) + f"; set -- chroot {root} env -C / {DROP} \"$@\"; DROP=", "-m")
    # chroot(2) needs the rights that are dropped after it.
    prefix = [word.replace(f'exec {DROP} "$@"', 'exec "$@"') for word in prefix]
    doctor = inside.doctor(prefix)
    assert doctor.status != 0
    row = doctor["user namespaces"]
    assert row["state"] == "missing" and "chroot" in row["detail"] and "systemd-nspawn" in row["fix"]
    why, hint = inside.refused(prefix)
    assert "chroot" in why and hint == row["fix"]


def test_b118_root_of_a_namespace_without_other_users(working: Machine) -> None:
    """`unshare -r`: root, and nobody else. A sandbox works there with the right user, or the reason and the fix are named."""
    prefix = ["unshare", "-Ur"]
    done = working.call(["run", "--private-workspace", "--", "id", "-u"], prefix)
    doctor = working.doctor(prefix)
    if done.returncode == 0:
        assert done.stdout == "1000\n" and doctor.status == 0
        return
    assert done.returncode == 125
    assert doctor.status != 0 and doctor["user"]["state"] == "missing" and "65534" in doctor["user"]["detail"]
    assert "--map-auto" in doctor["user"]["fix"]
    why, hint = working.refused(prefix)
    assert "65534" in why and hint == doctor["user"]["fix"]


@pytest.mark.root
def test_b118_root_of_a_container(working: Machine) -> None:
    """Root without CAP_SYS_ADMIN, where user namespaces are allowed; and the fix: another user."""
    prefix = ["setpriv", "--bounding-set=-sys_admin"]
    doctor = working.doctor(prefix)
    row = doctor["user"]
    assert doctor.status != 0 and row["state"] == "missing" and "CAP_SYS_ADMIN" in row["detail"]
    why, hint = working.refused(prefix)
    assert "CAP_SYS_ADMIN" in why and hint == row["fix"]
    fix = re.search(r"setpriv --reuid=1000 --regid=1000 --clear-groups", hint)
    assert fix
    os.chown(working.home, 1000, 1000)
    done = working.call(["run", "--private-workspace", "--", "id", "-u"], [*prefix, *fix[0].split()], working.env | {"XDG_STATE_HOME": str(working.home / "state")})
    assert done.stdout == "1000\n", done.stderr


@pytest.mark.root
def test_root_of_a_namespace_without_mounts_of_its_own(working: Machine) -> None:
    prefix = [sys.executable, "-c", MAP_ALL]
    why, hint = working.refused(prefix)
    assert "mount namespace" in why and "unshare --mount" in hint
    assert working.run([*prefix, "unshare", "--mount"]).returncode == 0


@pytest.mark.root
def test_b118_root_is_nobody_inside_and_outside(working: Machine) -> None:
    done = working.call(["run", "--private-workspace", "--", "sh", "-c", "id -u; cat /etc/shadow"])
    assert done.stdout == "1000\n" and done.returncode != 0


# A filter of an outer container, as docker's: unshare(2) and clone(2) of namespaces refused.

OUTER_FILTER = """
import ctypes, os, struct, sys
numbers = {"x86_64": (272, 56, 435), "aarch64": (97, 220, 435)}[os.uname().machine]
errno_, allow = 0x00050000, 0x7fff0000
code = [(0x20, 0, 0, 0), (0x15, 0, 1, numbers[0]), (0x06, 0, 0, errno_ | 1), (0x15, 0, 1, numbers[2]), (0x06, 0, 0, errno_ | 38),
        (0x15, 0, 3, numbers[1]), (0x20, 0, 0, 16), (0x45, 0, 1, 0x10000000), (0x06, 0, 0, errno_ | 1), (0x06, 0, 0, allow)]
text = b"".join(struct.pack("HBBI", *row) for row in code)
buffer = ctypes.create_string_buffer(text)
program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0: sys.exit(99)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_filter_of_an_outer_container(machine: Machine) -> None:
    need(platform.machine() in ("x86_64", "aarch64"), "a processor whose system call numbers are known here")
    prefix = [sys.executable, "-c", OUTER_FILTER]
    doctor = machine.doctor(prefix)
    assert doctor.status != 0
    row = doctor["user namespaces"]
    assert row["state"] == "missing" and "seccomp filter" in row["detail"] and "--security-opt seccomp=FILE" in row["fix"]
    why, hint = machine.refused(prefix)
    assert "seccomp filter" in why and hint == row["fix"]


def test_b120_no_usual_tool(working: Machine, place: pathlib.Path) -> None:
    """A root file system with neither /bin nor /usr/bin: what is there is named, as it isn't root's, and nothing else is needed."""
    need(BWRAP, "bubblewrap")
    store = place / "store"
    (store / "bin").mkdir(parents=True)
    shutil.copy2(BWRAP, store / "bin/bwrap")
    words = [BWRAP, "--unshare-user", "--unshare-pid", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/home", "--ro-bind", str(store), "/nix/store/tools"]
    if ROOT:
        # As another user: the namespace that root's bubblewrap makes has no user 65534.
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *words]
    libraries = [line for line in pathlib.Path("/proc/self/maps").read_text().split() if re.search(r"/ld-linux[^/]*\.so", line)]
    need(libraries, "a dynamic linker of the usual name")
    for directory in ("/lib", "/lib64", "/usr/lib", "/usr/lib64"):
        if os.path.islink(directory):
            words += ["--symlink", os.readlink(directory), directory]
        elif os.path.isdir(directory):
            words += ["--ro-bind", directory, directory]
    words += ["--ro-bind", str(working.programs), "/nix/store/sandy", "--setenv", "HOME", "/home", "--setenv", "PATH", "/nix/store/tools/bin", "--"]
    inside = Machine(pathlib.Path("/nix/store/sandy"), pathlib.Path("/tmp"))
    assert subprocess.run([*words, "/bin/true"], capture_output=True, check=False).returncode != 0
    doctor = inside.doctor(words)
    assert doctor.status != 0 and "/nix/store/tools/bin/bwrap (passed over: the file belongs to user" in json.dumps(doctor["bubblewrap"])
    words[-1:] = ["--setenv", "SANDY_BWRAP", "/nix/store/tools/bin/bwrap", "--"]
    doctor = inside.doctor(words)
    assert doctor.status == 0, doctor["sandbox start"]
    assert doctor["bubblewrap"]["detail"].startswith("/nix/store/tools/bin/bwrap")
    assert "/run/sandy-agent" in doctor["sandbox start"]["detail"], "there is no `true`"
