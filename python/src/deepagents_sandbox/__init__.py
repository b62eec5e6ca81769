"""Deep Agents in a sandbox on this machine: `Sandbox` is a backend for `create_deep_agent`.

Example:
    >>> from deepagents import create_deep_agent
    >>> from deepagents_sandbox import Sandbox
    >>> with Sandbox() as backend:
    ...     agent = create_deep_agent(model="anthropic:claude-sonnet-4-6", backend=backend)

The names are those of `sandy`, which needs no deepagents; the results are deepagents' own objects.
"""

try:
    import deepagents as _deepagents  # noqa: F401 - only to say what is missing
except ModuleNotFoundError as _error:
    if _error.name != "deepagents":
        raise
    _msg = "deepagents_sandbox needs deepagents: pip install 'deepagents-sandbox[deepagents]'. Without it, use the package sandy."
    raise ImportError(_msg, name="deepagents") from _error

from deepagents.backends.protocol import (
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

from deepagents_sandbox._pool import SandboxPool
from deepagents_sandbox._provider import Provider
from deepagents_sandbox._sandbox import Sandbox
from sandy import (
    Chunk,
    CommandNotStartedError,
    Denial,
    Finding,
    Log,
    Outcome,
    PolicyError,
    Process,
    ProcessInfo,
    ProcessNotFoundError,
    ProtocolError,
    Reason,
    SandboxError,
    SandboxFileError,
    SandboxGoneError,
    SandboxInfo,
    SandboxStartError,
    Shell,
    ShellEndedError,
    Usage,
    Verification,
    __version__,
)

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
    "Provider",
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
