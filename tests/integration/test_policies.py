"""Policies that have names: what each of those that come with Sandy is for, works with it; and where a name is looked for, and whom it is taken from."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys

import pytest
from rig import Certificates, Rig, make_certificates
from rig.net import Net
from support import REPOSITORY, USUAL_PATH, Cli, finish, have_cgroups, host, need

pytest_plugins = ["rig.fixtures"]

SHIPPED = ["git-clone-and-build", "no-network", "node-web", "python-data"]
STRICT = '{"version": 1, "description": "mine", "environment": {"set": {"WHOSE": "mine"}}}'


@pytest.fixture(scope="module")
def rig_certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("github"), ["a.example", "b.example", "github.com"])


@pytest.fixture
def own(home: pathlib.Path) -> pathlib.Path:
    """The caller's own policies."""
    directory = home / ".config/sandy/policies"
    directory.mkdir(parents=True)
    return directory


def there(program: str) -> None:
    need(shutil.which(program, path=USUAL_PATH), program)


# What comes with Sandy.


def test_they_are_listed_shown_and_valid(sandy: Cli, programs: pathlib.Path) -> None:
    assert sandy.call("policy", "list", "--quiet").ok().lines == SHIPPED
    listed = json.loads(sandy.call("policy", "list", "--json").ok().out)
    table = sandy.call("policy", "list").ok().text
    for row in listed:
        assert row["file"] == str(programs / "policies" / f"{row['name']}.json") and "error" not in row
        text = (REPOSITORY / "packaging/policies" / f"{row['name']}.json").read_text()
        assert row["description"] == json.loads(text)["description"]
        assert row["description"] in table and row["file"] in table
        assert sandy.call("policy", "show", row["name"]).ok().text == text
        checked = sandy.call("check", row["name"]).ok().text
        assert checked.startswith(f"{row['name']}: valid\n")


def test_the_readme_has_each() -> None:
    text = (REPOSITORY / "packaging/policies/README.md").read_text()
    assert re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE) == ["python-data", "node-web", "git-clone-and-build", "no-network"]


@pytest.mark.parametrize("name", SHIPPED)
def test_limits_can_be_added_to_each(sandy: Cli, name: str) -> None:
    # None sets what a flag then could not change, nor best_effort, which would make a limit set by hand one that may be left out.
    limits = json.loads((REPOSITORY / "packaging/policies" / f"{name}.json").read_text()).get("limits", {})
    assert not limits.keys() & {"memory", "swap", "cpus", "pids", "io_read", "io_write", "wall_time", "best_effort"}
    got = sandy.run("true", options=["--policy", name, "--memory", "1G"])
    if have_cgroups():
        assert got.status == 0, got
    else:
        assert got.status == 125 and '--memory: "1G": needs a control group' in got.error, got
    assert sandy.run("true", options=["--policy", name, "--open-files", "512"]).status == 0


