// Lines and words of the host's configuration files.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace sandy::proxy {

// Takes the first line off `text`, without its end.
inline std::string_view next_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  const auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// Those before a comment (#, and ; at the line's begin).
inline std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  line = line.substr(0, line.starts_with(';') ? 0 : line.find('#'));
  while (true) {
    const auto start = line.find_first_not_of(" \t\r");
    if (start == std::string_view::npos) return out;
    const auto stop = std::min(line.find_first_of(" \t\r", start), line.size());
    out.push_back(line.substr(start, stop - start));
    line.remove_prefix(stop);
  }
}

}  // namespace sandy::proxy
