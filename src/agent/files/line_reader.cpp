#include "agent/files/line_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace sandy::files {

LineReader::LineReader(const RegularFile& file, std::stop_token stop)
    : file_(file), stop_(std::move(stop)), buffer_(65'536), sparse_(is_sparse(file.info)) {}

FileResult<bool> LineReader::fill() {
  if (stop_.stop_requested()) return file_error(Code::cancelled);
  auto got = read_full_at(file_.fd.get(), buffer_, offset_);
  if (!got) return std::unexpected(got.error());
  begin_ = 0;
  end_ = *got;
  offset_ += end_;
  const void* cr = end_ == 0 ? nullptr : std::memchr(buffer_.data(), '\r', end_);
  next_cr_ = cr == nullptr
                 ? end_
                 : static_cast<std::size_t>(static_cast<const char*>(cr) - buffer_.data());
  return end_ > 0;
}

std::size_t LineReader::line_end() {
  if (next_cr_ < begin_) {
    const void* cr = std::memchr(buffer_.data() + begin_, '\r', end_ - begin_);
    next_cr_ = cr == nullptr
                   ? end_
                   : static_cast<std::size_t>(static_cast<const char*>(cr) - buffer_.data());
  }
  const void* lf = std::memchr(buffer_.data() + begin_, '\n', next_cr_ - begin_);
  return lf == nullptr ? next_cr_
                       : static_cast<std::size_t>(static_cast<const char*>(lf) - buffer_.data());
}

FileResult<LineReader::Line> LineReader::advance(std::string* out, std::size_t keep) {
  bool any = false;
  while (true) {
    if (begin_ == end_) {
      auto more = fill();
      if (!more) return std::unexpected(more.error());
      if (!*more) return any ? Line::whole : Line::none;
    }
    any = true;
    const std::size_t stop_at = line_end();
    if (out != nullptr) {
      const std::size_t take = std::min(stop_at - begin_, keep);
      out->append(buffer_.data() + begin_, take);
      keep -= take;
      begin_ += take;
      if (begin_ < stop_at) return Line::cut;
    }
    begin_ = stop_at;
    if (begin_ == end_) {
      // A hole has no line ends: jump over it (a sparse file may claim any size).
      if (out == nullptr && sparse_) {
        offset_ =
            skip_hole(file_.fd.get(), offset_, static_cast<std::uint64_t>(file_.info.st_size));
      }
      continue;
    }
    const bool cr = buffer_[begin_++] == '\r';
    if (cr) {
      if (begin_ == end_) {
        if (auto more = fill(); !more) return std::unexpected(more.error());
      }
      if (begin_ < end_ && buffer_[begin_] == '\n') ++begin_;
    }
    return Line::whole;
  }
}

FileResult<LineReader::Line> LineReader::next(std::string& out, std::size_t keep) {
  return advance(&out, keep);
}

FileResult<LineReader::Line> LineReader::skip() {
  return advance(nullptr, 0);
}

FileResult<bool> LineReader::at_end() {
  if (begin_ < end_) return false;
  auto more = fill();
  if (!more) return std::unexpected(more.error());
  return !*more;
}

}  // namespace sandy::files
