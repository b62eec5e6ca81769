#include "agent/files/download.h"

#include <fcntl.h>

#include <algorithm>
#include <vector>

#include "agent/files/regular_file.h"

namespace sandy::files {

FileResult<std::uint64_t> download(const std::string& path, std::optional<std::uint64_t> max_bytes,
                                   const Sink& sink, std::stop_token stop) {
  auto file = open_regular(AT_FDCWD, path);
  if (!file) return std::unexpected(file.error());
  const auto size = static_cast<std::uint64_t>(file->info.st_size);
  const auto too_large = [&] {
    return file_error(Code::too_large,
                      "the file has more than " + std::to_string(*max_bytes) + " bytes");
  };
  if (max_bytes && size > *max_bytes) return too_large();
  // A small file, the usual case, takes a small buffer and two reads.
  std::vector<char> buffer(std::clamp<std::uint64_t>(size + 1, 4096, kMaxChunk));
  std::uint64_t sent = 0;
  while (true) {
    if (stop.stop_requested()) return file_error(Code::cancelled);
    auto got = read_full(file->fd.get(), buffer);
    if (!got) return std::unexpected(got.error());
    if (max_bytes && *got > *max_bytes - sent) return too_large();
    if (*got > 0 && !sink({buffer.data(), *got})) return file_error(Code::cancelled);
    sent += *got;
    if (*got < buffer.size()) return sent;
  }
}

}  // namespace sandy::files
