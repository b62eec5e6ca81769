"""The man pages and SECURITY.md say what is so: every verb, option, variable and key, and tests that exist."""

from __future__ import annotations

import ast
import json
import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from support import REPOSITORY, USUAL_PATH, Cli, need

MAN = REPOSITORY / "packaging/man"
PAGES = sorted(MAN.glob("*.scd"))
SCHEMA = REPOSITORY / "src/policy/policy.schema.json"
OPTION = re.compile(r"^  (-[^ ]*)", re.MULTILINE)
VERB = re.compile(r"^  ([a-z][a-z-]*)  +\S", re.MULTILINE)


def source(page: str) -> str:
    return (MAN / page).read_text()


def section(text: str, name: str) -> str:
    return re.split(r"^# ", text.partition(f"\n# {name}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def verbs_of(text: str) -> list[str]:
    return VERB.findall(text.partition("Subcommands:\n")[2])


def verbs(sandy: Cli) -> Iterator[tuple[tuple[str, ...], str]]:
    for verb in verbs_of(sandy.call("--help").ok().text):
        text = sandy.call(verb, "--help").ok().text
        below = verbs_of(text)
        for one in below:
            yield (verb, one), sandy.call(verb, one, "--help").ok().text
        if not below:
            yield (verb,), text


def options(text: str) -> set[str]:
    return {name for names in OPTION.findall(text) for name in names.split(",")}


def test_sandy_1_has_every_verb_and_option_and_no_others(sandy: Cli) -> None:
    text = source("sandy.1.scd")
    known, words = options(sandy.call("--help").ok().text), set()
    for verb, usage in verbs(sandy):
        words.add(" ".join(verb))
        known |= options(usage)
    assert set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)\*", section(text, "OPTIONS"))) == known
    listed = {name for line in re.findall(r"^\*[a-z].*$", section(text, "VERBS"), re.MULTILINE) for name in re.findall(r"\*([a-z ]+)\*", line)}
    assert listed == words
    # The synopsis, and all that is written anywhere.
    assert set(re.findall(r"^\*sandy ([a-z]+)", section(text, "SYNOPSIS"), re.MULTILINE)) == {name.split()[0] for name in words}
    assert set(re.findall(r"--[a-z][a-z-]*", text)) <= known | {"--"}


def test_sandy_1_has_the_variables_that_are_read() -> None:
    read = set()
    for path in [*(REPOSITORY / "src").rglob("*.cpp"), *(REPOSITORY / "proxy").rglob("*.cpp")]:
        read |= set(re.findall(r'getenv\("([A-Z_]+)"\)', path.read_text()))
    assert "XDG_CONFIG_HOME" in read
    # SANDY_UNSAFE_TEST_NETWORK is for tests; SANDY_PROGRAMS is Python's.
    assert set(re.findall(r"^\*([A-Z_]+)\*", section(source("sandy.1.scd"), "ENVIRONMENT"), re.MULTILINE)) == read | {"SANDY_PROGRAMS"}
    assert 'VARIABLE = "SANDY_PROGRAMS"' in (REPOSITORY / "python/src/sandy/_programs.py").read_text()


def test_sandy_1_has_the_statuses() -> None:
    statuses = section(source("sandy.1.scd"), "EXIT STATUS")
    constants = dict(re.findall(r"(k[A-Z]\w+) = (\d+)", (REPOSITORY / "src/cli/verbs.h").read_text()))
    assert {constants["kTimedOut"], constants["kCouldNotStart"]} <= set(re.findall(r"^\*(\d+)\*", statuses, re.MULTILINE))
    assert f"{constants['kUsage']} for wrong arguments" in statuses


def keys(schema: dict[str, object], outer: str = "") -> Iterator[tuple[str, dict[str, object]]]:
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)
    for name, value in properties.items():
        yield outer + name, value
        yield from keys(value, f"{outer}{name}.")


def test_sandy_policy_5_has_every_key_and_no_others() -> None:
    schema = dict(keys(json.loads(SCHEMA.read_text())))
    entries = dict(re.findall(r"^\*([a-z_.]+)\* \(([^\n]*)\)\n(?=\t)", section(source("sandy-policy.5.scd"), "KEYS"), re.MULTILINE))
    assert list(entries) == sorted(entries, key=list(schema).index) and set(entries) == set(schema)
    words = {"path": "path", "paths": "array of paths", "texts": "array of", "amount": ("size", "time", "number"), "count": "whole number", "variables": "object"}
    for name, kind in entries.items():
        rule = schema[name]
        wanted = words.get(str(rule.get("$ref", "")).removeprefix("#/$defs/")) or rule.get("type") or ("string" if "enum" in rule else "number")
        assert kind.startswith(tuple(wanted) if isinstance(wanted, (tuple, list)) else wanted), (name, kind)
        assert "default" in kind or "required" in kind or kind == "object", name
        if "enum" in rule:
            described = re.split(r"^\*[a-z]", section(source("sandy-policy.5.scd"), "KEYS").partition(f"*{name}*")[2], maxsplit=1, flags=re.MULTILINE)[0]
            assert all(f'"{word}"' in described + kind for word in rule["enum"]), name  # type: ignore[attr-defined]


