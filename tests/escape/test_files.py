"""Rows 28 to 31, 33, 37 and B134: the file rules, and links, renames and names that try to get around them."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable

import pytest
from support import Cli, host, need

SECRET = "s3cr3t"


@pytest.fixture
def secret(tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory outside the workspace, with a file that this user, and so the positive control, can read."""
    path = tmp_path / "outside"
    path.mkdir()
    (path / "key").write_text(SECRET)
    return path


@pytest.fixture
def repository(ws: pathlib.Path) -> pathlib.Path:
    for name in (".git/hooks", ".git/info", ".vscode", "node_modules/.bin", ".venv/bin"):
        (ws / name).mkdir(parents=True)
    (ws / ".git/config").write_text("[core]\n")
    (ws / "Makefile").write_text("all:\n")
    (ws / ".envrc").write_text("")
    return ws


def tree(root: pathlib.Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() if path.is_file() else "" for path in sorted(root.rglob("*"))}


def test_t28_missing_files_below_a_protected_directory(sandy: Cli, repository: pathlib.Path) -> None:
    names = ["config.worktree", "commondir", "hooks/pre-commit", "info/attributes", "modules/a/config", "worktrees/w/gitdir"]
    script = "; ".join(f"mkdir -p .git/{os.path.dirname(name) or '.'}; echo x > .git/{name}" for name in names)
    script += "; git config core.hooksPath /tmp; mv .git .git2; rm -rf .git; ln -s /tmp .git; true"
    before = tree(repository)
    sandy.sh(script, "--read", ".git").ok()
    assert tree(repository) == before
    sandy.sh(script).ok()  # without the rule
    assert (repository / ".git2/hooks/pre-commit").exists()


@pytest.mark.parametrize("name", [".git", ".claude/settings.json", ".git/config.worktree"])
def test_t28_what_is_not_there_cannot_be_denied_silently(sandy: Cli, ws: pathlib.Path, name: str) -> None:
    if name.startswith(".git/"):
        (ws / ".git").mkdir()
    for rule in ("--deny", "--read"):
        got = sandy.run("true", options=[rule, name])
        assert got.status == 125 and name in got.error, got.error
    assert not (ws / name).exists()  # no placeholder either


def test_t29_files_that_the_host_would_run(sandy: Cli, repository: pathlib.Path) -> None:
    protected = [".vscode", ".envrc", "Makefile", "node_modules/.bin", ".venv/bin"]
    script = (
        "echo x > .vscode/tasks.json; echo x > .envrc; echo x > Makefile; echo x > node_modules/.bin/tool; echo x > .venv/bin/activate;"
        "rm -f .envrc Makefile; mv .envrc e; mv Makefile m; mv node_modules n; mv .venv v; mv .vscode w;"
        "mkdir -p new && cp -r .vscode new/ && mv -T new .vscode; ln -sf /tmp/x .envrc; echo fine > other"
    )
    before = tree(repository)
    sandy.sh(script, *(word for name in protected for word in ("--read", name))).ok()
    after = tree(repository)
    assert after.pop("other") == "fine\n"
    assert {name: text for name, text in after.items() if not name.startswith("new")} == before
    sandy.sh(script)
    assert (repository / ".envrc").is_symlink()  # without the rules


