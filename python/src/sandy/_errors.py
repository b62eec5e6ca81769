"""The exceptions of the package. One root, so that `except SandboxError` catches them all."""

from __future__ import annotations


class SandboxError(Exception):
    """Something about a sandbox went wrong; the text says what, and what to do where that is known."""


class SandboxStartError(SandboxError):
    """A sandbox could not start, so nothing ran: this machine lacks something, or PolicyError: the policy is not valid.

    What a machine lacks (bubblewrap, user namespaces) is never a PolicyError, and `sandy doctor` says how to get it.

    Attributes:
        what: What was asked for.
        why: Why this machine can't give it.
        fix: How to get it; empty where the cause says it all.
    """

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        """Keeps the three parts apart and prints them as `what: why` and a `hint:` line."""
        self.what = what
        self.why = why
        self.fix = fix
        text = f"{what}: {why}" if why else what
        super().__init__(f"{text}\nhint: {fix}" if fix else text)

    @classmethod
    def from_text(cls, text: str) -> SandboxStartError:
        """Takes the text of `sandy` apart again (`what: why`, then maybe a line `hint: fix`)."""
        message, _, fix = text.partition("\nhint: ")
        what, _, why = message.partition(": ")
        return cls(what, why, fix.replace("set limits.best_effort", "set limits.best_effort (best_effort=True)"))

    def __reduce__(self) -> tuple[type[SandboxStartError], tuple[str, str, str]]:
        """Pickles by parts: the default would pass the joined text as `what`."""
        return (type(self), (self.what, self.why, self.fix))


class PolicyError(SandboxStartError):
    """The policy is not valid: a wrong key, type or pattern, or two rules that contradict each other.

    Its text names the key. To mend it is to change the policy, or the arguments of `Sandbox`, and not the machine.
    """


class SandboxGoneError(SandboxError):
    """The sandbox, or the `sandy serve` process that held it, ended while it was still wanted."""


class CommandNotStartedError(SandboxError):
    """The command of a process could not be started: no such program, or no such working directory.

    Attributes:
        errno: The system's number for the reason (errno(3)).
        exit_code: What a shell would give: 127 where there is no such program, 126 where there is one that can't be started.
    """

    def __init__(self, text: str, errno: int, exit_code: int) -> None:
        """Says why, in words and numbers."""
        self.errno = errno
        self.exit_code = exit_code
        super().__init__(text)

    def __reduce__(self) -> tuple[type[CommandNotStartedError], tuple[str, int, int]]:
        """Pickles by parts: the default would pass the text alone."""
        return (type(self), (str(self), self.errno, self.exit_code))


class ProcessNotFoundError(SandboxError):
    """A sandbox has no process of that number: there never was one, or it has ended and was forgotten (64 are kept)."""


class ShellEndedError(SandboxError):
    """A shell has ended, and runs no more commands; the text says how."""


class SandboxFileError(SandboxError):
    """A file could not be uploaded or downloaded.

    Attributes:
        path: The path in the sandbox.
        code: A word such as `file_not_found`, or a sentence.
    """

    def __init__(self, path: str, code: str) -> None:
        """Names the file and the reason."""
        self.path = path
        self.code = code
        super().__init__(f"{path!r}: {code}")

    def __reduce__(self) -> tuple[type[SandboxFileError], tuple[str, str]]:
        """Pickles by parts: the default would pass the joined text as `path`."""
        return (type(self), (self.path, self.code))


class ProtocolError(SandboxGoneError):
    """`sandy serve` broke the wire protocol (src/session/PROTOCOL.md); its connection was closed."""
