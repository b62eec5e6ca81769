r"""Sandy: runs commands that nobody vetted on this Linux machine, apart from it, without root, a daemon or a cloud.

Example:
    >>> from sandy import Sandbox
    >>> with Sandbox(workspace="project", open_files=1024, wall_time="10m") as sandbox:
    ...     outcome = sandbox.run("ls | wc -l", timeout=60)
    >>> outcome.reason, outcome.exit_code, outcome.stdout
    ('exited', 0, b'1\n')

The package has no run-time dependency. `deepagents_sandbox` has the same names, made for LangChain's Deep Agents.
"""

from importlib.metadata import PackageNotFoundError, version

from sandy._chunk import Chunk, Log
from sandy._errors import (
    CommandNotStartedError,
    PolicyError,
    ProcessNotFoundError,
    ProtocolError,
    SandboxError,
    SandboxFileError,
    SandboxGoneError,
    SandboxStartError,
    ShellEndedError,
)
from sandy._outcome import Denial, Outcome, Reason
from sandy._pool import SandboxPool
from sandy._process_info import ProcessInfo
from sandy._results import (
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileData,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from sandy._sandbox import Sandbox
from sandy._sandbox_info import SandboxInfo
from sandy._shell import Shell
from sandy._spawned import Process
from sandy._usage import Usage
from sandy._verify import Finding, Verification

try:
    __version__ = version("deepagents-sandbox")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"

NativeSandbox = Sandbox

__all__ = [
    "Chunk",
    "CommandNotStartedError",
    "DeleteResult",
    "Denial",
    "EditResult",
    "ExecuteResponse",
    "FileData",
    "FileDownloadResponse",
    "FileInfo",
    "FileUploadResponse",
    "Finding",
    "GlobResult",
    "GrepMatch",
    "GrepResult",
    "Log",
    "LsResult",
    "NativeSandbox",
    "Outcome",
    "PolicyError",
    "Process",
    "ProcessInfo",
    "ProcessNotFoundError",
    "ProtocolError",
    "ReadResult",
    "Reason",
    "Sandbox",
    "SandboxError",
    "SandboxFileError",
    "SandboxGoneError",
    "SandboxInfo",
    "SandboxPool",
    "SandboxStartError",
    "Shell",
    "ShellEndedError",
    "Usage",
    "Verification",
    "WriteResult",
    "__version__",
]
