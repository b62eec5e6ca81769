"""The backend: a sandbox that is a deepagents `BaseSandbox`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from deepagents.backends import protocol
from deepagents.backends.sandbox import BaseSandbox

import sandy
from deepagents_sandbox import _offload, _results
from deepagents_sandbox._texts import TEXTS
from sandy import _exec
from sandy._texts import Texts

if TYPE_CHECKING:
    from sandy._exec import OnOutput


class Sandbox(sandy.Sandbox, BaseSandbox):
    r"""A backend for `create_deep_agent` that runs on this machine. Its arguments are those of `sandy.Sandbox`.

    Every operation of `BaseSandbox` is done natively, in the sandbox and without a Python or a grep in it, also the
    asynchronous ones: when their task is cancelled, what they started is killed.

    Example:
        >>> with Sandbox(workspace="project") as backend:
        ...     backend.execute("python3 -c 'print(6 * 7)'").output
        '42\n'
    """

    enable_capture_offload: bool = True
    """Large output of an agent's command is left in a file of the sandbox; the model gets its ends, and the path."""

    grep_exclude_dirs: tuple[str, ...] = BaseSandbox.grep_exclude_dirs
    """Directories that `grep` does not enter, at any depth."""

    _texts: ClassVar[Texts] = TEXTS

    @property
    def id(self) -> str:
        """The sandbox's name, unique on this machine."""
        return self._place.id

    def execute(self, command: str, *, timeout: int | None = None, on_output: OnOutput | None = None) -> protocol.ExecuteResponse:
        """See `sandy.Sandbox.execute`."""
        return _results.execute_response(super().execute(command, timeout=timeout, on_output=on_output))

    async def aexecute(
        self,
        command: str,
        *,
        timeout: int | None = None,  # noqa: ASYNC109 - the agent's limit, which also kills
        on_output: OnOutput | None = None,
    ) -> protocol.ExecuteResponse:
        """See `sandy.Sandbox.aexecute`."""
        return _results.execute_response(await super().aexecute(command, timeout=timeout, on_output=on_output))

    def execute_with_offload(
        self,
        command: str,
        capture_path: str,
        *,
        max_inline_bytes: int,
        max_capture_bytes: int | None = None,
        timeout: int | None = None,
    ) -> protocol.ExecuteOffloadResult:
        """As `execute`, but output of more than `max_inline_bytes` goes into the file `capture_path` in the sandbox.

        deepagents runs an agent's commands with it. The result then holds the first and the last lines. Of more than
        `max_capture_bytes` (None is 10 MiB) the middle is left out. After a time limit there is the output so far.
        """
        if not self._captures():
            return super().execute_with_offload(
                command, capture_path, max_inline_bytes=max_inline_bytes, max_capture_bytes=max_capture_bytes, timeout=timeout
            )
        seconds = self._limit(timeout)
        try:
            made = self._shell(command, seconds, _offload.capture_size(max_capture_bytes))
            done = self._call(_offload.run(self._place, made, capture_path, max_inline_bytes, seconds))
        except (sandy.SandboxError, ValueError, OSError) as error:
            done = _offload.Offload(_exec.failed_response(str(error)))
        return _results.offload_result(done)

    async def aexecute_with_offload(
        self,
        command: str,
        capture_path: str,
        *,
        max_inline_bytes: int,
        max_capture_bytes: int | None = None,
        timeout: int | None = None,  # noqa: ASYNC109 - the agent's limit, which also kills
    ) -> protocol.ExecuteOffloadResult:
        """As `execute_with_offload`. When the task is cancelled, the command and all that it started are killed."""
        if not self._captures():
            return await super().aexecute_with_offload(
                command, capture_path, max_inline_bytes=max_inline_bytes, max_capture_bytes=max_capture_bytes, timeout=timeout
            )
        seconds = self._limit(timeout)
        try:
            made = self._shell(command, seconds, _offload.capture_size(max_capture_bytes))
            done = await self._acall(_offload.run(self._place, made, capture_path, max_inline_bytes, seconds))
        except (sandy.SandboxError, ValueError, OSError) as error:
            done = _offload.Offload(_exec.failed_response(str(error)))
        return _results.offload_result(done)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[protocol.FileUploadResponse]:
        """See `sandy.Sandbox.upload_files`."""
        return _results.upload_responses(super().upload_files(files))

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[protocol.FileUploadResponse]:
        """See `sandy.Sandbox.aupload_files`."""
        return _results.upload_responses(await super().aupload_files(files))

    def download_files(self, paths: list[str]) -> list[protocol.FileDownloadResponse]:
        """See `sandy.Sandbox.download_files`."""
        return _results.download_responses(super().download_files(paths))

    async def adownload_files(self, paths: list[str]) -> list[protocol.FileDownloadResponse]:
        """See `sandy.Sandbox.adownload_files`."""
        return _results.download_responses(await super().adownload_files(paths))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> protocol.ReadResult:
        """See `sandy.Sandbox.read`."""
        return _results.read_result(super().read(file_path, offset, limit))

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> protocol.ReadResult:
        """See `sandy.Sandbox.aread`."""
        return _results.read_result(await super().aread(file_path, offset, limit))

    def write(self, file_path: str, content: str) -> protocol.WriteResult:
        """See `sandy.Sandbox.write`."""
        return _results.write_result(super().write(file_path, content))

    async def awrite(self, file_path: str, content: str) -> protocol.WriteResult:
        """See `sandy.Sandbox.awrite`."""
        return _results.write_result(await super().awrite(file_path, content))

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> protocol.EditResult:
        """See `sandy.Sandbox.edit`."""
        return _results.edit_result(super().edit(file_path, old_string, new_string, replace_all))

    async def aedit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> protocol.EditResult:
        """See `sandy.Sandbox.aedit`."""
        return _results.edit_result(await super().aedit(file_path, old_string, new_string, replace_all))

    def delete(self, file_path: str) -> protocol.DeleteResult:
        """See `sandy.Sandbox.delete`."""
        return _results.delete_result(super().delete(file_path))

    async def adelete(self, file_path: str) -> protocol.DeleteResult:
        """See `sandy.Sandbox.adelete`."""
        return _results.delete_result(await super().adelete(file_path))

    def ls(self, path: str) -> protocol.LsResult:
        """See `sandy.Sandbox.ls`."""
        return _results.ls_result(super().ls(path))

    async def als(self, path: str) -> protocol.LsResult:
        """See `sandy.Sandbox.als`."""
        return _results.ls_result(await super().als(path))

    def glob(self, pattern: str, path: str | None = None) -> protocol.GlobResult:
        """See `sandy.Sandbox.glob`."""
        return _results.glob_result(super().glob(pattern, path))

    async def aglob(self, pattern: str, path: str | None = None) -> protocol.GlobResult:
        """See `sandy.Sandbox.aglob`."""
        return _results.glob_result(await super().aglob(pattern, path))

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> protocol.GrepResult:
        """See `sandy.Sandbox.grep`."""
        return _results.grep_result(super().grep(pattern, path, glob, max_count=max_count))

    async def agrep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> protocol.GrepResult:
        """See `sandy.Sandbox.agrep`."""
        return _results.grep_result(await super().agrep(pattern, path, glob, max_count=max_count))

    def _captures(self) -> bool:
        """Whether the agent's own capture serves; a subclass that changes `execute` wants to see the commands of agents too."""
        own = type(self).execute is Sandbox.execute and type(self).aexecute is Sandbox.aexecute
        return own and self.enable_capture_offload
