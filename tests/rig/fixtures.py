"""Fixtures of tests that have a network: `pytest_plugins = ["rig.fixtures"]` in a test's file."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rig.certificates import Certificates, make_certificates
from rig.net import Net
from rig.rig import Rig
from support import REPOSITORY, USUAL_PATH, Cli, finish


@pytest.fixture(scope="session")
def rig_certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("rig"))


@pytest.fixture
def rig(rig_certificates: Certificates) -> Iterator[Rig]:
    """A rig for one test, with an empty log."""
    with Rig(rig_certificates) as running:
        yield running


@pytest.fixture
def net(sandy: Cli, rig: Rig, tmp_path: pathlib.Path) -> Net:
    directory = tmp_path / "net"
    directory.mkdir()
    return Net(sandy, rig, directory)


@pytest.fixture
def client(api: type, rig: Rig, programs: pathlib.Path, home: pathlib.Path, tmp_path: pathlib.Path) -> Callable[..., Any]:
    """Runs a script that uses the Python client, in a process of its own: `sandy serve` is one a process, and is told of the rig as it starts."""
    def run(script: str, *arguments: object, timeout: float = 60) -> Any:
        prelude = "import json, sys\nfrom sandy import Sandbox\ngiven = json.loads(sys.argv[1])\ndef show(value): print(json.dumps(value))\n"
        names = "def targets(denials): return [d['target'] if isinstance(d, dict) else d.target for d in denials]\n"
        process = subprocess.Popen(
            [sys.executable, "-c", prelude + names + script, json.dumps(arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
            env={"HOME": str(home), "PATH": USUAL_PATH, "SANDY_PROGRAMS": str(programs), "PYTHONPATH": str(REPOSITORY / "python/src"), **rig.environment},
        )
        return json.loads(finish(process, timeout=timeout).ok().out)

    return run
