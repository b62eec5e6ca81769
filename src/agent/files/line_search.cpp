#include "agent/files/line_search.h"

#include <algorithm>
#include <cstring>

#include "agent/files/grep.h"
#include "agent/files/utf8.h"

namespace sandy::files {
namespace {

constexpr std::size_t kBlock = 262'144;
constexpr std::size_t kContext = kGrepTextCap / 2;  // kept before a hit in a huge line
constexpr std::size_t kNowhere = std::string_view::npos;

std::size_t find_from(const char* data, std::size_t begin, std::size_t end,
                      std::string_view needle) {
  if (needle.empty()) return begin < end ? begin : kNowhere;
  const void* hit = ::memmem(data + begin, end - begin, needle.data(), needle.size());
  return hit == nullptr ? kNowhere : static_cast<std::size_t>(static_cast<const char*>(hit) - data);
}

std::size_t next_newline(const char* data, std::size_t begin, std::size_t end) {
  const void* hit = begin < end ? std::memchr(data + begin, '\n', end - begin) : nullptr;
  return hit == nullptr ? kNowhere : static_cast<std::size_t>(static_cast<const char*>(hit) - data);
}

// The index behind the last newline in [begin, end), or `begin`.
std::size_t behind_last_newline(const char* data, std::size_t begin, std::size_t end) {
  const void* hit = begin < end ? ::memrchr(data + begin, '\n', end - begin) : nullptr;
  return hit == nullptr ? begin
                        : static_cast<std::size_t>(static_cast<const char*>(hit) - data) + 1;
}

std::uint64_t count_newlines(const char* data, std::size_t begin, std::size_t end) {
  std::uint64_t count = 0;
  for (std::size_t at = next_newline(data, begin, end); at != kNowhere;
       at = next_newline(data, at + 1, end)) {
    ++count;
  }
  return count;
}

}  // namespace

LineSearch::LineSearch(std::string_view pattern) {
  for (std::string_view rest = pattern; !rest.empty();) {
    const std::size_t newline = std::min(rest.find('\n'), rest.size());
    // An empty line among others would find everything; nobody means that.
    if (newline > 0) needles_.emplace_back(rest.substr(0, newline));
    rest.remove_prefix(std::min(newline + 1, rest.size()));
  }
  if (needles_.empty()) needles_.emplace_back();
  for (const std::string& needle : needles_) longest_ = std::max(longest_, needle.size());
  may_skip_holes_ = std::ranges::none_of(
      needles_, [](const auto& needle) { return needle.find('\0') != std::string::npos; });
  next_.resize(needles_.size());
  capacity_ = kBlock + kContext + 2 * longest_;
  buffer_ = std::make_unique_for_overwrite<char[]>(capacity_);
}

std::string_view LineSearch::excerpt(std::size_t line_begin, std::size_t line_end, bool line_cut,
                                     std::size_t hit) const {
  std::size_t begin = line_begin;
  if (line_end - line_begin > kGrepTextCap && hit - line_begin > kContext) {
    begin = hit - kContext;
    line_cut = true;
  }
  const auto continues = [&](std::size_t at) {
    return at < hit && (static_cast<unsigned char>(buffer_[at]) & 0xC0) == 0x80;
  };
  for (int i = 0; line_cut && i < 3 && continues(begin); ++i) ++begin;
  return utf8_prefix({buffer_.get() + begin, line_end - begin}, kGrepTextCap);
}

// Reports the lines of [begin, end), which starts with a line. False: enough. `count_rest` keeps
// the line number right for what follows.
bool LineSearch::search(Block& block, std::size_t begin, std::size_t end, bool count_rest,
                        const Found& found) {
  const char* data = buffer_.get();
  std::size_t counted = begin;  // block.line is the number of the line that starts here
  for (std::size_t i = 0; i < needles_.size(); ++i)
    next_[i] = find_from(data, begin, end, needles_[i]);
  while (true) {
    const std::size_t hit = std::ranges::min(next_);
    if (hit == kNowhere) break;
    const std::size_t line_begin = behind_last_newline(data, counted, hit);
    const bool line_cut = block.line_cut && line_begin == begin;
    block.line += count_newlines(data, counted, line_begin);
    const std::size_t newline = next_newline(data, hit, end);
    const std::size_t line_end = std::min(newline, end);
    if (!found(block.line, excerpt(line_begin, line_end, line_cut, hit))) return false;
    if (newline == kNowhere) {
      block.line_reported = true;
      return true;
    }
    counted = newline + 1;
    ++block.line;
    for (std::size_t i = 0; i < needles_.size(); ++i) {
      if (next_[i] < counted) next_[i] = find_from(data, counted, end, needles_[i]);
    }
  }
  if (count_rest) block.line += count_newlines(data, counted, end);
  return true;
}

FileResult<LineSearch::End> LineSearch::run(const RegularFile& file, const Budget& budget,
                                            const std::stop_token& stop, const Found& found) {
  Block block;
  std::uint64_t offset = 0;
  const bool sparse = may_skip_holes_ && is_sparse(file.info);
  while (true) {
    if (stop.stop_requested()) return file_error(Code::cancelled);
    if (budget.spent()) return End::over_budget;
    if (sparse && block.line_cut) {
      const std::uint64_t data =
          skip_hole(file.fd.get(), offset, static_cast<std::uint64_t>(file.info.st_size));
      if (data > offset) block.have = 0;  // the hole is between; nothing spans it
      offset = data;
    }
    const std::size_t room = capacity_ - block.have;
    auto got = read_full_at(file.fd.get(), {buffer_.get() + block.have, room}, offset);
    if (!got) return std::unexpected(got.error());
    offset += *got;
    block.have += *got;
    const bool last = *got < room;
    std::size_t begin = 0;
    if (block.line_reported) {
      const std::size_t newline = next_newline(buffer_.get(), 0, block.have);
      if (newline == kNowhere) {
        if (last) return End::file;
        block.have = 0;
        continue;
      }
      begin = newline + 1;
      ++block.line;
      block.line_reported = block.line_cut = false;
    }
    const std::size_t end =
        last ? block.have : behind_last_newline(buffer_.get(), begin, block.have);
    if (end > begin) {
      if (!search(block, begin, end, !last, found)) return End::enough;
      if (last) return End::file;
      block.line_cut = false;
      block.line_reported = false;
    } else if (last) {
      return End::file;
    }
    std::size_t keep_from = end;
    if (end == begin && begin == 0) {
      // The buffer is full of one line.
      if (!search(block, 0, block.have, false, found)) return End::enough;
      block.line_cut = true;
      keep_from = block.line_reported ? block.have : block.have - kContext - longest_;
    }
    std::memmove(buffer_.get(), buffer_.get() + keep_from, block.have - keep_from);
    block.have -= keep_from;
  }
}

}  // namespace sandy::files
