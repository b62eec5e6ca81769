"""An agent starts a web server in the background, tests it with curl, and shows it to this machine on a published port.

A scripted model plays the agent; the sandbox is real. With langchain-anthropic, and ANTHROPIC_API_KEY set, a real one does:

    python web_server.py --model anthropic:claude-sonnet-4-6

What the agent has is the backend's tools and one more, `start_server`, which is `Sandbox.spawn`: a command that goes on.
"""

from __future__ import annotations

import argparse
import sys
import time
import urllib.request
from collections.abc import Iterator

from deepagents import create_deep_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from deepagents_sandbox import Sandbox

PORT = 8000
TASK = f"""Write /workspace/site/index.html with a heading of your choice, start `python3 -m http.server {PORT}` in that
directory with start_server, and test it from the sandbox with curl. Then say what you have done."""


class ScriptedModel(GenericFakeChatModel):
    """Calls the same tools as a model would."""

    def bind_tools(self, *_: object, **__: object) -> ScriptedModel:
        """Knows the tools already."""
        return self


def script() -> Iterator[AIMessage]:
    """What the model says."""
    calls = [
        ("write_file", {"file_path": "/workspace/site/index.html", "content": "<h1>Hello from the sandbox</h1>\n"}),
        ("start_server", {"command": f"cd site && exec python3 -u -m http.server {PORT}"}),
        ("execute", {"command": f"curl -sS --retry 20 --retry-delay 1 --retry-connrefused http://127.0.0.1:{PORT}/"}),
    ]
    for number, (name, arguments) in enumerate(calls):
        yield AIMessage(content="", tool_calls=[{"name": name, "args": arguments, "id": f"call{number}"}])
    yield AIMessage(content=f"The site is served on port {PORT}, and curl gets its heading.")


def main() -> int:
    """Runs the agent, and then fetches the page from this machine."""
    parser = argparse.ArgumentParser(description="an agent that starts a web server in a sandbox")
    parser.add_argument("--model", help="a model of langchain, such as anthropic:claude-sonnet-4-6 (default: a script)")
    model = parser.parse_args().model or ScriptedModel(messages=script())

    with Sandbox(publish=[str(PORT)], timeout=120) as backend:

        @tool
        def start_server(command: str) -> str:
            """Starts a shell command that goes on, such as a server, and returns at once what it has written so far."""
            process = backend.spawn(command)
            time.sleep(1)
            return f"process {process.number} runs: {process.poll() is None}\n{process.log().data.decode(errors='replace')}"

        agent = create_deep_agent(model=model, backend=backend, tools=[start_server])
        result = agent.invoke({"messages": [HumanMessage(TASK)]})
        for message in result["messages"]:
            print(f"--- {message.type}\n{message.text or message.tool_calls}")

        address = f"http://127.0.0.1:{backend.published[PORT]}/"
        with urllib.request.urlopen(address, timeout=20) as page:
            print(f"--- {address} on this machine\n{page.read().decode()}")
        for process in backend.list_processes():
            print(f"--- the server's log\n{backend.read_log(process.number).data.decode(errors='replace')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
