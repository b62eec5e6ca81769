"""The terminal agent dcode's way to a sandbox: by the entry point, and with its own code where it is installed."""

from __future__ import annotations

import importlib
import importlib.metadata
import pathlib
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from deepagents_sandbox import Provider, Sandbox, SandboxError

GROUP = "deepagents_code.sandbox_providers"
PYPROJECT = pathlib.Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture
def published(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the project's entry points found as if it were installed, in a test of its sources too."""
    points = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"][GROUP]
    if any(point.name in points for point in importlib.metadata.entry_points(group=GROUP)):
        return
    directory = tmp_path / "deepagents_sandbox-0.0.dist-info"
    directory.mkdir()
    (directory / "METADATA").write_text("Metadata-Version: 2.1\nName: deepagents-sandbox\nVersion: 0.0\n")
    (directory / "entry_points.txt").write_text(f"[{GROUP}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items()))
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.fixture
def made() -> Iterator[list[str]]:
    """Removes what a test has made."""
    before = {info.id for info in Sandbox.list()}
    ids: list[str] = []
    yield ids
    for info in Sandbox.list():
        if info.id not in before and info.id in ids:
            Sandbox.discard(info.id)


def test_it_comes_back_from_wherever(made: list[str]) -> None:
    provider = Provider()
    backend = provider.get_or_create(open_files=77)
    made.append(backend.id)
    backend.execute("echo 1 > f")
    backend.close()
    with provider.get_or_create(sandbox_id=made[0]) as again:
        assert again.execute("cat f; ulimit -n").output == "1\n77\n"
        again.stop()
    with provider.get_or_create(sandbox_id=made[0]) as resumed:
        assert (resumed.id, resumed.execute("cat f; ulimit -n").output) == (made[0], "1\n77\n")
    provider.delete(sandbox_id=made[0])
    assert made[0] not in {info.id for info in Sandbox.list()}


@pytest.mark.usefixtures("published")
def test_the_entry_point_names_it() -> None:
    (point,) = importlib.metadata.entry_points(group=GROUP, name="sandy")
    assert point.load() is Provider


async def test_what_is_not_there(made: list[str]) -> None:
    expected: type[Exception] = SandboxError
    if importlib.util.find_spec("deepagents_code"):
        expected = importlib.import_module("deepagents_code.integrations.sandbox_provider").SandboxNotFoundError
    provider = Provider()
    for call in (lambda: provider.get_or_create(sandbox_id="nope"), lambda: provider.delete(sandbox_id="nope")):
        with pytest.raises(expected, match="'nope'"):
            call()
    with pytest.raises(expected, match="'nope'"):
        await provider.adelete(sandbox_id="nope")
    backend = await provider.aget_or_create()
    made.append(backend.id)
    assert backend.kept
    await provider.adelete(sandbox_id=backend.id)


@pytest.mark.usefixtures("published")
def test_dcodes_own_code_makes_reuses_and_deletes(
    made: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    pytest.importorskip("deepagents_code")
    monkeypatch.setenv("HOME", str(tmp_path))  # its configuration
    factory: Any = importlib.import_module("deepagents_code.integrations.sandbox_factory")
    registry_module: Any = importlib.import_module("deepagents_code.integrations.sandbox_registry")
    registry = registry_module.SandboxRegistry.load(tmp_path / "config.toml")
    assert "sandy" in registry.available_providers()
    metadata = registry.get_metadata("sandy")
    assert (metadata.name, metadata.working_dir, metadata.supports_sandbox_id, metadata.supports_snapshot_name) == (
        "sandy",
        "/workspace",
        True,
        False,
    )
    assert metadata.install.command(in_app=False) == "dcode install deepagents-sandbox --package"
    assert factory.get_default_working_dir("sandy") == "/workspace"
    setup = tmp_path / "setup.sh"
    setup.write_text("echo made by ${SETUP_WORD} > made\n")
    monkeypatch.setenv("SETUP_WORD", "dcode")
    with factory.create_sandbox("sandy", setup_script_path=str(setup), params={"open_files": 77, "idle_timeout": 60}) as backend:
        made.append(backend.id)
        assert isinstance(backend, Sandbox)
        with factory.create_sandbox("sandy", sandbox_id=backend.id) as again:
            assert again.execute("cat made; ulimit -n").output == "made by dcode\n77\n"
        assert backend.execute("echo still here").output == "still here\n"  # not deleted by who reused it
    assert made[0] not in {info.id for info in Sandbox.list()}
    assert "deepagents_code" in sys.modules
