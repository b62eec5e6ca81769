#include "agent/files/result.h"

#include <cerrno>
#include <utility>

#include "base/error.h"

namespace sandy::files {

std::string_view word(Code code) {
  switch (code) {
    case Code::file_not_found:
      return "file_not_found";
    case Code::permission_denied:
      return "permission_denied";
    case Code::is_directory:
      return "is_directory";
    case Code::not_a_directory:
      return "not_a_directory";
    case Code::not_a_file:
      return "not_a_file";
    case Code::invalid_path:
      return "invalid_path";
    case Code::read_only:
      return "read_only";
    case Code::no_space:
      return "no_space";
    case Code::too_large:
      return "too_large";
    case Code::exists:
      return "exists";
    case Code::io:
      return "io";
    case Code::offset:
      return "offset";
    case Code::not_a_text_file:
      return "not_a_text_file";
    case Code::string_not_found:
      return "string_not_found";
    case Code::multiple_occurrences:
      return "multiple_occurrences";
    case Code::empty_old_string:
      return "empty_old_string";
    case Code::no_change:
      return "no_change";
    case Code::invalid_pattern:
      return "invalid_pattern";
    case Code::pattern_too_broad:
      return "pattern_too_broad";
    case Code::cancelled:
      return "cancelled";
  }
  return "io";
}

std::unexpected<FileError> file_error(Code code, std::string detail) {
  FileError error;
  error.code = code;
  error.detail = std::move(detail);
  return std::unexpected<FileError>(std::move(error));
}

std::unexpected<FileError> errno_error(int error_number, std::string_view action) {
  const auto code = [&] {
    switch (error_number) {
      case ENOENT:
      case ENOTDIR:
        return Code::file_not_found;
      case EACCES:
      case EPERM:
      case EBUSY:  // a mount point, or a file in use by the kernel
        return Code::permission_denied;
      case EISDIR:
        return Code::is_directory;
      case ENXIO:
        return Code::not_a_file;  // open(2) of a socket
      case ELOOP:
      case ENAMETOOLONG:
        return Code::invalid_path;
      case EROFS:
        return Code::read_only;
      case ENOSPC:
      case EDQUOT:
        return Code::no_space;
      case EFBIG:
        return Code::too_large;
      case EEXIST:
        return Code::exists;
      default:
        return Code::io;
    }
  }();
  return file_error(code, std::string(action) + ": " + errno_text(error_number));
}

FileResult<void> check_path(std::string_view path) {
  if (path.empty()) return file_error(Code::invalid_path, "the path is empty");
  if (path.find('\0') != std::string_view::npos) {
    return file_error(Code::invalid_path, "the path has a NUL byte");
  }
  return {};
}

}  // namespace sandy::files
