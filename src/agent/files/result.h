// What a file operation gives back: a value, or a word of the wire protocol with numbers and a
// detail.
//
// Everything in this folder is plain blocking code that runs inside the sandbox with the sandbox's
// rights: nothing here defends the host, so paths are used as they are given. It does defend the
// agent itself: no path may make it hang, crash or grow without bound.
//
// The operations need SIGXFSZ to be ignored by the process (a write past RLIMIT_FSIZE is then
// `too_large`).
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <string_view>

namespace sandy::files {

// One per word of src/session/PROTOCOL.md, "File operations".
enum class Code {
  file_not_found,  // also ENOTDIR in the middle of a path
  permission_denied,
  is_directory,
  not_a_directory,
  not_a_file,    // a FIFO, socket or device; for read and edit also a directory
  invalid_path,  // empty, with a NUL byte, too long, or a loop of symlinks
  read_only,
  no_space,
  too_large,
  exists,
  io,                    // anything else; `detail` says what
  offset,                // read: past the end; `offset` and `lines` are set
  not_a_text_file,       // edit: the file is not UTF-8
  string_not_found,      // edit
  multiple_occurrences,  // edit without replace_all; `count` is set
  empty_old_string,      // edit
  no_change,             // edit: old and new are the same string
  invalid_pattern,       // glob, grep: a ".." segment
  pattern_too_broad,     // glob, grep: braces expand to more than 1000 patterns
  cancelled,
};

struct FileError {
  Code code = Code::io;
  std::string detail;  // for a person; printable UTF-8; may be empty
  std::uint64_t offset = 0;
  std::uint64_t lines = 0;
  std::uint64_t count = 0;
};

// The word on the wire, e.g. "file_not_found".
std::string_view word(Code code);

template <class T>
using FileResult = std::expected<T, FileError>;

std::unexpected<FileError> file_error(Code code, std::string detail = {});

// The error that an errno value of a path operation means. `action` starts the detail: "rename: …".
std::unexpected<FileError> errno_error(int error_number, std::string_view action);

// Refuses what no system call can take: "" and embedded NUL bytes.
FileResult<void> check_path(std::string_view path);

// Consumer of data, called with at most kMaxChunk bytes at a time. False stops the operation
// (`cancelled`).
using Sink = std::function<bool(std::string_view)>;
inline constexpr std::size_t kMaxChunk = 262'144;  // the protocol's limit for one data frame

}  // namespace sandy::files