def test_t30_links_out_of_the_workspace(sandy: Cli, ws: pathlib.Path, secret: pathlib.Path, home: pathlib.Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh/id").write_text(SECRET)
    for name, target in {
        "file": secret / "key", "dir": secret, "home": home, "root": "/", "up": "../outside", "proc": "/proc/self/root" + str(secret),
        "one": "/proc/1/root", "state": sandy.state,
    }.items():
        (ws / name).symlink_to(target)
    script = "cat file dir/key home/.ssh/id root{0}/key up/key proc/key one{0}/key; ls state/; echo x > dir/new; echo x > up/new; echo x > file".format(secret)
    control = host(script, cwd=ws)
    assert control.text.count(SECRET) >= 4
    (secret / "key").write_text(SECRET)
    (secret / "new").unlink()
    got = sandy.sh(script)
    assert SECRET not in got.text + got.error and got.out == b""
    assert tree(secret) == {"key": SECRET}


@pytest.mark.parametrize("option", ["--workspace", "--read", "--write", "--deny"])
def test_t30_a_link_as_a_rule_is_what_it_leads_to(sandy: Cli, ws: pathlib.Path, link: pathlib.Path, option: str) -> None:
    # What validate() checked as written is checked again as resolved.
    broad = link.parent / "innocent"
    broad.symlink_to("/etc")
    if option in ("--workspace", "--write"):
        got = sandy.run("true", options=[option, broad])
        assert got.status == 125 and "/etc" in got.error
        return
    (ws / "data").mkdir()
    (ws / "data/key").write_text(SECRET)
    (link.parent / "data").symlink_to(ws / "data")
    got = sandy.sh("cat data/key; echo x > data/new; mv data moved; cat moved/key", option, link.parent / "data")
    assert (SECRET in got.text) == (option == "--read")
    assert tree(ws / "data") == {"key": SECRET}


@pytest.mark.parametrize("option", ["--read", "--write", "--deny"])
@pytest.mark.parametrize("rule", ["data", "data/inner", "data/../inner", "../links/back/data", "../links/up/../data", "sub/../data"])
def test_t30_a_rule_that_a_command_could_redirect(sandy: Cli, ws: pathlib.Path, home: pathlib.Path, link: pathlib.Path, option: str, rule: str) -> None:
    # A command makes the link; a policy that names it would show its target from the next start on, or hide another file than it says.
    private = home / "keys/sub"
    for directory in (private / "inner", home / "keys/inner", ws / "sub"):
        directory.mkdir(parents=True)
    (private / "id").write_text(SECRET)
    (link.parent / "back").symlink_to(ws)
    (link.parent / "up").symlink_to(ws / "sub")
    sandy.sh(f"ln -s {private} data").ok()
    got = sandy.sh(f"cat {private}/id data/id", option, rule)
    assert got.status == 125 and SECRET not in got.text, got
    assert f'"{ws}/data" on its way is a symbolic link that commands can change' in got.error and "current directory makes it writable" in got.error
    now = os.path.realpath(ws / rule)
    assert f'hint: name "{now}"' in got.error
    # The way that it names.
    assert sandy.run("true", options=[option, now]).status == 0
    # Nobody but us makes this link: the same path, where commands can't write.
    (link.parent / "ws").symlink_to(ws)
    assert sandy.run("true", options=["--private-workspace", option, rule]).status == 0


def test_t30_a_workspace_that_a_command_could_redirect(sandy: Cli, ws: pathlib.Path, secret: pathlib.Path) -> None:
    (ws / "own").symlink_to(secret)
    for options in (["--workspace", ws / "own", "--write", ws], ["--workspace", f"{ws}/own/../outside", "--write", ws]):
        got = sandy.sh("touch planted", *options)
        assert got.status == 125 and "symbolic link that commands can change" in got.error and f'hint: name "{secret}"' in got.error, got.error
    # The current directory, by a name that leads through itself.
    (ws / "self").symlink_to(".")
    got = sandy.run("true", cwd=ws / "self", env={"PWD": str(ws / "self")})
    assert got.status == 125 and f'hint: name "{ws}"' in got.error
    assert tree(secret) == {"key": SECRET}
    sandy.sh("touch fine", "--workspace", ws / "own").ok()


def test_t30_a_link_that_commands_cannot_change(sandy: Cli, ws: pathlib.Path, secret: pathlib.Path) -> None:
    (ws / "fixed").mkdir()
    (ws / "fixed/link").symlink_to(secret)
    assert sandy.run("true", options=["--read", "fixed/link"]).status == 125
    got = sandy.sh("cat fixed/link/key; rm fixed/link; mv fixed moved; ln -sfn /etc fixed/link", "--read", "fixed", "--read", "fixed/link")
    assert got.text == SECRET and os.readlink(ws / "fixed/link") == str(secret)


def test_t30_races_at_the_start(sandy: Cli, ws: pathlib.Path, secret: pathlib.Path) -> None:
    # A directory that the policy shows is swapped for a link, again and again, while sandboxes start: a start fails, or shows one of the two
    # at that one's own path. Never is one mounted by the other's name.
    shown, link = ws.parent / "shown", ws.parent / "link"
    shown.mkdir()
    (shown / "key").write_text("public")
    link.symlink_to(secret)
    libc = ctypes.CDLL(None, use_errno=True)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            assert libc.renameat2(-100, os.fsencode(shown), -100, os.fsencode(link), 2) == 0  # RENAME_EXCHANGE
            stop.wait(0.002)

    attacker = threading.Thread(target=swap)
    attacker.start()
    outcomes = []
    try:
        for _ in range(40):
            got = sandy.sh(f"cat {shown}/key; echo; readlink {shown}; cat {secret}/key", "--read", shown)
            if got.status != 125:
                outcomes.append(got.lines)
    finally:
        stop.set()
        attacker.join()
    assert outcomes  # some start worked
    for lines in outcomes:
        assert lines in (["public"], [SECRET, str(secret), SECRET]), outcomes


@pytest.mark.parametrize("rule", ["--deny", "--read"])
def test_t31_renames_of_what_is_protected(sandy: Cli, ws: pathlib.Path, probe: Callable[..., pathlib.Path], rule: str) -> None:
    (ws / "a/b/c").mkdir(parents=True)
    (ws / "a/b/c/key").write_text(SECRET)
    (ws / "attempt-a").symlink_to("a/b")
    (ws / "attempt-b").mkdir()
    exchange = probe("exchange")
    script = (
        "mv a x; mv a/b a/y; mv a/b/c a/b/z; rm -rf a; rmdir a/b; mkdir new; mv -T new a/b;"
        f"./{exchange.name} a attempt-b; ./{exchange.name} a/b attempt-b; ./{exchange.name} a/b/c attempt-b;"
        "ln a/b/c/key linked; ln a/b/c/key a/linked; cp -rl a copied;"
        "for f in x/b/c/key a/y/c/key a/b/z/key linked a/linked attempt-b/b/c/key attempt-b/c/key attempt-b/key copied/b/c/key; do cat $f; echo bad >> $f; done;"
        "rm -rf copied linked a/linked; true"
    )
    got = sandy.sh(script, rule, "a/b/c")
    if rule == "--deny":
        assert SECRET not in got.text
    assert (ws / "a/b/c/key").read_text() == SECRET, got.error
    assert got.error.count("busy") + got.error.count("Read-only") + got.error.count("denied") >= 6
    sandy.sh("mv a x && echo bad >> x/b/c/key").ok()  # without the rule
    assert (ws / "x/b/c/key").read_text() == SECRET + "bad\n"


def test_t31_hard_links_from_what_is_only_readable(sandy: Cli, ws: pathlib.Path, secret: pathlib.Path) -> None:
    # A hard link in the workspace to a read-only file's inode would be a writable name for it.
    (ws / "ro").mkdir()
    (ws / "ro/file").write_text("kept")
    got = sandy.sh(f"ln ro/file mine; ln {secret}/key mine2; ln /usr/bin/env mine3; echo bad >> mine; echo bad >> mine2; ls", "--read", "ro", "--read", secret)
    assert (ws / "ro/file").read_text() == "kept" and (secret / "key").read_text() == SECRET
    assert "cross-device" in got.error.lower() or "not permitted" in got.error
    assert host("ln ro/file mine4 && echo bad >> mine4", cwd=ws).status == 0
    assert (ws / "ro/file").read_text() == "keptbad\n"


@pytest.mark.parametrize(
    "name",
    ["sec", "sec/", "./sec", "sec//", "x/../sec", b"bad-\xff\xfe", "new\nline", "quo'te\"s", " space ", "--dash", "d1/d2/d3/d4/d5/d6/d7/d8/d9/d10/d11/d12"],
)
def test_t33_spellings_of_a_denied_path(sandy: Cli, ws: pathlib.Path, name: str | bytes) -> None:
    (ws / "x").mkdir()
    path = os.path.normpath(os.path.join(os.fsencode(ws), os.fsencode(name)))
    os.makedirs(path)
    with open(os.path.join(path, b"key"), "w") as file:
        file.write(SECRET)
    reading = ["python3", "-c", "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())", os.path.join(path, b"key")]
    assert sandy.run(*reading).ok().text == SECRET
    got = sandy.run(*reading, options=[b"--deny=" + os.fsencode(name)])
    assert got.status == 1 and SECRET not in got.text and "PermissionError" in got.error, got.error
    got = sandy.run("grep", "-r", SECRET, ".", options=[b"--deny=" + os.fsencode(name)])
    assert SECRET not in got.text


def test_t33_patterns_are_no_rules(sandy: Cli, ws: pathlib.Path) -> None:
    # A pattern that would cover only what is there now, or nothing, is refused: no rule is skipped.
    (ws / "a.pem").write_text(SECRET)
    for pattern in ("**/*.pem", "*.pem", "~user/.aws"):
        got = sandy.run("cat", "a.pem", options=["--deny", pattern])
        assert got.status == 125 and SECRET not in got.text, got.error


def test_t33_new_files_in_a_denied_directory(sandy: Cli, ws: pathlib.Path) -> None:
    (ws / "sec").mkdir()
    process = sandy.start("run", "--deny", "sec", "--", "sh", "-c", "echo ready; read x; cat sec/later; ls sec; echo new > sec/mine", stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"  # type: ignore[union-attr]
    (ws / "sec/later").write_text(SECRET)
    out, err = process.communicate(b"\n", timeout=20)
    assert SECRET.encode() not in out + err
    assert os.listdir(ws / "sec") == ["later"]


def test_t33_case_is_kept_apart(sandy: Cli, ws: pathlib.Path) -> None:
    (ws / "Sec").mkdir()
    need(not (ws / "sec").exists(), "a file system that tells case apart")
    got = sandy.run("true", options=["--deny", "sec"])
    assert got.status == 125 and "does not exist" in got.error  # not taken for another name


@pytest.fixture
def link(secret: pathlib.Path) -> pathlib.Path:
    """A link, in a directory that no policy here shows, to a directory beside the secret: "link/../key" is the secret for the kernel, not for the text."""
    (secret / "sub").mkdir()
    path = secret.parent / "links"
    path.mkdir()
    (path / "key").write_text("public")
    (path / "link").symlink_to(secret / "sub")
    return path / "link"


def test_t33_dot_dot_behind_a_link(sandy: Cli, secret: pathlib.Path, link: pathlib.Path) -> None:
    # A rule about another file than the kernel's protects nothing.
    spelled = f"{link}/../key"
    assert pathlib.Path(spelled).read_text() == SECRET
    assert SECRET in sandy.sh(f"cat {secret}/key", "--read", secret).text
    got = sandy.sh(f"cat {secret}/key; cat {spelled}", "--read", secret, "--deny", spelled)
    assert SECRET not in got.text and "denied" in got.error
    # From the current directory, and with more of them.
    got = sandy.sh(f"cat {secret}/key", "--read", secret, "--deny", f"../links/link/.././../links/link/../key")
    assert SECRET not in got.text and "denied" in got.error
    # Where it names nothing for the kernel, it is no rule about what its text says.
    got = sandy.run("true", options=["--read", secret, "--deny", f"{secret}/none/../key"])
    assert got.status == 125 and f'".." stands behind "{secret}/none"' in got.error and "hint: " in got.error


def test_t33_dot_dot_shows_and_writes_what_the_kernel_finds(sandy: Cli, secret: pathlib.Path, link: pathlib.Path) -> None:
    spelled = f"{link}/../key"
    got = sandy.sh(f"cat {spelled} {secret}/key; cat {link.parent}/key; ls -A {secret} {link.parent}", "--read", spelled)
    assert got.text.startswith(SECRET * 2) and "public" not in got.text  # the spelling works inside, and shows nothing else
    assert set(got.text.split()) >= {"link", "key", "sub"} and "No such file" in got.error
    sandy.sh(f"echo changed > {spelled}", "--write", spelled).ok()
    assert tree(secret) == {"key": "changed\n", "sub": ""} and (link.parent / "key").read_text() == "public"


def test_t33_dot_dot_in_a_workspace_and_a_working_directory(sandy: Cli, ws: pathlib.Path, secret: pathlib.Path, link: pathlib.Path) -> None:
    (secret / "other").mkdir()
    (secret / "other/in").mkdir()
    spelled = f"{link}/../other"
    got = sandy.sh(f"pwd -P; touch here; ls {spelled}", "--workspace", spelled).ok()
    assert got.lines == [str(secret / "other"), "here", "in"]
    (ws / "inner").symlink_to("a/b")
    (ws / "a/b").mkdir(parents=True)
    assert sandy.run("pwd", options=["--cwd", f"{ws}/inner/.."]).ok().lines[0] == f"{ws}/a"
    (secret / "broad").symlink_to("/usr/share")
    got = sandy.run("true", options=["--workspace", f"{secret}/broad/../lib"])
    assert got.status == 125 and "/usr/lib" in got.error and "too broad" in got.error


def test_t33_dot_dot_in_the_name_of_a_seccomp_policy(sandy: Cli, secret: pathlib.Path, link: pathlib.Path) -> None:
    (secret / "own.json").write_text("{}")
    (link.parent / "own.json").symlink_to("/nonexistent")
    got = sandy.run("true", options=["--seccomp", f"{link}/../own.json"])
    assert got.status == 125 and "/nonexistent" not in got.error and "own.json" in got.error and "No such file" not in got.error


@pytest.mark.parametrize("other", ["link/../key", "link/../../outside/key", "twice/key"])
@pytest.mark.parametrize("first", ["--read", "--write", "--deny"])
@pytest.mark.parametrize("second", ["--read", "--write", "--deny"])
def test_t33_spellings_that_contradict_each_other(sandy: Cli, secret: pathlib.Path, link: pathlib.Path, first: str, second: str, other: str) -> None:
    (link.parent / "twice").symlink_to(secret)
    got = sandy.run("true", options=[first, secret / "key", second, link.parent / other])
    assert got.status == (0 if first == second else 125), got.error
    if first != second:
        assert "contradicts" in got.error and "hint: keep one of the two" in got.error


def test_t33_what_a_rule_may_not_name_by_any_spelling(sandy: Cli, home: pathlib.Path, link: pathlib.Path) -> None:
    sandy.run("true").ok()
    (link.parent / "state").symlink_to(sandy.state)
    (link.parent / "null").symlink_to("/dev/null")
    (link.parent / "up").symlink_to(sandy.workspace.parent)
    for option, name, words in (
        ("--read", link.parent / "state", "Sandy's own state"),
        ("--read", f"{sandy.state}/../sandy", "Sandy's own state"),
        ("--deny", link.parent / "null", "made fresh"),
        ("--deny", link.parent / "up", "the workspace is in it"),
        ("--deny", f"{sandy.workspace}/..", "the workspace is in it"),
        ("--read", f"{sandy.workspace}/../ws", "contradicts"),
    ):
        got = sandy.run("true", options=[option, name])
        assert got.status == 125 and words in got.error, (name, got.error)


def test_check_refuses_what_a_start_would(sandy: Cli, tmp_path: pathlib.Path, link: pathlib.Path) -> None:
    (link.parent / "innocent").symlink_to("/etc")
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"version": 1, "filesystem": {"write": [str(link.parent / "innocent")]}}))
    got = sandy.call("check", policy)
    assert got.status == 1 and "/etc" in got.error and "too broad" in got.error
    assert not sandy.state.exists()  # it only looks
    policy.write_text(json.dumps({"version": 1, "filesystem": {"write": [str(tmp_path / "elsewhere")]}}))
    assert "valid" in sandy.call("check", policy).ok().text  # it may be for another machine


