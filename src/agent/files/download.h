// The raw bytes of a file.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "agent/files/result.h"

namespace sandy::files {

// Streams the file to `sink`, in constant memory; returns the bytes. Where it has more than
// `max_bytes` it is too_large: at once by its size, or, where the size is not known (procfs) or
// grows, after the bytes that fit. Errors: is_directory; not_a_file for a FIFO, socket or device.
FileResult<std::uint64_t> download(const std::string& path, std::optional<std::uint64_t> max_bytes,
                                   const Sink& sink, std::stop_token stop = {});

}  // namespace sandy::files
