// Opening a file for reading so that nothing can make the agent hang.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>

#include "agent/files/result.h"
#include "base/unique_fd.h"

namespace sandy::files {

struct RegularFile {
  UniqueFd fd;
  struct stat info = {};
};

// Opens `path`, relative to the directory descriptor `base` (or AT_FDCWD), for reading if it is a
// regular file. A directory is `is_directory`; a FIFO, socket or device is `not_a_file` and is not
// opened. `extra_flags` joins the open(2) flags (O_NOFOLLOW).
//
// A file whose mode has no read bit at all is `permission_denied`, also for a caller that the
// kernel would let through (uid 0 outside a user namespace): the answer must not depend on who runs
// the agent.
FileResult<RegularFile> open_regular(int base, const std::string& path, int extra_flags = 0);

// Reads up to `buffer.size()` bytes at the file position, retrying EINTR and short reads; fewer
// mean the end of the file.
FileResult<std::size_t> read_full(int fd, std::span<char> buffer);

// As read_full, at `offset`.
FileResult<std::size_t> read_full_at(int fd, std::span<char> buffer, std::uint64_t offset);

// True where the file has fewer blocks than bytes, so that holes are worth skipping.
bool is_sparse(const struct stat& info);

// The first offset at or after `offset` that may hold data, per lseek(2) SEEK_DATA: the file's size
// where only a hole is left, `offset` itself where the file system can't say.
std::uint64_t skip_hole(int fd, std::uint64_t offset, std::uint64_t size);

}  // namespace sandy::files
