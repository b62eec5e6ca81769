#include "cgroup/cgroup_text.h"

#include <algorithm>
#include <charconv>

namespace sandy::cgroup {
namespace {

// Cuts the first line off.
std::string_view next_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  const auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// Cuts the first word off.
std::string_view next_word(std::string_view& text) {
  const auto start = std::min(text.find_first_not_of(" \t\n"), text.size());
  text.remove_prefix(start);
  const auto end = std::min(text.find_first_of(" \t\n"), text.size());
  const auto word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

template <typename Number>
std::optional<Number> number(std::string_view text) {
  Number out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return out;
}

}  // namespace

std::optional<std::string> unified_path(std::string_view proc_cgroup) {
  while (!proc_cgroup.empty()) {
    const auto line = next_line(proc_cgroup);
    if (line.starts_with("0::/")) return std::string(line.substr(3));
  }
  return {};
}

std::optional<std::uint64_t> flat_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    auto line = next_line(text);
    if (next_word(line) == key) return number<std::uint64_t>(next_word(line));
  }
  return {};
}

std::optional<std::uint64_t> single_value(std::string_view text) { return number<std::uint64_t>(next_word(text)); }

namespace {

// The numbers of a key, in lines "MAJOR:MINOR key=NUMBER key=NUMBER".
std::vector<std::uint64_t> io_numbers(std::string_view text, std::string_view key) {
  std::vector<std::uint64_t> out;
  while (!text.empty()) {
    auto line = next_line(text);
    for (auto word = next_word(line); !word.empty(); word = next_word(line)) {
      if (!word.starts_with(key) || !word.substr(key.size()).starts_with('=')) continue;
      if (const auto value = number<std::uint64_t>(word.substr(key.size() + 1))) out.push_back(*value);
    }
  }
  return out;
}

}  // namespace

std::uint64_t io_total(std::string_view io_stat, std::string_view key) {
  std::uint64_t out = 0;
  for (const auto value : io_numbers(io_stat, key)) out += value;
  return out;
}

std::optional<std::uint64_t> io_limit(std::string_view io_max, std::string_view key) {
  const auto limits = io_numbers(io_max, key);
  const auto lowest = std::ranges::min_element(limits);
  return lowest == limits.end() ? std::nullopt : std::optional(*lowest);
}

std::optional<double> pressure_some_avg10(std::string_view text) {
  constexpr std::string_view kKey = "avg10=";
  while (!text.empty()) {
    auto line = next_line(text);
    if (next_word(line) != "some") continue;
    for (auto word = next_word(line); !word.empty(); word = next_word(line)) {
      if (word.starts_with(kKey)) return number<double>(word.substr(kKey.size()));
    }
  }
  return {};
}

std::vector<int> process_ids(std::string_view cgroup_procs) {
  std::vector<int> out;
  for (auto word = next_word(cgroup_procs); !word.empty(); word = next_word(cgroup_procs)) {
    // 0 is a process that this PID namespace doesn't see.
    if (const auto pid = number<int>(word); pid && *pid > 0) out.push_back(*pid);
  }
  return out;
}

std::optional<int> innermost_pid(std::string_view proc_status) {
  while (!proc_status.empty()) {
    auto line = next_line(proc_status);
    if (next_word(line) != "NSpid:") continue;
    std::string_view last;
    for (auto word = next_word(line); !word.empty(); word = next_word(line)) last = word;
    return number<int>(last);
  }
  return {};
}

bool has_word(std::string_view words, std::string_view name) {
  for (auto word = next_word(words); !word.empty(); word = next_word(words)) {
    if (word == name) return true;
  }
  return false;
}

}  // namespace sandy::cgroup
