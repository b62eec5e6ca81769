// links: sandy_files
// Edits: one byte (bit 0: replace all), OLD NUL NEW NUL TEXT. Accepted edits change what was asked
// for, keep the text UTF-8 and its line ends what they were; refused ones say the truth.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/files/edit.h"
#include "agent/files/utf8.h"
#include "broken.h"

namespace {

using namespace sandy::files;

std::size_t bare_newlines(const std::string& text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) ++count;
  }
  return count;
}

// As Python's str.replace.
std::string naive(std::string text, const std::string& from, const std::string& to,
                  std::uint64_t& count) {
  count = 0;
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
    ++count;
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool all = (data[0] & 1) != 0;
  std::string rest(data + 1, data + size);
  const auto field = [&] {
    const std::size_t nul = std::min(rest.find('\0'), rest.size());
    const std::string out = rest.substr(0, nul);
    rest.erase(0, std::min(nul + 1, rest.size()));
    return out;
  };
  const std::string from = field();
  const std::string to = field();
  const std::string& text = rest;

  const auto got = replace(text, from, to, all);
  if (!got) {
    const Code code = got.error().code;
    if ((code == Code::empty_old_string) != from.empty()) broken("empty_old_string");
    if (code == Code::no_change && from != to) broken("no_change");
    if (code == Code::not_a_text_file && is_utf8(text) && is_utf8(from) && is_utf8(to))
      broken("not_a_text_file");
    if (code == Code::string_not_found && text.find(from) != std::string::npos)
      broken("string_not_found");
    if (code == Code::multiple_occurrences && (all || got.error().count < 2))
      broken("multiple_occurrences");
    return 0;
  }
  if (from.empty() || from == to) broken("an edit that is none");
  if (got->occurrences == 0 || (!all && got->occurrences != 1)) broken("occurrences");
  if (!is_utf8(got->text)) broken("UTF-8");
  if (from.find('\n') == std::string::npos && to.find('\n') == std::string::npos &&
      text.size() < 65'536) {
    std::uint64_t count = 0;
    if (got->text != naive(text, from, to, count) || count != got->occurrences) broken("the text");
  }
  const bool crlf = text.find('\n') != std::string::npos && bare_newlines(text) == 0;
  if (crlf && from.find('\r') == std::string::npos && bare_newlines(got->text) != 0)
    broken("line ends");
  return 0;
}