@pytest.mark.parametrize("where", ["/", "~", "/home", "/tmp", "/etc", "/usr", "/proc", "/dev", "~/.local/state/sandy", "~/.local/state", "/var/tmp"])
def test_t37_too_broad_a_workspace(sandy: Cli, home: pathlib.Path, where: str) -> None:
    sandy.run("true").ok()  # the state directory is there
    path = pathlib.Path(str(home) + where[1:] if where.startswith("~") else where)
    need(path.is_dir(), f"{where}")
    link = home.parent / "innocent"
    link.symlink_to(path)
    for cwd, options in ((path, []), (link, []), (home.parent, ["--workspace", path]), (home.parent, ["--workspace", link]), (None, ["--write", path])):
        got = sandy.run("touch", "written", options=options, cwd=cwd)
        assert got.status == 125, (cwd, options, got)
        assert any(words in got.error for words in ("too broad to be writable", "unsafe_broad_workspace", "never")), got.error
    assert not (path / "written").exists()


def test_b136_git_variables_steer_nothing(sandy: Cli, ws: pathlib.Path, secret: pathlib.Path) -> None:
    need(shutil.which("git"), "git")
    (ws / ".git").write_text(f"gitdir: {secret}\n")
    env = {"GIT_DIR": str(secret), "GIT_WORK_TREE": str(secret), "GIT_CONFIG_GLOBAL": str(secret / "key")}
    got = sandy.sh(f"env | grep GIT; cat {secret}/key; echo x > {secret}/new", env=env)
    assert got.out == b"" and got.status != 0
    assert tree(secret) == {"key": SECRET}