def test_python_data(sandy: Cli, ws: pathlib.Path) -> None:
    (ws / "work.py").write_text("""
import collections, csv, json, os, random, sqlite3, sys, tempfile
random.seed(1)
with open("raw.csv", "w", newline="") as file:
    out = csv.writer(file)
    out.writerow(["city", "amount"])
    out.writerows([random.choice("abc"), random.randrange(100)] for _ in range(20_000))
sums = collections.Counter()
with open("raw.csv", newline="") as file:
    for row in csv.DictReader(file):
        sums[row["city"]] += int(row["amount"])
with tempfile.NamedTemporaryFile(suffix=".db") as spill:
    base = sqlite3.connect(spill.name)
    base.execute("create table sums (city, amount)")
    base.executemany("insert into sums values (?, ?)", sums.items())
    base.commit()
    assert base.execute("select sum(amount) from sums").fetchone()[0] == sum(sums.values())
json.dump(dict(sums), open("sums.json", "w"))
import helper
print(os.environ["MPLBACKEND"], os.environ["MPLCONFIGDIR"], sys.dont_write_bytecode)
""")
    (ws / "helper.py").write_text("")
    outcome = ws.parent / "outcome.json"
    got = sandy.run("python3", "work.py", options=["-p", "python-data", "--json", outcome]).ok()
    assert got.text == "Agg /tmp/matplotlib True\n"
    assert sorted(json.loads((ws / "sums.json").read_text())) == ["a", "b", "c"]
    assert not (ws / "__pycache__").exists()
    # Limits are in place: the file's size on each machine, those of control groups where there are any, and else it is said.
    assert sandy.sh("ulimit -f", "-p", "python-data").ok().text.strip() == str(16 * 1024 * 1024 * 1024 // 512)
    assert (json.loads(outcome.read_text())["degraded"] == []) == have_cgroups()
    # No network, until a name is given to it.
    assert sandy.sh("ls /sys/class/net; cat /proc/net/dev | tail -n +3 | cut -d: -f1", "-p", "python-data").text.split()[-1:] == ["lo"]


def test_python_data_gets_an_index_by_a_flag(net: Net, rig: Rig) -> None:
    rig.put("/simple/x/", "an index")
    fetch = "curl -sS --max-time 10 --cacert ca.pem https://{}.example/simple/x/"
    assert net.sh(fetch.format("a"), options=["-p", "python-data"]).status != 0
    assert net.sh(fetch.format("a"), options=["-p", "python-data"], allow=["a.example"]).ok().text == "an index"
    assert net.sh(fetch.format("b"), options=["-p", "python-data"], allow=["a.example"]).status != 0
    rig.assert_untouched("b", names=["a.example"])


def test_node_web(sandy: Cli, ws: pathlib.Path) -> None:
    there("node")
    (ws / "server.js").write_text("""
require("http").createServer((request, response) => response.end("from " + request.url))
  .listen(process.env.PORT, "127.0.0.1", () => console.log("listening"));
""")
    process = sandy.start("run", "--policy", "node-web", "--", "node", "server.js")
    try:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"listening\n"
        said = re.fullmatch(r"sandy: port 3000 of the sandbox is 127\.0\.0\.1:(\d+)\n", process.stderr.readline().decode())
        assert said
        with socket.create_connection(("127.0.0.1", int(said[1])), 10) as connection:
            connection.sendall(b"GET /page HTTP/1.0\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"from /page")
    finally:
        process.terminate()
        finish(process)


def test_node_web_reaches_nothing_by_itself(net: Net, rig: Rig) -> None:
    there("node")
    fetch = "fetch('http://{}.example/').then(r => r.text()).then(t => console.log('got ' + t.trim()), () => console.log('refused'))"
    got = net.run("node", "-e", fetch.format("a"), options=["-p", "node-web"]).ok()
    assert got.text == "refused\n" and "a.example" in got.denied
    rig.assert_untouched("a", "b", names=[])
    assert net.run("node", "-e", fetch.format("a"), options=["-p", "node-web"], allow=["a.example"]).ok().text == "got hello from a\n"


def test_git_clone_and_build(net: Net, rig: Rig, tmp_path: pathlib.Path) -> None:
    for program in ("git", "make", "gcc"):
        there(program)
    source = tmp_path / "one"
    source.mkdir()
    (source / "hello.c").write_text('#include <stdio.h>\nint main(void) { puts("built"); }\n')
    (source / "Makefile").write_text("hello: hello.c\n\tgcc -O1 -o $@ $<\n")
    identity = "-c user.name=n -c user.email=e@a.example"
    host(
        f"git init -q -b main && git add -A && git {identity} commit -qm first && git clone -q --bare . ../one.git && cd ../one.git && git update-server-info",
        cwd=source, env={"HOME": str(tmp_path)},
    ).ok()
    rig.put_tree("/someone/one.git", tmp_path / "one.git")
    rig.dns.set("github.com", "127.77.0.1")
    build = "export GIT_SSL_CAINFO=$PWD/ca.pem; git clone -q https://{}/someone/one.git got && make -sC got && got/hello"
    assert net.sh(build.format("github.com"), options=["-p", "git-clone-and-build"], timeout=120).ok().text == "built\n"
    # Another host is none, and plain HTTP is not what it is for.
    got = net.sh("rm -rf got; " + build.format("b.example"), options=["-p", "git-clone-and-build"])
    assert got.status != 0 and "b.example" in got.denied
    got = net.sh("curl -sS --max-time 10 http://github.com/", options=["-p", "git-clone-and-build"])
    assert got.status != 0 and got.denied == {"github.com:80"}
    rig.assert_untouched("b", names=["github.com"])


def test_no_network(sandy: Cli) -> None:
    there("curl")
    got = sandy.sh("cut -d: -f1 /proc/net/dev | tail -n +3; curl -sS --max-time 5 http://198.18.0.1:3128/; echo $?", "-p", "no-network").ok()
    assert got.lines[0].strip() == "lo" and got.lines[-1] == "7"
    for flag, value in (("--allow-domain", "a.example"), ("--allow-private", "10.0.0.1:80"), ("--publish", "3000")):
        refused = sandy.run("true", options=["-p", "no-network", flag, value])
        assert refused.status == 125 and f'{flag} {value}: contradicts the policy file\'s network.mode: "none"' in refused.error, refused


# Names, and places.


def test_the_callers_own_goes_first(sandy: Cli, own: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (own / "python-data.json").write_text(STRICT)
    (own / "mine_2.json").write_text(STRICT)
    (own / "Not-A-Name.json").write_text(STRICT)
    (own / "notes.txt").write_text("")
    assert sandy.call("policy", "list", "-q").ok().lines == sorted([*SHIPPED, "mine_2"])
    assert sandy.sh("echo $WHOSE", "-p", "python-data").ok().text == "mine\n"
    # Where XDG_CONFIG_HOME says; a relative one says nothing (XDG Base Directory Specification).
    elsewhere = tmp_path / "config/sandy/policies"
    elsewhere.mkdir(parents=True)
    (elsewhere / "other.json").write_text(STRICT)
    assert sandy.call("policy", "list", "-q", env={"XDG_CONFIG_HOME": str(tmp_path / "config")}).ok().lines == sorted([*SHIPPED, "other"])
    assert "mine_2" in sandy.call("policy", "list", "-q", env={"XDG_CONFIG_HOME": "config"}).ok().lines


def test_a_name_is_never_a_file_here(sandy: Cli, ws: pathlib.Path, home: pathlib.Path) -> None:
    (ws / "loose").write_text('{"version": 1}')
    got = sandy.run("true", options=["-p", "loose"])
    places = [home / ".config/sandy/policies", pathlib.Path("/etc/sandy/policies"), sandy.programs / "policies"]
    assert got.status == 125
    assert 'policy "loose": there is no loose.json in ' + ", ".join(map(str, places)) in got.error
    assert "the current directory is not taken for it" in got.error
    assert "hint: sandy policy list shows which there are; a file is named by a path: ./loose" in got.error
    assert sandy.run("true", options=["-p", "./loose"]).status == 0
    # And where there is no such file, none is spoken of.
    got = sandy.call("check", "tight")
    assert got.status == 1 and 'policy "tight": there is no tight.json' in got.error and "current directory" not in got.error
    assert sandy.call("policy", "show", "../../etc/passwd").status == 1
    assert "is no name of a policy" in sandy.call("policy", "show", "a" * 65).error


def test_a_policy_that_is_not_valid_is_named(sandy: Cli, own: pathlib.Path) -> None:
    (own / "broken.json").write_text('{"version": 1, "netwrk": {}}')
    got = sandy.run("true", options=["-p", "broken"])
    assert got.status == 125 and "broken: netwrk: unknown key" in got.error and "network" in got.error
    assert sandy.call("policy", "show", "broken").status == 1
    [row] = [row for row in json.loads(sandy.call("policy", "list", "--json").ok().out) if row["name"] == "broken"]
    assert "unknown key" in row["error"]
    assert "can't be used: netwrk: unknown key" in sandy.call("policy", "list").ok().text
    for text, why in (("x" * 1025, "longer than 1024 bytes"), ("two\nlines", "can't be shown"), ("\x1b[31m", "can't be shown")):
        (own / "broken.json").write_text(json.dumps({"version": 1, "description": text}))
        got = sandy.call("check", "broken")
        assert got.status == 1 and "description" in got.error and why in got.error and "\x1b" not in got.error


@pytest.mark.parametrize("what", ["the file", "the directory", "a directory above", "a link", "a link in a shared directory", "a FIFO", "too large"])
def test_what_others_can_write_is_an_error(sandy: Cli, own: pathlib.Path, tmp_path: pathlib.Path, what: str) -> None:
    file = own / "python-data.json"
    file.write_text(STRICT)
    assert sandy.sh("echo $WHOSE", "-p", "python-data").ok().text == "mine\n"
    if what == "the file":
        file.chmod(0o666)
    elif what == "the directory":
        own.chmod(0o777)
    elif what == "a directory above":
        own.parent.parent.chmod(0o777)
    elif what == "a link":
        file.rename(own / "real")
        file.symlink_to("real")
    elif what == "a link in a shared directory":
        shared = tmp_path / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        own.rename(tmp_path / "real")
        (shared / "link").symlink_to(tmp_path / "real")
        own.symlink_to(shared / "link")
    elif what == "a FIFO":
        file.unlink()
        os.mkfifo(file)
    else:
        file.write_text(STRICT + " " * 300_000)
    # Nor is it passed over, for the one that comes with Sandy.
    got = sandy.sh("echo $WHOSE", "-p", "python-data", timeout=10)
    assert got.status == 125 and "hint: " in got.error and not got.out, got
    assert {"the file": "can be written to by others", "the directory": "can be written to by others", "a directory above": "can be written to by others",
            "a link": "is a symbolic link", "a link in a shared directory": "can be written to by others", "a FIFO": "is no regular file", "too large": "larger than 256 KiB"}[what] in got.error


@pytest.mark.root
def test_another_users_policies_are_an_error(sandy: Cli, own: pathlib.Path) -> None:
    (own / "mine.json").write_text(STRICT)
    assert sandy.call("policy", "show", "mine").ok().text == STRICT
    os.chown(own / "mine.json", 65533, 65533)
    got = sandy.call("policy", "show", "mine")
    assert got.status == 1 and "belongs to user 65533" in got.error


def test_programs_in_a_directory_of_others_bring_no_policies(home: pathlib.Path, ws: pathlib.Path, programs: pathlib.Path, open_directory: pathlib.Path) -> None:
    shutil.copytree(programs, open_directory / "bin")
    moved = Cli(open_directory / "bin", home, ws)
    assert moved.call("policy", "list", "-q").ok().lines == SHIPPED
    (open_directory / "bin/policies").chmod(0o777)
    got = moved.call("policy", "list", "-q")
    assert got.status == 1 and "can be written to by others" in got.error and not got.out


@pytest.mark.parametrize("layout", ["bin", "libexec/sandy"])
def test_installed_below_a_prefix(home: pathlib.Path, ws: pathlib.Path, programs: pathlib.Path, open_directory: pathlib.Path, layout: str) -> None:
    (open_directory / layout).parent.mkdir(exist_ok=True)
    shutil.copytree(programs, open_directory / layout, ignore=shutil.ignore_patterns("policies"))
    shutil.copytree(programs / "policies", open_directory / "share/sandy/policies")
    installed = Cli(open_directory / layout, home, ws)
    assert installed.call("policy", "list", "-q").ok().lines == SHIPPED
    listed = json.loads(installed.call("policy", "list", "--json").ok().out)
    assert listed[0]["file"] == str(open_directory / "share/sandy/policies/git-clone-and-build.json")


def test_commands_can_not_make_policies(sandy: Cli, home: pathlib.Path) -> None:
    config = home / ".config"
    config.mkdir()
    plant = f"mkdir -p {config}/sandy/policies && echo '{{\"version\": 1}}' > {config}/sandy/policies/no-network.json"
    # Where it is not there yet it could be made: refused, with what helps.
    for options in (["--write", config], ["--workspace", config]):
        got = sandy.sh(plant, *options)
        assert got.status == 125 and "--policy NAME finds" in got.error and "hint: make that directory first" in got.error, got
    assert not (config / "sandy").exists()
    policies = config / "sandy/policies"
    policies.mkdir(parents=True)
    (policies / "mine.json").write_text(STRICT)
    script = f"{plant}; rm -f {policies}/mine.json; mv {config}/sandy {config}/other; rm -rf {config}/sandy; ln -s /tmp {config}/sandy; echo free > {config}/free"
    for options in (["--write", config], ["--workspace", config], ["--write", policies.parent], ["--private-workspace", "--write", config]):
        assert "no-network.json: Read-only file system" in sandy.sh(script, *options).error
        assert [path.name for path in policies.iterdir()] == ["mine.json"] and (policies / "mine.json").read_text() == STRICT
    assert (config / "free").read_text() == "free\n"
    # The control: a rule that names the directory is consent.
    sandy.sh(plant, "--write", policies).ok()
    assert (policies / "no-network.json").exists()


def test_commands_can_not_change_those_of_a_prefix_in_the_workspace(home: pathlib.Path, ws: pathlib.Path, programs: pathlib.Path) -> None:
    prefix = ws / ".venv"
    shutil.copytree(programs, prefix / "libexec/sandy", ignore=shutil.ignore_patterns("policies"))
    shutil.copytree(programs / "policies", prefix / "share/sandy/policies")
    installed = Cli(prefix / "libexec/sandy", home, ws)
    for script in (f"echo evil > {prefix}/share/sandy/policies/no-network.json", f"mv {prefix}/share {prefix}/s", f"rm {prefix}/share/sandy/policies/*"):
        assert installed.sh(f"{script} 2>&1", "--workspace", ws).status != 0
    assert installed.call("policy", "list", "-q").ok().lines == SHIPPED
    # Programs in bin, with the others in libexec.
    (prefix / "bin").mkdir()
    (prefix / "libexec/sandy/sandy").rename(prefix / "bin/sandy")
    moved = Cli(prefix / "bin", home, ws)
    for script in (f"echo evil > {prefix}/libexec/sandy/new", f"mv {prefix}/libexec {prefix}/l"):
        assert moved.sh(f"{script} 2>&1", "--workspace", ws).status not in (0, 125)


@pytest.mark.parametrize("what", ["the policy", "its directory", "the filter"])
def test_links_that_commands_can_change_lead_to_nothing_that_decides(sandy: Cli, ws: pathlib.Path, own: pathlib.Path, tmp_path: pathlib.Path, what: str) -> None:
    real = tmp_path / "real"
    real.mkdir()
    options = ["--workspace", str(ws)]
    if what == "the policy":
        (real / "it.json").write_text(STRICT)
        (ws / "it.json").symlink_to(real / "it.json")
        options += ["-p", str(ws / "it.json")]
    elif what == "its directory":
        own.rename(real / "policies")
        (ws / "current").symlink_to(real)
        own.symlink_to(ws / "current/policies")
    else:
        (real / "it.json").write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []}))
        (ws / "it.json").symlink_to(real / "it.json")
        options += ["--seccomp", str(ws / "it.json")]
    got = sandy.sh("true", *options)
    assert got.status == 125 and "is a symbolic link that commands can change" in got.error and "hint: " in got.error, got


