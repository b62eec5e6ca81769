"""A deep agent does real work in a sandbox, and then tries what it must not do.

It reads a public CSV file, writes and runs a script over it, and draws a chart, which is downloaded and checked. Then it tries
to read ~/.ssh and to open connections. Every claim that is printed was checked; exit status 1 if one does not hold.

usage: demo.py OUTPUT_DIRECTORY        (in the virtual environment that packaging/quickstart.sh makes)
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import secrets
import shlex
import socket
import struct
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from deepagents import create_deep_agent
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from scripted_model import ScriptedChatModel, weather_script
from vega_datasets import data

from deepagents_sandbox import Sandbox, SandboxStartError

# Name of the variable with the key, package of the model, and the model, unless SANDY_QUICKSTART_MODEL names one.
REAL_MODELS = [
    ("ANTHROPIC_API_KEY", "langchain_anthropic", "anthropic:claude-sonnet-4-6"),
    ("OPENAI_API_KEY", "langchain_openai", "openai:gpt-5.1"),
]

# 192.0.2.1 is no machine's address (RFC 5737): outside a sandbox it times out, without a route it is refused at once.
PROBE = """\
import socket
for address in (("127.0.0.1", {port}), ("192.0.2.1", 443), ("example.com", 443)):
    try:
        socket.create_connection(address, timeout=3)
        print("CONNECTED to", *address)
    except OSError as error:
        print("refused:", *address, "-", error)
"""

TASK = """\
The file /workspace/seattle-weather.csv has daily weather. Do these steps, each with your tools:
1. Look at the first lines of the file.
2. Write /workspace/analyse.py, which prints the wettest and the warmest month on average, and draws both by month into
   /workspace/chart.png with matplotlib. Run it with `python3 analyse.py`.
3. This is a test of your sandbox, on a throw-away key and with the owner's consent: run `ls -la ~/.ssh; cat {key}`.
4. As part of the same test, run this command as it is: {probe}
Then say in two sentences what you found and what was refused.
"""


def main() -> int:
    """Runs the example; the exit status."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    output = pathlib.Path(sys.argv[1]).resolve()
    output.mkdir(parents=True, exist_ok=True)
    csv = pathlib.Path(data.seattle_weather.filepath)

    real_keys = pathlib.Path.home() / ".ssh"
    with home_with_keys(output) as (key, secret), listener() as (port, reached):
        probe = f"python3 -c {shlex.quote(PROBE.format(port=port))}"
        model, description = choose_model(str(key), probe)
        print(f"model:    {description}")
        tools = pathlib.Path(sys.prefix)
        try:
            # The agent's script needs pandas and matplotlib, so it sees this virtual environment, and can't write to it.
            backend = Sandbox(read=[tools], env={"PATH": f"{tools}/bin:/usr/local/bin:/usr/bin:/bin", "MPLCONFIGDIR": "/tmp"})
        except SandboxStartError as error:
            sys.exit(f"{error}\n`sandy doctor` shows what this machine lacks.")
        with backend:
            print(f"sandbox:  {backend.id}, workspace {backend.workspace}, no network")
            print(f"          not enforced on this machine: {', '.join(backend.degraded) or 'nothing'}")
            (upload,) = backend.upload_files([("/workspace/seattle-weather.csv", csv.read_bytes())])
            assert upload.error is None, upload
            agent = create_deep_agent(model=model, backend=backend)
            task = TASK.format(key=key, probe=probe)
            messages: list[BaseMessage] = []
            for state in agent.stream({"messages": [("user", task)]}, stream_mode="values", config={"recursion_limit": 100}):
                for message in state["messages"][len(messages) :]:
                    show(message)
                messages = state["messages"]

            (chart,) = backend.download_files(["/workspace/chart.png"])
            # Whatever the model did: the same two attempts, by hand.
            read_key = backend.execute(f"ls -la ~/.ssh; cat {shlex.quote(str(key))}")
            connect = backend.execute(probe)
            real = backend.execute(f"test -e {shlex.quote(str(real_keys))}")

        transcript = "\n".join([*(message.text for message in messages), read_key.output, connect.output])
        width, height = png_size(chart.content or b"")
        (output / "chart.png").write_bytes(chart.content or b"")
        checks = [
            (f"chart.png is a PNG of {width} x {height} points, {len(chart.content or b'')} bytes", width >= 300 and height >= 200),
            (f"~/.ssh is not there in the sandbox: {last_line(read_key.output)}", read_key.exit_code != 0),
            ("the key's content, which can be read outside, is in nothing that came out", secret not in transcript),
            *([(f"the real {real_keys} is not there either", real.exit_code == 1)] if real_keys.exists() else []),
            (f"no connection was made: {connect.output.count('refused:')} of 3 refused", is_refused(connect.output)),
            ("the listener on this machine, which can be reached outside, saw none from the sandbox", not reached.is_set()),
        ]
        can_be_reached(port, reached)

    print("\nWhat was shown, and checked:")
    for text, holds in checks:
        print(f"  {'ok    ' if holds else 'FAILED'} {text}")
    print(f"\nThe chart: {output / 'chart.png'}")
    return 0 if all(holds for _, holds in checks) else 1


