"""`sandy run` with a network, for tests."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rig.rig import Rig
from support import Cli, Result, finish

Word = str | bytes | pathlib.Path


@dataclasses.dataclass(frozen=True)
class Outcome(Result):
    """Of a command that had a network."""

    document: dict[str, Any]  # what --json says

    def ok(self) -> Outcome:
        super().ok()
        return self

    @property
    def value(self) -> Any:
        """What the script gave to `show`."""
        self.ok()
        return json.loads(self.out)

    @property
    def denials(self) -> list[dict[str, Any]]:
        return self.document.get("denials", [])  # type: ignore[no-any-return]

    @property
    def denied(self) -> set[str]:
        """What was refused, as NAME:PORT, or NAME where it was a question to the name server."""
        return {denial["target"] for denial in self.denials}


class Net:
    """`sandy run` with a list of what can be reached, and the rig as the internet. The workspace has the rig's CA (ca.pem) and probe.py."""

    def __init__(self, sandy: Cli, rig: Rig, directory: pathlib.Path) -> None:
        self.sandy = sandy
        self.rig = rig
        self._directory = directory
        self._count = 0
        self.env = dict(rig.environment)
        shutil.copy(rig.ca, sandy.workspace / "ca.pem")
        shutil.copy(pathlib.Path(__file__).parent / "probe.py", sandy.workspace / "probe.py")

    def options(
        self,
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        private: Iterable[str] = (),
        network: Mapping[str, object] | None = None,
    ) -> list[Word]:
        """The flags for these rules. `network` is that of a policy file, which can say what no flag can."""
        words: list[Word] = []
        for flag, values in (("--allow-domain", allow), ("--deny-domain", deny), ("--allow-private", private)):
            for value in values:
                words += [flag, value]
        if network is not None:
            self._count += 1
            file = self._directory / f"policy{self._count}.json"
            file.write_text(json.dumps({"version": 1, "network": network}))
            words += ["-p", file]
        return words

    def start(self, *argv: Word, options: Sequence[Word] = (), **rules: Any) -> subprocess.Popen[bytes]:
        """A running command."""
        popen = {key: rules.pop(key) for key in list(rules) if key not in ("allow", "deny", "private", "network")}
        return self.sandy.start("run", *self.options(**rules), *options, "--", *argv, env=self.env, **popen)

    def run(self, *argv: Word, options: Sequence[Word] = (), timeout: float = 60, **rules: Any) -> Outcome:
        """A command, to its end."""
        self._count += 1
        file = self._directory / f"outcome{self._count}.json"
        result = finish(self.start(*argv, options=["--json", file, *options], **rules), timeout=timeout)
        return Outcome(result.status, result.out, result.err, json.loads(file.read_text()) if file.exists() else {})

    def sh(self, script: str, **rest: Any) -> Outcome:
        return self.run("sh", "-c", script, **rest)

    def python(self, script: str, *arguments: object, **rest: Any) -> Outcome:
        """A script that has all of probe.py; its arguments, as JSON, are in the list `given`."""
        return self.run("python3", "-c", f"from probe import *\n{script}", json.dumps({"given": arguments}), **rest)
