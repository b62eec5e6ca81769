"""The group "Filesystem" of the cases: what a sandbox sees of the host's files."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from support import Cli, host, need, processes_with, program_of, wait_until

PYTHON = "/usr/bin/python3"


def policy_file(directory: pathlib.Path, **filesystem: object) -> pathlib.Path:
    path = directory / "policy.json"
    path.write_text(json.dumps({"version": 1, "filesystem": filesystem}))
    return path


def git(directory: pathlib.Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words],
        cwd=directory, env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}, check=True, capture_output=True,
    )


@pytest.fixture
def repository(ws: pathlib.Path) -> pathlib.Path:
    need(shutil.which("git"), "git")
    git(ws, "init", "-q", ".")
    (ws / "file").write_text("a\n")
    git(ws, "add", "file")
    git(ws, "commit", "-q", "-m", "first")
    return ws


@pytest.mark.parametrize("options", [(), ("--read", "/usr")])
def test_b001_usr_merge(sandy: Cli, options: tuple[str, ...]) -> None:
    loader = next((p for p in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(p)), None)
    need(loader, "a glibc loader at its usual place")
    got = sandy.sh(f"readlink -f /bin/sh {loader}; /bin/sh -c 'echo a'; /usr/bin/env python3 -c 'print(1)'", *options).ok()
    expected = host(f"readlink -f /bin/sh {loader}").lines
    assert got.lines == [*expected, "a", "1"]


def test_b001_the_default_view_is_the_system_alone(sandy: Cli) -> None:
    names = set(sandy.sh("ls -A /").ok().lines)
    assert names <= {"bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "nix", "gnu", "proc", "root", "run", "sbin", "tmp", "usr", "var"}
    assert sandy.sh("ls -A / | grep -e sys -e boot -e mnt -e srv").out == b""
    assert set(sandy.sh("ls -A /run").ok().lines) <= {"bin", "sandy-agent"}  # ours; nothing of the host's


def test_b003_a_missing_protected_file_is_no_device(sandy: Cli, repository: pathlib.Path) -> None:
    git(repository, "config", "extensions.worktreeConfig", "true")
    got = sandy.sh("git status --short && ls -lA .git").ok()
    assert "config.worktree" not in got.text
    assert all(line[0] in "-dt" for line in got.lines), got.text  # files, directories and "total": no device node
    # Denying what is not there would leave a placeholder on the host, so it is refused, with the way out.
    refused = sandy.run("true", options=["--deny", ".git/config.worktree"])
    assert refused.status == 125
    assert "does not exist" in refused.error and "config.worktree" in refused.error
    assert not (repository / ".git/config.worktree").exists()
    # The way that the message names: the directory read-only. Then only writes fail.
    got = sandy.sh("git status --short; cat .git/config.worktree; echo x > .git/config.worktree", "--read", ".git")
    assert "No such file" in got.error and "Read-only" in got.error
    assert got.status != 0


@pytest.mark.parametrize("rules", [(), ("shared-hooks",), (".git", ".git/hooks")])
def test_b005_hooks_directory_is_a_symlink(sandy: Cli, repository: pathlib.Path, rules: tuple[str, ...]) -> None:
    shutil.rmtree(repository / ".git/hooks", ignore_errors=True)
    (repository / "shared-hooks").mkdir()
    (repository / ".git/hooks").symlink_to("../shared-hooks")
    options = [word for rule in rules for word in ("--read", rule)]
    got = sandy.sh("true; echo x > .git/hooks/pre-commit; echo y > shared-hooks/other; ls shared-hooks", *options)
    assert got.status == 0
    names = sorted(os.listdir(repository / "shared-hooks"))
    assert names == ([] if rules else ["other", "pre-commit"]), got.error


def test_b005_a_link_that_commands_can_replace_protects_nothing(sandy: Cli, repository: pathlib.Path) -> None:
    shutil.rmtree(repository / ".git/hooks", ignore_errors=True)
    (repository / "shared-hooks").mkdir()
    (repository / ".git/hooks").symlink_to("../shared-hooks")
    got = sandy.run("true", options=["--read", ".git/hooks"])
    assert got.status == 125 and f'hint: name "{repository}/shared-hooks"' in got.error


def test_b006_dotfiles_that_are_links(sandy: Cli, home: pathlib.Path, tmp_path: pathlib.Path) -> None:
    dots = tmp_path / "dots"
    dots.mkdir()
    (dots / "gitconfig").write_text("[user]\n\tname = From Dots\n")
    (dots / "secret").write_text("s3cr3t")
    (home / ".gitconfig").symlink_to(dots / "gitconfig")
    need(shutil.which("git"), "git")
    got = sandy.sh(f"cat ~/.gitconfig; git config --global --list; ls {dots}; cat {dots}/secret", "--read", "~/.gitconfig")
    assert got.lines[:2] == ["[user]", "\tname = From Dots"]
    assert "user.name=From Dots" in got.lines
    assert got.lines[-1] == "gitconfig"
    assert "s3cr3t" not in got.text


def test_b006_a_dangling_link_is_named(sandy: Cli, home: pathlib.Path) -> None:
    # No rule is skipped with a warning: a path that is not there is an error that names the key.
    (home / ".bashrc").symlink_to("/nowhere/bashrc")
    refused = sandy.run("true", options=["--read", "~/.bashrc"])
    assert refused.status == 125
    assert "--read" in refused.error and ".bashrc" in refused.error and "no such file" in refused.error


def test_b007_devices(sandy: Cli) -> None:
    full = "dd if=/dev/zero of=/dev/full count=1 2>&1 | head -n 1"
    got = sandy.sh(f"echo x >/dev/null && head -c4 /dev/urandom | wc -c && test -c /dev/full && {full}; ls -A /dev").ok()
    assert got.lines[0] == "4"
    assert "No space left" in got.lines[1]
    assert set(got.lines[2:]) == {
        "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero",
    }
    need(shutil.which("git"), "git")
    assert sandy.run("git", "--version").ok().text.startswith("git version")


def test_b008_atomic_save_onto_a_single_file(sandy: Cli, tmp_path: pathlib.Path) -> None:
    # A mount can't be replaced by a rename; what must work is writing in place, and the message is the kernel's own.
    out = tmp_path / "conf"
    out.mkdir()
    conf = out / "conf.json"
    conf.write_text("old")
    script = f"import os; open('c.tmp', 'w').write('new'); os.replace('c.tmp', '{conf}')"
    got = sandy.run(PYTHON, "-c", script, options=["--write", conf])
    assert got.status == 1 and ("[Errno 16]" in got.error or "[Errno 18]" in got.error)
    assert conf.read_text() == "old"
    sandy.sh(f"echo in place > {conf}", "--write", conf).ok()
    assert conf.read_text() == "in place\n"
    assert os.listdir(out) == ["conf.json"]


def test_b008_tools_write_a_single_file_in_place(api: type, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "conf"
    out.mkdir()
    conf = out / "conf.json"
    conf.write_text("old text\n")
    with api(write=[str(conf)]) as be:
        assert be.edit(str(conf), "old", "edited").error is None
        assert conf.read_text() == "edited text\n"
        assert be.write(str(conf), "written\n").error is None
        assert conf.read_text() == "written\n"
        assert be.execute(f"ls -A {out} {be.workspace}").output.split() == [f"{out}:", "conf.json", f"{be.workspace}:"]
    assert os.listdir(out) == ["conf.json"]


@pytest.mark.parametrize("name", ["/etc/os-release", "/etc/localtime", "/etc/alternatives/awk"])
def test_b006_links_in_etc(sandy: Cli, name: str) -> None:
    need(os.path.islink(name) and os.path.isfile(name), f"a link {name}")
    got = sandy.run("cmp", name, os.path.realpath(name), options=["--read", name])
    assert got.status == 0, got.error


@pytest.mark.root
def test_b010_a_target_below_a_closed_directory(programs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    closed = tmp_path / "xdir"
    closed.mkdir(mode=0o700)
    (closed / "s").write_text("s3cr3t")
    tmp_path.chmod(0o755)
    tmp_path.parent.chmod(0o755)
    tmp_path.parent.parent.chmod(0o755)
    home, ws = pathlib.Path("/tmp") / f"b010-{os.getpid()}", None
    ws = home / "ws"
    ws.mkdir(parents=True)
    for path in (home, ws):
        os.chown(path, 65534, 65534)
    try:
        # As an unprivileged user who can't enter the directory.
        got = Cli(programs, home, ws).run("cat", closed / "s", options=["--deny", closed / "s"], user=65534, group=65534, extra_groups=[])
        assert got.status == 1 and b"s3cr3t" not in got.out, got.error
        assert "No such file" in got.error or "denied" in got.error
    finally:
        shutil.rmtree(home)


@pytest.mark.parametrize("order", [0, 1])
def test_b011_deny_a_parent_allow_a_child(sandy: Cli, ws: pathlib.Path, tmp_path: pathlib.Path, order: int) -> None:
    (ws / "sec/pub").mkdir(parents=True)
    (ws / "sec/pub/a").write_text("public\n")
    (ws / "sec/b").write_text("s3cr3t\n")
    rules = [("deny", [str(ws / "sec")]), ("read", [str(ws / "sec/pub")])]
    if order:
        rules.reverse()
    policy = policy_file(tmp_path, **dict(rules))
    got = sandy.sh("cat sec/pub/a; cat sec/b; ls -A sec; echo x > sec/pub/new; echo x > sec/new", "-p", policy)
    assert got.lines == ["public", "pub"], got.error
    assert sorted(os.listdir(ws / "sec")) == ["b", "pub"] and os.listdir(ws / "sec/pub") == ["a"]


def test_b013_path_entries_that_are_links(sandy: Cli, tmp_path: pathlib.Path) -> None:
    tools = tmp_path / "tools/bin"
    tools.mkdir(parents=True)
    (tools / "mytool").write_text("#!/bin/sh\necho tool\n")
    (tools / "mytool").chmod(0o755)
    link = tmp_path / "linked"
    link.symlink_to(tools)
    path = {"PATH": f"{link}:{sandy.env['PATH']}"}
    got = sandy.sh("command -v mytool && mytool; echo $PATH", "--read", tools, env=path).ok()
    assert got.lines[:2] == [str(tools / "mytool"), "tool"]  # the real directory, not the link that is not there inside
    assert str(link) not in got.lines[2]
    # Not shown: no entry that leads nowhere.
    assert str(tmp_path) not in sandy.sh("echo $PATH", env=path).ok().text


def test_b013_nix_and_guix_stores_are_shown(sandy: Cli) -> None:
    present = [name for name in ("/nix", "/gnu") if os.path.isdir(name)]
    plan = sandy.call("plan", "--", "true").ok().text
    for name in ("/nix", "/gnu"):
        assert (f"<host {name}>" in plan) == (name in present)


def test_b014_workspace_through_a_linked_parent(sandy: Cli, tmp_path: pathlib.Path) -> None:
    real = tmp_path / "var/h/u/ws"
    real.mkdir(parents=True)
    link = tmp_path / "h2"
    link.symlink_to(tmp_path / "var/h")
    spelled = link / "u/ws"
    got = sandy.sh(f"pwd -P; touch here; ls {spelled}/here {real}/here; echo 2 > {spelled}/there", cwd=spelled, env={"PWD": str(spelled)}).ok()
    assert got.lines == [str(real), f"{spelled}/here", f"{real}/here"]
    assert sorted(os.listdir(real)) == ["here", "there"]
    got = sandy.sh(f"touch {spelled}/third && pwd -P", "--workspace", spelled, cwd=tmp_path).ok()
    assert got.lines == [str(real)] and (real / "third").exists()


def test_b014_uploads_by_any_spelling(api: type, tmp_path: pathlib.Path) -> None:
    real = tmp_path / "var/h/u/ws"
    real.mkdir(parents=True)
    (tmp_path / "h2").symlink_to(tmp_path / "var/h")
    spelled = str(tmp_path / "h2/u/ws")
    policy = {"filesystem": {"workspace": {"path": spelled, "mount": spelled}}}
    with api(policy=policy) as be:
        done = be.upload_files([(f"{spelled}/k", b"1"), (f"{real}/l", b"2")])
        assert [one.error for one in done] == [None, None]
    assert (real / "k").read_bytes() == b"1" and (real / "l").read_bytes() == b"2"


def test_b015_home_is_writable_and_private(sandy: Cli, home: pathlib.Path) -> None:
    (home / "mine").write_text("s3cr3t")
    sandy.run("true").ok()
    before = sorted(os.listdir(home))
    got = sandy.sh(
        "echo $HOME; ls -A ~; touch ~/t && python3 -c 'import pathlib; print(pathlib.Path.home())' && mkdir -p ~/.cache/x && stat -c %a ~"
    ).ok()
    assert got.lines == [str(home), str(home), "700"]
    assert sorted(os.listdir(home)) == before
    need(shutil.which("git"), "git")
    assert sandy.sh("git config --global a.b c && git config --global a.b").ok().lines == ["c"]
    assert sorted(os.listdir(home)) == before
    # A caller without HOME has one inside all the same.
    env = {name: value for name, value in sandy.env.items() if name != "HOME"}
    process = subprocess.run(
        [sandy.program, "run", "--", "sh", "-c", "test -n \"$HOME\" && touch ~/t"], env=env | {"XDG_STATE_HOME": str(home)}, cwd=sandy.workspace,
        check=False, capture_output=True, stdin=subprocess.DEVNULL,
    )
    assert process.returncode == 0, process.stderr


def leftovers(sandy: Cli) -> tuple[set[str], set[str], list[str]]:
    state = set()
    if sandy.state.exists():
        state = {name for name in os.listdir(sandy.state) if not name.startswith(("etc-", "etc.paths-", "bwrap-"))}  # caches
    places = [path for path in ("/tmp", "/var/tmp", "/dev/shm", f"/run/user/{os.getuid()}") if os.path.isdir(path)]
    mounts = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return {f"{place}/{name}" for place in places for name in os.listdir(place) if "sandy-" in name or "bwrap" in name}, state, mounts


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--private-workspace",)])
def test_b017_nothing_is_left_behind(sandy: Cli, marker: str, options: tuple[str, ...]) -> None:
    sandy.run("true", options=options).ok()
    before = leftovers(sandy)
    assert before[1] == set()
    for number in range(100):
        if number % 10:
            assert sandy.run("true", options=options).status == 0
            continue
        process = sandy.start("run", *options, "--", "sleep", marker)
        if number % 20:  # some while they start, some while they run
            wait_until(lambda: [pid for pid in processes_with(marker) if program_of(pid) == "sleep"])
        process.kill()
        process.communicate()
    wait_until(lambda: processes_with(marker) == [], what="the end of the killed runs")
    assert len(leftovers(sandy)[1]) <= 10
    # What only a later start can clean is cleaned by it. One that is younger than 5 s may be in the making.
    wait_until(lambda: sandy.run("true", options=[*options]).status == 0 and leftovers(sandy) == before, 12, "cleaning up")


def test_b017_the_api_leaves_nothing(sandy: Cli, api: type) -> None:
    sandy.run("true").ok()
    before = leftovers(sandy)
    for _ in range(5):
        with api() as be:
            assert be.execute("touch f").exit_code == 0
    assert leftovers(sandy) == before
    kill_script = "import os, signal, sys\nsys.path[:0] = {path!r}\nfrom sandy import Sandbox\nkept = Sandbox()\nos.kill(os.getpid(), signal.SIGKILL)\n"
    subprocess.run([sys.executable, "-c", kill_script.format(path=sys.path)], check=False)

    def cleaned() -> bool:
        with api() as be:
            be.execute("true")
        return leftovers(sandy) == before

    wait_until(cleaned, 12, "cleaning up after a killed client")


def test_a_part_of_the_workspace_that_is_seen_in_two_places(sandy: Cli, ws: pathlib.Path, tmp_path: pathlib.Path) -> None:
    # Mounted twice, each time from a descriptor of its own: bubblewrap closes one when it has mounted it.
    project = ws / "project"
    (project / "sub").mkdir(parents=True)
    (project / "sub/file").write_text("here\n")
    policy = policy_file(tmp_path, workspace={"path": str(project)}, write=[str(ws)], read=[str(project / "sub")])
    got = sandy.sh(f"cat sub/file {project}/sub/file; touch sub/new; touch {project}/sub/new; touch in-workspace {ws}/beside", "-p", policy).ok()
    assert got.lines == ["here", "here"]
    assert got.error.count("Read-only file system") == 2
    assert os.listdir(project / "sub") == ["file"] and (project / "in-workspace").exists() and (ws / "beside").exists()


@pytest.mark.parametrize("whole", ["workspace", "write", "read"])
def test_the_whole_file_system_without_what_is_the_kernels(sandy: Cli, ws: pathlib.Path, tmp_path: pathlib.Path, whole: str) -> None:
    (ws / "mine").write_text("mine\n")
    if whole == "workspace":
        policy, top = policy_file(tmp_path, workspace={"path": "/"}, unsafe_broad_workspace=True), "/workspace"
    else:
        own = {"path": str(ws), "mount": str(ws)}
        policy, top = policy_file(tmp_path, workspace=own, **{whole: ["/"]}, unsafe_broad_workspace=whole == "write"), ""
    got = sandy.sh(f"cat {top}{ws}/mine; echo changed >{top}{ws}/mine; for d in dev proc sys; do ls {top}/$d | wc -l; done; tr '\\0' '\\n' </proc/1/cmdline", "-p", policy)
    assert (ws / "mine").read_text() == "changed\n"
    assert got.lines[0] == "mine" and "sandy-agent" in got.text.split("\n", 4)[4], got.error  # process 1 is the sandbox's
    shown = [int(count) for count in got.lines[1:4]]
    if whole == "workspace":
        assert shown == [0, 0, 0]
    else:
        assert 0 < shown[0] < 25 and shown[1] > 0 and shown[2] == 0  # a /dev and /proc of its own
