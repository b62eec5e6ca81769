"""What the packages' descriptions say, against what they are made from. The packages themselves: the suites `wheel` and `deb` of tests/run.sh."""

from __future__ import annotations

import pathlib
import re
import tomllib

from support import REPOSITORY

DEBIAN = REPOSITORY / "packaging/debian"
IN_BUILD_ESSENTIAL = {"build-essential", "g++", "dpkg-dev"}
NOT_FOR_BUILDING = {"lintian"}


def listed(name: str) -> set[frozenset[str]]:
    """The packages of a list in packaging/dependencies, each with its alternatives."""
    lines = (re.sub(r"#.*", "", line) for line in (REPOSITORY / f"packaging/dependencies/{name}.txt").read_text().splitlines())
    return {frozenset(line.replace(" ", "").split("|")) for line in lines if line.strip()}


def field(text: str, name: str) -> set[frozenset[str]]:
    value = re.search(rf"^{name}:((?:.*\n)(?: .*\n)*)", text, re.MULTILINE)
    assert value, name
    return {frozenset(re.sub(r"\(.*?\)|\s", "", part) for part in item.split("|")) for item in value[1].split(",")}


def test_debian_build_dependencies_are_those_of_the_lists() -> None:
    control = {names for names in field((DEBIAN / "control").read_text(), "Build-Depends") if names != {"debhelper-compat"}}
    wanted = {names for names in listed("build") | listed("deb") if not names & (IN_BUILD_ESSENTIAL | NOT_FOR_BUILDING | {"debhelper"})}
    assert control == wanted | {frozenset({"python3"})}


def test_debian_package_depends_on_what_sandboxes_need() -> None:
    stanza = (DEBIAN / "control").read_text().partition("\nPackage: sandy\n")[2].partition("\n\n")[0]
    assert frozenset({"bubblewrap"}) in field(stanza, "Depends") and frozenset({"bubblewrap"}) in listed("run")


def test_one_version() -> None:
    version = (REPOSITORY / "VERSION").read_text().strip()
    assert re.match(r"sandy \(([^)]+)\) ", (DEBIAN / "changelog").read_text())[1] == version
    for name in ("VERSION", "LICENSE"):
        assert (REPOSITORY / "python" / name).resolve() == REPOSITORY / name


def test_each_override_of_lintian_has_its_reason() -> None:
    files = [path for path in DEBIAN.rglob("*lintian-overrides") if path.is_file()]
    assert files
    for path in files:
        before = ""
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                tag = line.split()[1]
                assert before.startswith("# ") or tag in before, f"{path.name}: no reason above: {line}"
            before = line


def test_the_sdist_names_all_that_is_compiled() -> None:
    settings = tomllib.loads((REPOSITORY / "python/pyproject.toml").read_text())["tool"]["scikit-build"]
    included = settings["sdist"]["force-include"]
    script = (REPOSITORY / "CMakeLists.txt").read_text()
    folders = {pathlib.Path(path).parts[0] for path in re.findall(r"(?:add_subdirectory|include)\(([\w./-]+)", script)} - {"GNUInstallDirs", "tests"}
    assert {"src", "proxy", "cmake"} <= folders and folders <= {source.removeprefix("../") for source in included}
    assert all(target == f"programs/{source.removeprefix('../')}" for source, target in included.items())