def test_b136_a_broad_workspace_wants_its_word(sandy: Cli, home: pathlib.Path) -> None:
    sandy.sh("touch written", "--unsafe-broad-workspace", cwd=home).ok()
    assert (home / "written").exists()
    plan = sandy.call("plan", "--unsafe-broad-workspace", "--", "true", cwd=home).ok()
    assert "broad" in plan.text + plan.error or "degraded" in plan.text  # the weakening shows


@pytest.mark.parametrize("hop", ["/oldroot{victim}", "{victim}", "/newroot/../oldroot{victim}", "../victim"])
def test_b134_mount_points_below_a_planted_link(sandy: Cli, ws: pathlib.Path, home: pathlib.Path, hop: str) -> None:
    # While bubblewrap sets up, the host's root is /oldroot: a link in a writable tree leads there.
    victim = ws.parent / "victim"
    victim.mkdir()
    data = ws.parent / "data"
    data.mkdir()
    (ws / "o").symlink_to(hop.format(victim=victim))
    for options in (
        ["--workspace", data, "--mount", ws / "o/new", "--write", ws],
        ["--private-workspace", "--mount", ws / "o/new", "--write", ws],
        ["--cwd", ws / "o/new"],
        ["--cwd", "o/new"],
    ):
        sandy.run("true", options=options)
        assert os.listdir(victim) == [], options
    sandy.run("true", env={"HOME": str(ws / "o/home"), "XDG_STATE_HOME": str(home)}, options=["--private-workspace", "--write", ws])
    assert os.listdir(victim) == []


