#include "session/output_log.h"

#include <algorithm>

namespace sandy::session {
namespace {

constexpr std::size_t kBlock = 65'536;  // small pieces are put together up to here
constexpr std::size_t kBlockCost = 64;   // of each, however little it holds
constexpr std::size_t kFewBlocks = 1'024;

}  // namespace

void OutputLog::append(OutputStream stream, std::string bytes) {
  if (bytes.empty()) return;
  const auto size = bytes.size();
  if (!blocks_.empty() && blocks_.back().stream == stream && blocks_.back().bytes.size() + size <= kBlock) {
    blocks_.back().bytes += bytes;
  } else {
    blocks_.push_back({stream, end_, std::move(bytes)});
  }
  end_ += size;
}

void OutputLog::trim(std::uint64_t needed) {
  begin_ = std::max(begin_, std::min(needed, end_ - std::min<std::uint64_t>(end_, limit_)));
  const auto end_of_first = [&] { return blocks_.front().offset + blocks_.front().bytes.size(); };
  // Outputs that alternate byte by byte have a block for each.
  const std::size_t most = kFewBlocks + limit_ / kBlockCost;
  while (!blocks_.empty() && (end_of_first() <= begin_ || (blocks_.size() > most && end_of_first() <= needed))) {
    begin_ = std::max(begin_, end_of_first());
    blocks_.pop_front();
  }
}

void OutputLog::seal() {
  for (auto& block : blocks_) block.bytes.shrink_to_fit();
  blocks_.shrink_to_fit();
}

OutputLog::Piece OutputLog::at(std::uint64_t offset, std::size_t most) const {
  // The last one that begins at or before it.
  const auto after = std::ranges::upper_bound(blocks_, offset, {}, &Block::offset);
  const auto& block = *std::prev(after);
  return {block.stream, std::string_view(block.bytes).substr(offset - block.offset, most)};
}

}  // namespace sandy::session