def choose_model(key: str, probe: str) -> tuple[BaseChatModel, str]:
    """A real model where a key and its package are there, else the scripted one; and what to say of it."""
    wanted = os.environ.get("SANDY_QUICKSTART_MODEL")
    if wanted not in (None, "", "scripted"):
        return init_chat_model(wanted), f"{wanted} (SANDY_QUICKSTART_MODEL)"
    for variable, package, name in REAL_MODELS if not wanted else ():
        if os.environ.get(variable):
            if importlib.util.find_spec(package):
                return init_chat_model(name), f"{name} ({variable} is set)"
            print(f"note:     {variable} is set, but {package} is not installed in {sys.prefix}")
    script = ScriptedChatModel(script=weather_script(key, probe))
    return script, "scripted: no API key is used, so the tool calls were written beforehand. The sandbox is real"


@contextmanager
def home_with_keys(directory: pathlib.Path) -> Iterator[tuple[pathlib.Path, str]]:
    """A key in ~/.ssh that can be read outside, and its content.

    The home is a temporary one: the user's own keys are no part of a text that is printed, or sent to a model.
    """
    secret = f"throw-away key {secrets.token_hex(16)}"
    before = os.environ.get("HOME")
    with tempfile.TemporaryDirectory(prefix="home-", dir=directory, ignore_cleanup_errors=True) as home:
        key = pathlib.Path(home, ".ssh", "id_ed25519")
        key.parent.mkdir(mode=0o700)
        key.write_text(secret + "\n")
        os.environ["HOME"] = home
        try:
            yield key, secret
            assert key.read_text().strip() == secret
        finally:
            if before is None:
                del os.environ["HOME"]
            else:
                os.environ["HOME"] = before


@contextmanager
def listener() -> Iterator[tuple[int, threading.Event]]:
    """A port of this machine that accepts, and an event that is set when it has."""
    reached = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connection.close()
                reached.set()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1], reached
        server.shutdown(socket.SHUT_RDWR)


def can_be_reached(port: int, reached: threading.Event) -> None:
    """Makes sure that the listener would have seen a connection."""
    socket.create_connection(("127.0.0.1", port), timeout=5).close()
    assert reached.wait(5), "the listener does not work, so it proves nothing"


def is_refused(output: str) -> bool:
    """Whether all three attempts of PROBE failed."""
    return output.count("refused:") == 3 and "CONNECTED" not in output


def png_size(content: bytes) -> tuple[int, int]:
    """Width and height of a complete PNG, or zeros (PNG specification, 5.2 and 11.2.2)."""
    if not content.startswith(b"\x89PNG\r\n\x1a\n") or content[12:16] != b"IHDR" or content[-8:-4] != b"IEND":
        return 0, 0
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def last_line(text: str) -> str:
    """The last line that is no note of the sandbox's."""
    lines = [line for line in text.splitlines() if line and not line.startswith("[")]
    return lines[-1] if lines else "(no output)"


def show(message: BaseMessage) -> None:
    """One step of the agent, on some lines."""
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            values = [str(value) for value in call["args"].values()]
            print(f"\nagent:    {call['name']} {shorten(' '.join(values), 1)}")
        if message.text:
            print(f"\nagent:    {message.text}")
    elif isinstance(message, ToolMessage):
        print(textwrap.indent(shorten(message.text, 8), "          "))


def shorten(text: str, lines: int) -> str:
    """The first lines, and whether there are more."""
    kept = [line[:110] for line in text.splitlines()]
    return "\n".join(kept[:lines]) + (" ..." if len(kept) > lines else "")


if __name__ == "__main__":
    sys.exit(main())
