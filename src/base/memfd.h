// Bytes behind a descriptor, without a file: memfd_create(2).
#pragma once

#include <string_view>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy {

// An anonymous file that holds `bytes`, sealed against every change, positioned at its start.
// `name` is for humans (/proc/PID/fd). CLOEXEC.
Result<UniqueFd> sealed_memfd(const char* name, std::string_view bytes);

// Writes all of `bytes`, retrying short writes and EINTR. The error names errno.
Result<void> write_all(int fd, std::string_view bytes);

}  // namespace sandy
