// links: sandy_wire
// The agent's configuration: HEADER NUL PAYLOAD. What is accepted is written as a frame that gives the same again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "broken.h"
#include "session/wire/configuration.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sandy::wire;
  const std::string input(data, data + size);
  const std::size_t nul = std::min(input.find('\0'), input.size());
  auto frame = parse_header(std::string_view(input).substr(0, nul));
  if (!frame) return 0;
  frame->payload = input.substr(std::min(nul + 1, input.size()));
  const auto first = parse_configuration(*frame);
  if (!first) return 0;
  const auto encoded = encode_configuration(*first);
  auto again = parse_header(std::string_view(encode_head(encoded.header, encoded.payload.size())).substr(kPrefixBytes));
  if (!again) broken("the header that is written is not read");
  again->payload = encoded.payload;
  const auto second = parse_configuration(*again);
  if (!second) broken("what is written is not read");
  if (first->workspace != second->workspace || first->home != second->home || first->cwd != second->cwd || first->shell != second->shell ||
      first->root_names != second->root_names || first->environment != second->environment || first->workspace_names != second->workspace_names ||
      first->open_files != second->open_files || first->file_size != second->file_size) {
    broken("the meaning changed");
  }
  // The last of two variables with one name counts, and no other name is touched.
  const auto merged = merge_environment(first->environment, first->environment);
  if (merged.size() != first->environment.size()) broken("merging with itself adds variables");
  return 0;
}
