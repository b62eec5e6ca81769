"""The sandbox with the operations that a model uses, which report failure in their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

from sandy import _exec, _files, _plain, _search
from sandy._arguments import check_text
from sandy._core import SandboxCore
from sandy._errors import SandboxError, SandboxGoneError
from sandy._texts import Texts

if TYPE_CHECKING:
    from sandy import _results
    from sandy._exchange import Exchange
    from sandy._exec import OnOutput

T = TypeVar("T")


class Sandbox(SandboxCore):
    r"""Runs commands that nobody vetted, and keeps their files, apart from this machine.

    Without arguments: an empty private workspace at `/workspace`, a private `/tmp` and home, a read-only view of the system's
    programs, no network, the default seccomp policy. It is ready when the constructor returns, and ends with `close()`, with
    its `with` block, when it is garbage collected, or with the process. Threads may share it; so may event loops.

    Example:
        >>> with Sandbox() as sandbox:
        ...     sandbox.run(["python3", "-c", "print(6 * 7)"]).stdout
        b'42\n'
    """

    grep_exclude_dirs: tuple[str, ...] = (".git",)
    """Directories that `grep` does not enter, at any depth."""

    _texts: ClassVar[Texts] = Texts()

    def execute(self, command: str, *, timeout: int | None = None, on_output: OnOutput | None = None) -> _results.ExecuteResponse:
        """Runs a shell command in the workspace, in a fresh shell with empty input, and returns when it has ended.

        What it left in the background lives on until the sandbox closes. It does not raise for what happens in the
        sandbox or to it.

        Args:
            command: The command line, of any length.
            timeout: Seconds; None is the sandbox's default, 0 is no limit. A command that takes longer is killed with all that
                it started, and its output so far is returned with exit code 124.
            on_output: Gets the output also as it comes, as `on_output("stdout", b"...")`, all of it; the response is the same as
                without. An exception that it raises kills the command, and is raised here.

        Raises:
            TypeError: If an argument has a wrong type.
            ValueError: If the timeout is negative.
        """
        check_text("command", command, "a str: a shell command line")
        seconds = self._limit(timeout)
        try:
            made = self._shell(command, seconds, on_output=on_output)
            return _exec.to_response(self._call(_exec.run_command(self._place.id, made)), seconds)
        except _exec.OutputCallbackError as error:
            raise error.error from None
        except (SandboxError, ValueError, OSError) as error:
            return _exec.failed_response(str(error))

    async def aexecute(
        self,
        command: str,
        *,
        timeout: int | None = None,  # noqa: ASYNC109 - the agent's limit, which also kills
        on_output: OnOutput | None = None,
    ) -> _results.ExecuteResponse:
        """As `execute`. When the task is cancelled, the command and all that it started are killed."""
        check_text("command", command, "a str: a shell command line")
        seconds = self._limit(timeout)
        try:
            made = self._shell(command, seconds, on_output=on_output)
            return _exec.to_response(await self._acall(_exec.run_command(self._place.id, made)), seconds)
        except _exec.OutputCallbackError as error:
            raise error.error from None
        except (SandboxError, ValueError, OSError) as error:
            return _exec.failed_response(str(error))

    def upload_files(self, files: list[tuple[str, bytes]]) -> Sequence[_results.FileUploadResponse]:
        """Writes files, creating their directories. Each fares for itself, and the responses are in the order of the files."""
        files = _files.check_files(files)
        failed = _all_failed(_plain.FileUploadResponse, [path for path, _ in files])
        return self._file(_files.upload_files(self._place, files), failed)

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> Sequence[_results.FileUploadResponse]:
        """As `upload_files`."""
        files = _files.check_files(files)
        failed = _all_failed(_plain.FileUploadResponse, [path for path, _ in files])
        return await self._afile(_files.upload_files(self._place, files), failed)

    def download_files(self, paths: list[str]) -> Sequence[_results.FileDownloadResponse]:
        """Reads files. Each fares for itself, and the responses are in the order of the paths."""
        paths = _files.check_paths(paths)
        failed = _all_failed(_plain.FileDownloadResponse, paths)
        return self._file(_files.download_files(self._place, paths), failed)

    async def adownload_files(self, paths: list[str]) -> Sequence[_results.FileDownloadResponse]:
        """As `download_files`."""
        paths = _files.check_paths(paths)
        failed = _all_failed(_plain.FileDownloadResponse, paths)
        return await self._afile(_files.download_files(self._place, paths), failed)

    # Files for a model. Names that are no part of the system are in the workspace: "/a.py" is "/workspace/a.py". "~" is the home.

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> _results.ReadResult:
        """A page of a file: `limit` lines after the first `offset`, or the whole of a small binary file in base64."""
        return self._file(
            _files.read(self._place, file_path, offset, limit, self._texts), lambda error: _plain.ReadResult(error=error)
        )

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> _results.ReadResult:
        """As `read`."""
        return await self._afile(
            _files.read(self._place, file_path, offset, limit, self._texts), lambda error: _plain.ReadResult(error=error)
        )

    def write(self, file_path: str, content: str) -> _results.WriteResult:
        """Writes a text file, creating its directories; an existing one is replaced."""
        return self._file(_files.write(self._place, file_path, content), lambda error: _plain.WriteResult(error=error))

    async def awrite(self, file_path: str, content: str) -> _results.WriteResult:
        """As `write`."""
        return await self._afile(_files.write(self._place, file_path, content), lambda error: _plain.WriteResult(error=error))

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> _results.EditResult:
        """Replaces a text in a file, which must be there exactly once unless `replace_all` is on. Line ends stay as they are."""
        return self._file(
            self._edit(file_path, old_string, new_string, replace_all=replace_all),
            lambda error: _plain.EditResult(error=error),
        )

    async def aedit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> _results.EditResult:
        """As `edit`."""
        return await self._afile(
            self._edit(file_path, old_string, new_string, replace_all=replace_all),
            lambda error: _plain.EditResult(error=error),
        )

    def delete(self, file_path: str) -> _results.DeleteResult:
        """Deletes a file, or a directory with all that is in it."""
        return self._file(_files.delete(self._place, file_path), lambda error: _plain.DeleteResult(error=error))

    async def adelete(self, file_path: str) -> _results.DeleteResult:
        """As `delete`."""
        return await self._afile(_files.delete(self._place, file_path), lambda error: _plain.DeleteResult(error=error))

    def ls(self, path: str) -> _results.LsResult:
        """A directory's entries, with absolute paths. Links are not followed."""
        return self._file(_search.ls(self._place, path), lambda error: _plain.LsResult(error=error))

    async def als(self, path: str) -> _results.LsResult:
        """As `ls`."""
        return await self._afile(_search.ls(self._place, path), lambda error: _plain.LsResult(error=error))

    def glob(self, pattern: str, path: str | None = None) -> _results.GlobResult:
        """Files below a directory (None is the workspace) that match: without "/" by name at any depth, else by path.

        An absolute pattern that names a directory (`/usr/lib/*.so`, `/workspace/**/*.py`) is matched against absolute paths,
        whatever `path` is.
        """
        return self._file(_search.glob(self._place, pattern, path), lambda error: _plain.GlobResult(error=error))

    async def aglob(self, pattern: str, path: str | None = None) -> _results.GlobResult:
        """As `glob`."""
        return await self._afile(_search.glob(self._place, pattern, path), lambda error: _plain.GlobResult(error=error))

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> _results.GrepResult:
        """Lines that have a text, literally, in a file or below a directory (None is the workspace)."""
        return self._file(self._grep(pattern, path, glob, max_count), lambda error: _plain.GrepResult(error=error))

    async def agrep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> _results.GrepResult:
        """As `grep`."""
        return await self._afile(self._grep(pattern, path, glob, max_count), lambda error: _plain.GrepResult(error=error))

    def _edit(self, path: str, old: str, new: str, *, replace_all: bool) -> Exchange[_plain.EditResult]:
        return _files.edit(self._place, path, old, new, replace_all=replace_all, texts=self._texts)

    def _grep(self, pattern: str, path: str | None, glob: str | None, max_count: int | None) -> Exchange[_plain.GrepResult]:
        return _search.grep(self._place, pattern, path, glob, max_count=max_count, exclude=self.grep_exclude_dirs)

    def _shell(
        self, command: str, timeout: float, max_output_bytes: int | None = None, on_output: OnOutput | None = None
    ) -> _exec.Command:
        made = self._command(command, None, None, None, timeout, max_output_bytes, merge=True, on_output=on_output)
        return made if on_output is None else replace(made, on_output=_exec.guard(on_output), keep_streamed=True)

    def _file(self, exchange: Exchange[T], failed: Callable[[str], T]) -> T:
        try:
            return self._call(exchange)
        except (SandboxGoneError, OSError) as error:
            return failed(f"Error: {error}")

    async def _afile(self, exchange: Exchange[T], failed: Callable[[str], T]) -> T:
        try:
            return await self._acall(exchange)
        except (SandboxGoneError, OSError) as error:
            return failed(f"Error: {error}")


def _all_failed(response: Callable[..., T], paths: Sequence[str]) -> Callable[[str], list[T]]:
    def fail(error: str) -> list[T]:
        return [response(path=path, error=error) for path in paths]

    return fail
