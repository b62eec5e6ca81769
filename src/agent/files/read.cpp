#include "agent/files/read.h"

#include <fcntl.h>

#include <array>
#include <vector>

#include "agent/files/line_reader.h"
#include "agent/files/regular_file.h"
#include "agent/files/utf8.h"

namespace sandy::files {
namespace {

constexpr std::size_t kPrefix = 8192;  // bytes that decide between text and binary
constexpr std::uint64_t kCountCap =
    1024ULL * 1024;  // bytes: up to here lines are counted to the end
constexpr std::size_t kTextBudget = kReadCap - kTruncationReserve;

std::unexpected<FileError> too_large() {
  return file_error(Code::too_large, "binary file exceeds maximum preview size of " +
                                         std::to_string(kReadCap) + " bytes");
}

FileResult<ReadPage> read_binary(const RegularFile& file) {
  if (file.info.st_size > static_cast<off_t>(kReadCap)) return too_large();
  ReadPage page;
  page.binary = true;
  // One byte more than the cap shows a file that grew, or that claims size 0 (procfs).
  page.content.resize(file.info.st_size > 0 ? static_cast<std::size_t>(file.info.st_size) + 1
                                            : kReadCap + 1);
  auto got = read_full_at(file.fd.get(), page.content, 0);
  if (!got) return std::unexpected(got.error());
  if (*got > kReadCap) return too_large();
  page.content.resize(*got);
  return page;
}

// Lines of the file where that is known or cheap to find out; `seen` have been read.
FileResult<std::optional<std::uint64_t>> count_lines(LineReader& lines, const RegularFile& file,
                                                     std::uint64_t seen, bool inside_line) {
  if (file.info.st_size > static_cast<off_t>(kCountCap)) return std::nullopt;
  if (inside_line) {
    if (auto rest = lines.skip(); !rest) return std::unexpected(rest.error());
  }
  while (lines.position() <= kCountCap) {
    auto line = lines.skip();
    if (!line) return std::unexpected(line.error());
    if (*line == LineReader::Line::none) return seen;
    ++seen;
  }
  return std::nullopt;
}

FileResult<ReadPage> read_text(const RegularFile& file, const ReadOptions& options,
                               std::stop_token stop) {
  ReadPage page;
  LineReader lines(file, std::move(stop));
  std::uint64_t seen = 0;
  while (seen < options.offset) {
    auto line = lines.skip();
    if (!line) return std::unexpected(line.error());
    if (*line == LineReader::Line::none) break;
    ++seen;
  }
  std::uint64_t given = 0;
  bool inside_line = false;
  std::string raw;
  while (seen == options.offset + given && given < options.limit) {
    raw.clear();
    // Repairing never shortens text, so more raw bytes than the budget can't fit.
    auto line = lines.next(raw, kTextBudget + 4);
    if (!line) return std::unexpected(line.error());
    if (*line == LineReader::Line::none) break;
    ++seen;
    inside_line = *line == LineReader::Line::cut;
    std::string piece = given == 0 ? "" : "\n";
    const std::size_t repaired = append_repaired(piece, raw, inside_line);
    page.repaired += repaired;
    if (inside_line || piece.size() > kTextBudget - page.content.size()) {
      page.truncated = true;
      page.content += utf8_prefix(piece, kTextBudget - page.content.size());
      break;
    }
    page.content += piece;
    ++given;
  }
  if (given == 0 && !page.truncated) {
    auto error =
        file_error(Code::offset, "line offset " + std::to_string(options.offset) +
                                     " exceeds file length (" + std::to_string(seen) + " lines)");
    error.error().offset = options.offset;
    error.error().lines = seen;
    return error;
  }
  auto total = count_lines(lines, file, seen, inside_line);
  if (!total) return std::unexpected(total.error());
  if (!*total && !inside_line) {
    auto end = lines.at_end();
    if (!end) return std::unexpected(end.error());
    if (*end) *total = seen;
  }
  if (page.truncated && given == 0) given = 1;
  ReadWindow window;
  window.start_line = options.offset + 1;
  window.end_line = options.offset + given;
  window.total_lines = *total;
  if (!*total || window.end_line < **total) window.next_offset = window.end_line;
  page.window = window;
  return page;
}

}  // namespace

FileResult<ReadPage> read(const std::string& path, const ReadOptions& options,
                          std::stop_token stop) {
  auto file = open_regular(AT_FDCWD, path);
  if (!file) {
    if (file.error().code == Code::is_directory) file.error().code = Code::not_a_file;
    return std::unexpected(file.error());
  }
  std::array<char, kPrefix> prefix;
  auto got = read_full_at(file->fd.get(), prefix, 0);
  if (!got) return std::unexpected(got.error());
  // Not judged by st_size, which is 0 for files of procfs that do have content.
  if (*got == 0) {
    ReadPage page;
    page.empty = true;
    return page;
  }
  if (options.binary || !is_utf8({prefix.data(), *got}, *got == kPrefix)) return read_binary(*file);
  if (options.limit == 0) {
    ReadPage page;
    page.no_lines_requested = true;
    return page;
  }
  return read_text(*file, options, std::move(stop));
}

}  // namespace sandy::files
