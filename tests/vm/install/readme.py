"""README's example as it stands there, but for the model, which is a scripted one: it runs one command and ends.

usage: readme.py README
"""

import pathlib
import re
import sys
from typing import Any

import deepagents
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

make = deepagents.create_deep_agent


class Scripted(GenericFakeChatModel):
    """It says what it was given, whatever it is asked."""

    def bind_tools(self, *args: Any, **kwargs: Any) -> Any:
        return self


def create(*, model: str, backend: Any) -> Any:
    """As create_deep_agent, which would ask for a key."""
    assert model.startswith("anthropic:")
    call = {"name": "execute", "args": {"command": "echo ran as $(id -un), of $(wc -l < /workspace/numbers.csv) lines"}, "id": "1"}
    agent = make(model=Scripted(messages=iter([AIMessage(content="", tool_calls=[call]), AIMessage(content="done")])), backend=backend)

    class Printing:
        def invoke(self, *args: Any, **kwargs: Any) -> Any:
            result = agent.invoke(*args, **kwargs)
            print(*(message.content for message in result["messages"] if message.type == "tool"))
            return result

    return Printing()


deepagents.create_deep_agent = create
pathlib.Path("my-project").mkdir()
example = re.search(r"^```python\n(.*?)^```$", pathlib.Path(sys.argv[1]).read_text(), re.MULTILINE | re.DOTALL)
assert example
exec(compile(example[1], "README.md", "exec"))
