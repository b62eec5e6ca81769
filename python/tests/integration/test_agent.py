"""A whole Deep Agents agent over the backend, with a model that follows a script."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

from deepagents_sandbox import Sandbox


class ScriptedModel(GenericFakeChatModel):
    """Calls the tools of its script, one after the other."""

    def bind_tools(self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | Any], **kwargs: Any) -> Any:
        return self


def script(*calls: tuple[str, dict[str, Any]]) -> ScriptedModel:
    messages = [
        AIMessage(content="", tool_calls=[{"name": name, "args": args, "id": f"call_{n}", "type": "tool_call"}])
        for n, (name, args) in enumerate(calls)
    ]
    return ScriptedModel(messages=iter([*messages, AIMessage(content="done")]))


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"file_path": "/src/a.py", "content": "print('one')\n"}),
    ("edit_file", {"file_path": "/src/a.py", "old_string": "one", "new_string": "two"}),
    ("execute", {"command": "cd src && python3 a.py && python3 /src/a.py"}),
    ("glob", {"pattern": "**/*.py"}),
    ("grep", {"pattern": "two"}),
    ("read_file", {"file_path": "/src/a.py"}),
    ("execute", {"command": "seq 200000"}),
    ("read_file", {"file_path": "/large_tool_results/call_6", "offset": 199_998}),
    ("execute", {"command": "exit 3"}),
    ("execute", {"command": "echo so far; sleep 60", "timeout": 1}),
    ("execute", {"command": "sleep 60 & echo begun"}),
    ("glob", {"pattern": "/workspace/*/*.py"}),
]


def results(messages: list[Any]) -> list[str]:
    assert messages[-1].content == "done"
    return [str(message.content) for message in messages if isinstance(message, ToolMessage)]


def check(said: list[str]) -> None:
    assert len(said) == len(CALLS)
    assert said[2].startswith("two\ntwo\n")
    assert "/workspace/src/a.py" in said[3]
    assert "/workspace/src/a.py" in said[4]
    assert "print('two')" in said[5]
    assert "/large_tool_results/call_6" in said[6]
    assert len(said[6]) < 10_000
    assert "200000" in said[7]
    assert "failed with exit code 3" in said[8]
    assert said[9].startswith("so far\n[sandy] the command timed out after 1 s")
    assert "exit code 124" in said[9]
    assert said[10].startswith("begun\n")
    assert "/workspace/src/a.py" in said[11]


def test_an_agent_works_in_it() -> None:
    before = time.monotonic()
    with Sandbox() as backend:
        agent = create_deep_agent(model=script(*CALLS), backend=backend)
        state = agent.invoke({"messages": [{"role": "user", "content": "go"}]}, {"recursion_limit": 100})
        check(results(state["messages"]))
    assert time.monotonic() - before < 30  # what a command left in the background was not waited for


async def test_an_agent_works_in_it_in_asyncio() -> None:
    async with Sandbox() as backend:
        agent = create_deep_agent(model=script(*CALLS), backend=backend)
        state = await agent.ainvoke({"messages": [{"role": "user", "content": "go"}]}, {"recursion_limit": 100})
        check(results(state["messages"]))
