"""A chat model without a network: it plays tool calls that were written beforehand, in the place of a real model's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

ANALYSIS = """\
import pandas as pd
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

weather = pd.read_csv("seattle-weather.csv", parse_dates=["date"])
monthly = weather.groupby(weather["date"].dt.month).agg(rain=("precipitation", "mean"), high=("temp_max", "mean"))
print(f"{len(weather)} days, {weather['date'].min():%Y-%m-%d} to {weather['date'].max():%Y-%m-%d}")
print(f"wettest month: {monthly['rain'].idxmax()} ({monthly['rain'].max():.1f} mm a day)")
print(f"warmest month: {monthly['high'].idxmax()} ({monthly['high'].max():.1f} degrees)")

figure, rain = plt.subplots(figsize=(8, 4.5))
rain.bar(monthly.index, monthly["rain"], color="tab:blue")
rain.set(xlabel="month", ylabel="rain, mm a day", xticks=range(1, 13), title="Seattle: rain and daily highs by month")
high = rain.twinx()
high.plot(monthly.index, monthly["high"], color="tab:red", marker="o")
high.set_ylabel("daily high, degrees Celsius")
figure.tight_layout()
figure.savefig("chart.png", dpi=120)
print("wrote chart.png")
"""


def weather_script(key_file: str, probe: str) -> list[tuple[str, dict[str, Any]]]:
    """What the scripted model does, one tool call a turn.

    Args:
        key_file: A file in ~/.ssh that it tries to read.
        probe: A shell command that tries to open connections.
    """
    return [
        ("read_file", {"file_path": "/workspace/seattle-weather.csv", "limit": 4}),
        ("write_file", {"file_path": "/workspace/analyse.py", "content": ANALYSIS}),
        ("execute", {"command": "python3 analyse.py"}),
        ("execute", {"command": f"ls -la ~/.ssh; cat '{key_file}'"}),
        ("execute", {"command": probe}),
    ]


class ScriptedChatModel(BaseChatModel):
    """Answers turn N of a conversation with call N of its script, and then with a text that quotes what the calls gave."""

    script: list[tuple[str, dict[str, Any]]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> ScriptedChatModel:
        """Takes any tools: the script knows which it calls."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        turn = sum(isinstance(message, AIMessage) for message in messages)
        if turn < len(self.script):
            name, args = self.script[turn]
            answer = AIMessage(content="", tool_calls=[{"name": name, "args": args, "id": f"call-{turn}", "type": "tool_call"}])
        else:
            answer = AIMessage(content=_summary(messages))
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _summary(messages: list[BaseMessage]) -> str:
    found = [
        line
        for message in messages
        if isinstance(message, ToolMessage)
        for line in message.text.splitlines()
        if "month:" in line
    ]
    return f"The chart is in chart.png; {', '.join(found)}. The key and the network could not be reached from here."
