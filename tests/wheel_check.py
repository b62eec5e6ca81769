"""An installed wheel works by itself: no other package, no SANDY_PROGRAMS. Run by tests/run.sh in a virtual environment."""

import importlib.util
import os
import pathlib

import sandy

assert "SANDY_PROGRAMS" not in os.environ
assert importlib.util.find_spec("deepagents") is None, "the environment is not bare, so this proves nothing"
package = pathlib.Path(sandy.__file__).parent
programs = sorted(path.name for path in (package / "_programs").iterdir())
assert programs == ["sandy", "sandy-agent", "sandy-launch", "sandy-proxy"], programs
assert sandy.__version__ != "0+unknown"
with sandy.Sandbox() as sandbox:
    outcome = sandbox.run(["sh", "-c", "echo from $(id -un)"], timeout=60)
    assert (outcome.reason, outcome.exit_code) == ("exited", 0), outcome
    sandbox.write("/a.txt", "written")
    assert sandbox.read("/a.txt").error is None
print(f"1 passed: {package} {sandy.__version__}, {outcome.stdout.decode().strip()}")