def test_b134_nothing_is_made_in_the_workspace(sandy: Cli, ws: pathlib.Path, home: pathlib.Path) -> None:
    (ws / "sec").mkdir()
    (ws / "file").write_text("")
    for options in ([], ["--deny", "sec"], ["--deny", "file"], ["--read", "sec", "--read", "file"], ["--env", "HOME=/tmp/wk-home"]):
        sandy.run("true", options=options).ok()
    assert sorted(os.listdir(ws)) == ["file", "sec"]
    assert os.listdir(ws / "sec") == []


def test_b137_supplementary_groups(sandy: Cli) -> None:
    assert sandy.run("id", "-G").ok().text == "1000\n"
    status = sandy.run("grep", "^Groups", "/proc/self/status").ok().text.split()[1:]
    assert set(status) <= {"1000", "65534"}


@pytest.mark.root
def test_b137_files_of_a_supplementary_group(programs: pathlib.Path, open_directory: pathlib.Path) -> None:
    base = open_directory
    for name in ("ws", "shown", "other"):
        (base / name).mkdir()
        os.chown(base / name, 65534, 65534)
    os.chown(base, 65534, 65534)
    for directory in ("shown", "other"):
        path = base / directory / "file"
        path.write_text(SECRET)
        os.chown(path, 0, 4)
        path.chmod(0o040)
    user = {"user": 65534, "group": 65534, "extra_groups": [4]}
    control = subprocess.run(["cat", base / "shown/file"], capture_output=True, check=False, **user)  # type: ignore[call-overload]
    assert control.stdout == SECRET.encode()
    # The kernel keeps a process's groups in a user namespace, where they have no number of their own: what they can read is
    # what the policy shows.
    got = Cli(programs, base, base / "ws").sh(f"cat {base}/other/file; id -G", "--read", base / "shown", **user)
    assert SECRET not in got.text and set(got.text.split()) <= {"1000", "65534"}