def test_the_examples_of_sandy_policy_5_are_valid(sandy: Cli, tmp_path: pathlib.Path) -> None:
    text = section(source("sandy-policy.5.scd"), "KEYS").replace("\\", "")
    found = 0
    for name, entry in re.findall(r"^\*([a-z_.]+)\* \([^\n]*\)\n((?:\t[^\n]*\n|\n(?=\t))+)", text, re.MULTILINE):
        for example in re.findall(r'Example: ("[a-z_]+": .*?)(?:\. Errors|\.?$)', entry, re.MULTILINE):
            # As it stands under the object that it is in, unless it begins with that.
            policy = json.loads("{" + example + "}")
            for outer in reversed(name.split(".")[:-1]):
                if outer not in policy:
                    policy = {outer: policy}
            if name.startswith("network.") and "mode" not in policy["network"]:
                policy["network"]["mode"] = "allowlist"
            if name.startswith("filesystem."):
                (sandy.home / "data/private").mkdir(parents=True, exist_ok=True)
            if name.startswith("limits."):
                policy["limits"]["best_effort"] = True  # whatever this machine can enforce
            if name == "seccomp.file":
                continue  # needs that file
            file = tmp_path / "example.json"
            file.write_text(json.dumps({"version": 1} | policy))
            assert ": valid" in sandy.call("check", file).ok().lines[0], (name, example)
            found += 1
    assert found > 30
    example = source("sandy-policy.5.scd").partition("\n# EXAMPLE\n")[2].split("```")[1]
    (tmp_path / "example.json").write_text(example)
    sandy.call("check", tmp_path / "example.json").ok()


@pytest.mark.parametrize("page", [page.name for page in PAGES])
def test_they_are_made_without_a_warning(page: str, tmp_path: pathlib.Path) -> None:
    for program in ("scdoc", "mandoc", "man"):
        need(shutil.which(program, path=USUAL_PATH), program)
    made = subprocess.run(["scdoc"], stdin=(MAN / page).open("rb"), capture_output=True, check=False)
    assert (made.returncode, made.stderr) == (0, b"")
    file = tmp_path / page.removesuffix(".scd")
    file.write_bytes(made.stdout)
    linted = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", file], capture_output=True, text=True, check=False).stdout
    # scdoc begins paragraphs where mandoc sees none to begin.
    assert [line for line in linted.splitlines() if "skipping paragraph macro" not in line] == []
    shown = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-P", "cat", file], capture_output=True, text=True, check=True,
        env={"PATH": USUAL_PATH, "LC_ALL": "C.UTF-8", "MANWIDTH": "100", "HOME": str(tmp_path)},
    )
    assert shown.stderr == ""
    plain = re.sub(r".\x08|\x1b\[[0-9;]*m", "", shown.stdout)
    assert "NAME" in plain and "SEE ALSO" in plain and "\\" not in plain.replace("\\xNN", "")


def test_pages_name_pages_that_are_there() -> None:
    ours = {page.name.removesuffix(".scd") for page in PAGES}
    for page in PAGES:
        for name, number in re.findall(r"\*(sandy[a-z-]*)\*\((\d)\)", page.read_text()):
            # Of another part of the project, which has its own.
            assert f"{name}.{number}" in ours or name == "sandy-verify"


def test_what_security_says_is_tested() -> None:
    text = (REPOSITORY / "SECURITY.md").read_text()
    rows = [line for line in section(text.replace("\n## ", "\n# "), "Promises").splitlines() if line.startswith("| ") and "tried by" not in line]
    assert len(rows) > 20
    for row in rows:
        references = re.findall(r"`([\w/]+\.py)::(\w+)`", row)
        assert references, f"nothing is said to try this: {row}"
        for file, name in references:
            tree = ast.parse((REPOSITORY / file).read_text())
            functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name]
            assert functions and name.startswith("test_"), f"{file}::{name} is not there"
    assert not re.findall(r"`[\w/]+\.py::\w+`", text.replace("\n".join(rows), ""))


@pytest.mark.parametrize("page", ["SECURITY.md", "CONTRIBUTING.md", "packaging/policies/README.md", "packaging/dependencies/README.md"])
def test_links_lead_somewhere(page: str) -> None:
    path = REPOSITORY / page
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        assert target.startswith("https://") or (path.parent / target).exists(), target
