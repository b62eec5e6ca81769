#!/usr/bin/env python3
"""Puts the figures of run.py --json into tests/bench/README.md: a table, and a plot of the ratios beside it (ratios.svg).

    python3 tests/bench/page.py FIGURES.json      # needs matplotlib
"""

from __future__ import annotations

import json
import pathlib
import re
import sys

BEGIN, END = "<!-- figures: written by page.py -->", "<!-- end of figures -->"
HERE = pathlib.Path(__file__).resolve().parent


def text_of(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def table(results: list[dict[str, object]]) -> str:
    lines = ["| what | figures | aim |", "|---|---|---|"]
    for result in results:
        shown = [f"{key} {text_of(value)}" for key, value in result.items() if key not in ("benchmark", "title", "target")]
        cells = [str(result["title"]), ", ".join(shown), str(result["target"])]
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("<=", "≤").replace(">=", "≥") for cell in cells) + " |")
    return "\n".join(lines)


def aim_of(result: dict[str, object]) -> float | None:
    """The ratio that is aimed at, where that is what the target names."""
    match = re.match(r"[<>]= ([0-9.]+)$", str(result["target"]))
    return float(match.group(1)) if match else None


def plot(results: list[dict[str, object]], path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    # The same figures give the same file.
    matplotlib.rcParams["svg.hashsalt"] = "sandy"
    from matplotlib import pyplot

    rows = [result for result in results if isinstance(result.get("ratio"), float)][::-1]
    figure, axes = pyplot.subplots(figsize=(9, 0.34 * len(rows) + 1))
    axes.barh([str(row["title"]) for row in rows], [float(str(row["ratio"])) for row in rows], color="#4477aa")
    for at, row in enumerate(rows):
        if (aim := aim_of(row)) is not None:
            axes.plot([aim, aim], [at - 0.4, at + 0.4], color="#cc3311", linewidth=2)
    axes.axvline(1, color="#999999", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("ours / the other (red: what is aimed at)")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    figures = json.loads(pathlib.Path(sys.argv[1]).read_text())
    readme = HERE / "README.md"
    text = readme.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    where = f"{figures['cores']} cores, {figures.get('kernel', '')}, {figures.get('date', '')}, load {text_of(figures.get('load', '?'))}"
    readme.write_text(f"{before}{BEGIN}\n{where}\n\n{table(figures['results'])}\n\n![ratios](ratios.svg)\n{END}{after}")
    plot(figures["results"], HERE / "ratios.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