# Programs that the host's users could run with the caller's identity. The directory is one that everybody may enter.
SET_ID = """
cp /bin/true t; chmod 4755 t; chmod 2755 t; chmod u+s t; install -m 6755 /bin/true i; cp t c; tar cf a.tar t 2>/dev/null
python3 - <<'END'
import ctypes, os, stat
libc = ctypes.CDLL(None, use_errno=True)
def attempt(call, *arguments):
    try:
        call(*arguments)
    except OSError:
        pass
for bits in (0o4755, 0o2755, 0o6755):
    attempt(os.chmod, "t", bits)
    attempt(os.open, f"o{bits:o}", os.O_CREAT | os.O_WRONLY, bits)
    attempt(os.mknod, f"n{bits:o}", stat.S_IFREG | bits)
    fd = os.open("f", os.O_CREAT | os.O_WRONLY, 0o755)
    attempt(os.fchmod, fd, bits)
    libc.syscall(452, -100, b"t", bits, 0)
    libc.creat(b"c%o" % bits, bits)
    how = (ctypes.c_ulonglong * 3)(os.O_CREAT | os.O_WRONLY, bits, 0)
    libc.syscall(437, -100, b"h%o" % bits, how, 24)
    try:
        temporary = os.open(".", os.O_TMPFILE | os.O_WRONLY, bits)
        os.link(f"/proc/self/fd/{temporary}", f"l{bits:o}", follow_symlinks=True)
    except OSError:
        pass
END
ls
"""