def test_the_file_of_a_name_is_not_writable_either(sandy: Cli, own: pathlib.Path) -> None:
    (own / "mine.json").write_text(STRICT)
    got = sandy.sh(f"echo '{{}}' > {own}/mine.json", "-p", "mine", "--write", own.parent)
    assert got.status != 0 and (own / "mine.json").read_text() == STRICT


def test_python_has_the_same(programs: pathlib.Path, home: pathlib.Path, own: pathlib.Path, tmp_path: pathlib.Path, api: type) -> None:
    (own / "mine.json").write_text(STRICT)
    here = tmp_path / "here"
    here.mkdir()
    (here / "loose").write_text('{"version": 1, "environment": {"set": {"WHOSE": "loose"}}}')
    script = """
import pathlib
from sandy import PolicyError, Sandbox
for policy in ("mine", "./loose", pathlib.Path("loose"), "python-data"):
    with Sandbox(policy=policy) as sandbox:
        print(sandbox.execute("echo $WHOSE $MPLBACKEND").output.strip())
with Sandbox(policy="node-web", publish=["8000"]) as sandbox:
    print(sorted(sandbox.published))
with Sandbox(policy="mine", keep=True) as sandbox:
    print(sandbox.execute("echo kept $WHOSE").output.strip())
    sandbox.remove()
for policy in ("loose", "no-network"):
    try:
        Sandbox(policy=policy, allow_domains=["a.example"])
    except (PolicyError, ValueError) as error:
        print(type(error).__name__, error)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={"HOME": str(home), "PATH": USUAL_PATH, "SANDY_PROGRAMS": str(programs), "PYTHONPATH": str(REPOSITORY / "python/src")},
    )
    lines = finish(process).ok().lines
    assert lines[:6] == ["mine", "loose", "loose", "Agg", "[3000, 8000]", "kept mine"]
    assert lines[6].startswith("PolicyError ") and 'policy "loose": there is no loose.json in ' in lines[6] and "not taken for it" in lines[6]
    assert any(line.startswith("ValueError ") and "contradicts the policy's network.mode" in line for line in lines[7:])


def test_a_kept_sandbox_has_the_policy_that_its_name_stood_for(sandy: Cli, own: pathlib.Path) -> None:
    (own / "mine.json").write_text(STRICT)
    made = sandy.call("create", "-p", "mine", "--private-workspace", "--name", "k").ok()
    try:
        assert sandy.call("exec", "k", "--", "sh", "-c", "echo $WHOSE").ok().text == "mine\n"
        sandy.call("stop", "k").ok()
        (own / "mine.json").unlink()
        assert sandy.call("create", "--resume", "k").ok().text == made.text
        assert sandy.call("exec", "k", "--", "sh", "-c", "echo $WHOSE").ok().text == "mine\n"
    finally:
        sandy.call("rm", "--force", "k")
