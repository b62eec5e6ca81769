"""deepagents' result objects, made from ours. With keywords only: newer versions add fields."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

from deepagents.backends import protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import sandy
    from deepagents_sandbox._offload import Offload


def execute_response(result: sandy.ExecuteResponse) -> protocol.ExecuteResponse:
    """For `execute`."""
    return protocol.ExecuteResponse(output=result.output, exit_code=result.exit_code, truncated=result.truncated)


def offload_result(result: Offload) -> protocol.ExecuteOffloadResult:
    """For `execute_with_offload`."""
    fields: dict[str, Any] = {"offloaded": result.stored, "response": execute_response(result.response)}
    if any(field.name == "preview_has_truncation_marker" for field in dataclasses.fields(protocol.ExecuteOffloadResult)):
        fields["preview_has_truncation_marker"] = result.marked  # not in deepagents 0.7.8
    return protocol.ExecuteOffloadResult(**fields)


def upload_responses(results: Sequence[sandy.FileUploadResponse]) -> list[protocol.FileUploadResponse]:
    """For `upload_files`."""
    return [protocol.FileUploadResponse(path=result.path, error=result.error) for result in results]


def download_responses(results: Sequence[sandy.FileDownloadResponse]) -> list[protocol.FileDownloadResponse]:
    """For `download_files`."""
    return [protocol.FileDownloadResponse(path=result.path, content=result.content, error=result.error) for result in results]


def read_result(result: sandy.ReadResult) -> protocol.ReadResult:
    """For `read`; what contradicts itself becomes an error, as in BaseSandbox."""
    try:
        return protocol.ReadResult(
            error=result.error,
            file_data=cast("protocol.FileData | None", result.file_data),
            total_lines=result.total_lines,
            start_line=result.start_line,
            end_line=result.end_line,
            next_offset=result.next_offset,
            no_lines_requested=result.no_lines_requested,
        )
    except ValueError as error:
        return protocol.ReadResult(error=f"the sandbox gave an impossible page: {error}")


def write_result(result: sandy.WriteResult) -> protocol.WriteResult:
    """For `write`."""
    return protocol.WriteResult(error=result.error, path=result.path)


def edit_result(result: sandy.EditResult) -> protocol.EditResult:
    """For `edit`."""
    return protocol.EditResult(error=result.error, path=result.path, occurrences=result.occurrences)


def delete_result(result: sandy.DeleteResult) -> protocol.DeleteResult:
    """For `delete`."""
    return protocol.DeleteResult(error=result.error, path=result.path)


def ls_result(result: sandy.LsResult) -> protocol.LsResult:
    """For `ls`."""
    return protocol.LsResult(error=result.error, entries=cast("list[protocol.FileInfo] | None", result.entries))


def glob_result(result: sandy.GlobResult) -> protocol.GlobResult:
    """For `glob`."""
    return protocol.GlobResult(
        error=result.error,
        matches=cast("list[protocol.FileInfo] | None", result.matches),
        truncated=result.truncated,
        truncation_reason=cast("protocol.GlobTruncationReason | None", result.truncation_reason),
    )


def grep_result(result: sandy.GrepResult) -> protocol.GrepResult:
    """For `grep`."""
    return protocol.GrepResult(
        error=result.error,
        matches=cast("list[protocol.GrepMatch] | None", result.matches),
        truncated=result.truncated,
    )