def no_set_id_bits(sandy: Cli, ws: pathlib.Path) -> None:
    ws.chmod(0o755)
    got = sandy.sh(SET_ID)
    assert {"t", "f", "c"} <= set(got.text.split()), got.error
    with_bits = [entry.name for entry in ws.rglob("*") if entry.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)]
    assert with_bits == []
    host(SET_ID, cwd=ws)  # the control: outside they can be set
    assert (ws / "t").stat().st_mode & stat.S_ISGID


def test_no_set_id_bits_on_the_callers_files(sandy: Cli, ws: pathlib.Path) -> None:
    no_set_id_bits(sandy, ws)


@pytest.mark.root
def test_no_set_id_bits_on_roots_files(sandy: Cli, ws: pathlib.Path) -> None:
    no_set_id_bits(sandy, ws)


@pytest.mark.root
@pytest.mark.parametrize("option", ["--read", "--write"])
def test_what_is_the_kernels_is_hidden_wherever_it_is_mounted(sandy: Cli, tmp_path: pathlib.Path, option: str) -> None:
    root = tmp_path / "a chroot"
    places = {"proc": root / "proc", "sysfs": root / "sys"}
    mounted = []
    for place in places.values():
        place.mkdir(parents=True)
    try:
        for kind, place in places.items():
            subprocess.run(["mount", "-t", kind, "-o", "ro", kind, place], check=True)
            mounted.append(place)
        look = f"cd '{root}' && echo there; ls proc sys; cat proc/1/cmdline sys/kernel/uevent_seqnum"
        assert host(look).lines[0] == "there" and len(host(look).lines) > 20
        got = sandy.sh(look, option, root)
        assert got.lines == ["there"] and got.error.count("Permission denied") == 4, got.error
        assert sandy.sh(f"ls '{places['proc']}' | head -n 1", "--read", places["proc"]).ok().lines == ["1"]  # by its own name it is asked for
    finally:
        for place in mounted:
            subprocess.run(["umount", place], check=False)


@pytest.mark.root
@pytest.mark.parametrize("option", ["--read", "--workspace"])
def test_what_the_host_mounts_later_does_not_come_along(sandy: Cli, tmp_path: pathlib.Path, option: str) -> None:
    # With shared propagation, as a host with systemd has it: a mount that comes later below a shown directory would not be read-only there.
    place = tmp_path / "shared"
    place.mkdir()
    mounted = [place]
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=True)
    try:
        subprocess.run(["mount", "--make-shared", place], check=True)
        (place / "below").mkdir()
        process = sandy.start("run", option, place, "--", "sh", "-c", f"echo ready; read line; ls {place}/below; grep -c shared:: /proc/self/mountinfo", stdin=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"  # type: ignore[union-attr]
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=777", "tmpfs", place / "below"], check=True)
        mounted.insert(0, place / "below")
        (place / "below/late").touch()
        out, _ = process.communicate(b"\n", timeout=20)
        assert out == b"0\n"
    finally:
        for path in mounted:
            subprocess.run(["umount", path], check=False)
