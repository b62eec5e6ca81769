"""The examples of the docstrings and READMEs start, and do what they say."""

from __future__ import annotations

import doctest
import importlib
import pathlib
import re
from collections.abc import Callable
from typing import Any

import deepagents
import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage


class FakeModel(GenericFakeChatModel):
    def bind_tools(self, *args: Any, **kwargs: Any) -> Any:
        return self


HERE = pathlib.Path(__file__)
READMES = [HERE.parents[2] / "README.md", HERE.parents[3] / "README.md"]


@pytest.fixture
def project(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A current directory with the directories that the examples name, and a model that needs no key."""
    for name in ("project", "my-project"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Makefile").write_text("all:\n")
    monkeypatch.chdir(tmp_path)
    make: Callable[..., Any] = deepagents.create_deep_agent

    def create(*, model: str, backend: Any) -> Any:
        assert model.startswith("anthropic:")
        return make(model=FakeModel(messages=iter([AIMessage(content="done")])), backend=backend)

    monkeypatch.setattr(deepagents, "create_deep_agent", create)
    return tmp_path


@pytest.mark.parametrize(
    "module",
    [
        "sandy",
        "sandy._sandbox",
        "sandy._core",
        "sandy._errors",
        "sandy._pool",
        "sandy._shell",
        "sandy._spawned",
        "deepagents_sandbox",
        "deepagents_sandbox._sandbox",
    ],
)
def test_docstrings(module: str, project: pathlib.Path) -> None:
    result = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
    if module not in ("sandy._core", "sandy._errors"):
        assert result.attempted > 0


def blocks() -> list[Any]:
    found = []
    for readme in READMES:
        for number, text in enumerate(re.findall(r"^```python\n(.*?)^```$", readme.read_text(), re.MULTILINE | re.DOTALL)):
            found.append(pytest.param(text, id=f"{readme.parent.name}-{number}"))
    return found


@pytest.mark.parametrize("text", blocks())
def test_readmes(text: str, project: pathlib.Path) -> None:
    exec(compile(text, "README.md", "exec"), {"__name__": "example"})
