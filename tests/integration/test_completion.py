"""Completion in bash, zsh and fish: it has what `--help` has, and asks sandy for names when it is asked."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from shells import Bash, Fish, Zsh
from support import USUAL_PATH, Cli, need

SHELLS = {"bash": Bash, "zsh": Zsh, "fish": Fish}
VERB = re.compile(r"^  ([a-z][a-z-]*)  +\S", re.MULTILINE)
OPTION = re.compile(r"^  (-[^ ]*)", re.MULTILINE)

Completing = Bash | Zsh | Fish


def environment(sandy: Cli) -> dict[str, str]:
    return {**sandy.env, "PATH": f"{sandy.programs}:{USUAL_PATH}", "LC_ALL": "C.UTF-8"}


@pytest.fixture(params=list(SHELLS))
def shell(request: pytest.FixtureRequest, sandy: Cli) -> Iterator[Completing]:
    made = SHELLS[request.param](environment(sandy), sandy.workspace)
    yield made
    made.close()


def help_of(sandy: Cli, *verb: str) -> str:
    return sandy.call(*verb, "--help").ok().text


def verbs_of(text: str) -> list[str]:
    return VERB.findall(text.partition("Subcommands:\n")[2])


def options_of(text: str) -> set[str]:
    return {name for names in OPTION.findall(text) for name in names.split(",")}


def all_verbs(sandy: Cli) -> Iterator[tuple[str, ...]]:
    for verb in verbs_of(sandy.call("--help").ok().text):
        yield (verb,)
        yield from ((verb, below) for below in verbs_of(help_of(sandy, verb)))


def test_every_verb_and_every_option(shell: Completing, sandy: Cli) -> None:
    top = sandy.call("--help").ok().text
    assert {"run", "exec", "policy", "completion"} <= set(verbs_of(top))
    assert shell.offers("sandy ") == set(verbs_of(top))
    assert shell.offers("sandy --") == {name for name in options_of(top) if name.startswith("--")}
    seen = 0
    for verb in all_verbs(sandy):
        text, line = help_of(sandy, *verb), f"sandy {' '.join(verb)} "
        if below := verbs_of(text):
            assert shell.offers(line) == set(below)
        wanted = options_of(text)
        # fish lists short options only where no long one is the same.
        offered = shell.offers(line + "-") | shell.offers(line + "--")
        assert offered >= {name for name in wanted if name.startswith("--")} and offered <= wanted, (verb, offered ^ wanted)
        seen += len(wanted)
    assert seen > 150


def test_what_serves_programs_alone_is_not_offered(shell: Completing) -> None:
    assert "serve" not in shell.offers("sandy ") | shell.offers("sandy se")


def test_values(shell: Completing, sandy: Cli) -> None:
    (sandy.workspace / "data").mkdir()
    (sandy.workspace / "data.json").write_text("{}")
    shipped = {"git-clone-and-build", "no-network", "node-web", "python-data"}
    assert shell.offers("sandy run --tty ") == {"auto", "always", "never"}
    assert shell.offers("sandy run --tty a") == {"auto", "always"}
    assert shell.offers("sandy completion ") == {"bash", "zsh", "fish"}
    assert shell.offers("sandy policy show ") == shipped
    assert shell.offers("sandy run --policy ") == shipped | {"data", "data.json"}
    assert shell.offers("sandy shell -p no") == {"no-network", "node-web"}
    assert shell.offers("sandy plan --memory 1G --seccomp ") == {"default", "strict", "data", "data.json"}
    assert shell.offers("sandy run --read d") == {"data", "data.json"}
    assert shell.offers("sandy run --workspace ") == {"data"}
    assert shell.offers("sandy check d") == {"data", "data.json"}
    # What has no values that could be known offers none, and no files either.
    assert shell.offers("sandy run --memory ") == set()
    # (zsh offers options where there is nothing else.)
    assert {word for word in shell.offers("sandy doctor ") if not word.startswith("-")} == set()
    # A value is no verb's argument, and the next word no value.
    assert "--policy" in shell.offers("sandy run --memory 2G --po")
    assert "--policy" in shell.offers("sandy run --memory=2G --po")


def test_values_behind_an_equals_sign(shell: Completing) -> None:
    prefix = "--policy=" if isinstance(shell, Fish) else ""
    assert shell.offers("sandy run --policy=no") == {f"{prefix}no-network", f"{prefix}node-web"}


def test_kept_sandboxes(shell: Completing, sandy: Cli) -> None:
    assert shell.offers("sandy exec ") == set()
    make = ("create", "--private-workspace")
    named, gone = (sandy.call(*make, "--name", name).ok().lines[0] for name in ("build", "gone"))
    nameless = sandy.call(*make).ok().lines[0]
    try:
        sandy.call("stop", "gone").ok()
        assert set(sandy.call("ps", "--names").ok().lines) == {"build", nameless}
        for verb in ("exec", "exec -it", "attach", "logs -f", "stop", "stats"):
            assert shell.offers(f"sandy {verb} ") == {"build", nameless}, verb
        assert shell.offers("sandy rm ") == {"build", "gone", nameless}
        assert shell.offers("sandy rm build ") >= {"gone", nameless}
        assert shell.offers("sandy create --resume ") == {"build", "gone", nameless}
        # By its id too, once that is typed.
        assert shell.offers(f"sandy logs {named[:-2]}") == {named}
        assert nameless not in shell.offers("sandy logs build ")
    finally:
        sandy.call("rm", "--force", named, gone, nameless)


@pytest.mark.parametrize("before", ["run ", "run --memory 1G -- ", "plan -- ", "exec build ", "exec -it build -- "])
def test_a_commands_own_words(shell: Completing, sandy: Cli, before: str) -> None:
    (sandy.workspace / "folder").mkdir()
    line = f"sandy {before}"
    assert "setpriv" in shell.offers(line + "setpri")
    assert shell.offers(line + "ls fol") == {"folder"}
    # The command's options are its own.
    assert "--policy" not in shell.offers(line + "setpriv --")
    assert "--policy" not in shell.offers(line + "ls --po")


def test_bash_with_its_completion_package(sandy: Cli) -> None:
    package = pathlib.Path("/usr/share/bash-completion/bash_completion")
    need(package.exists(), "the package bash-completion")
    bash = Bash(environment(sandy), sandy.workspace)
    try:
        bash.type(f"source {package}\n")
        # The command's options, from its own completion.
        assert "--reuid" in bash.offers("sandy run --memory 1G -- setpriv --re")
        assert bash.offers("sandy run --tty ") == {"auto", "always", "never"}
    finally:
        bash.close()


@pytest.mark.parametrize("kind", ["bash", "zsh"])
def test_the_key_does_it(kind: str, sandy: Cli) -> None:
    shell = SHELLS[kind](environment(sandy), sandy.workspace)
    assert not isinstance(shell, Fish)
    try:
        assert '"mode": "none"' in shell.type("sandy pol\tsho\tno-net\t\n")
    finally:
        shell.close()


@pytest.mark.parametrize("kind", list(SHELLS))
def test_the_scripts_are_well_formed(kind: str, sandy: Cli, tmp_path: pathlib.Path) -> None:
    need(shutil.which(kind, path=USUAL_PATH), kind)
    script = tmp_path / ("_sandy" if kind == "zsh" else "sandy")
    script.write_bytes(sandy.call("completion", kind).ok().out)
    checked = subprocess.run([kind, "-n", script], env=environment(sandy), capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")
    assert sandy.call("completion", kind).out == script.read_bytes()
    assert str(sandy.programs).encode() not in script.read_bytes() and str(os.getcwd()).encode() not in script.read_bytes()


def test_zsh_finds_it_in_its_path(sandy: Cli, tmp_path: pathlib.Path) -> None:
    functions = tmp_path / "functions"
    functions.mkdir()
    (functions / "_sandy").write_bytes(sandy.call("completion", "zsh").ok().out)
    shell = Zsh(environment(sandy), sandy.workspace)
    try:
        shell.type(f"unfunction _sandy; fpath=({functions} $fpath); compinit -u -D\n")
        assert {"run", "plan", "policy"} <= shell.offers("sandy ")
        assert shell.offers("sandy run --tty a") == {"auto", "always"}
    finally:
        shell.close()


def test_another_shell_is_refused(sandy: Cli) -> None:
    got = sandy.call("completion", "tcsh")
    assert got.status == 2 and not got.out and "tcsh" in got.error
