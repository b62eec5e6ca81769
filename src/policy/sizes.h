// Sizes, durations and counts as people write them. Pure parsing; ranges that depend on the key are
// validate()'s.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "policy/draft.h"

namespace sandy::policy {

// Bytes: "1048576", "100k", "512M", "1.5GiB", "2GB", "1T"; k, M, G, T in either case, all powers of
// 1024 (as in systemd.exec(5) and in container engines), with "B" or "iB" after them or not. A
// fraction of a byte is cut off.
Result<std::uint64_t> parse_size(const Text& text);

// Milliseconds: "600" and "1.5" (seconds), "500ms", "10m", "1h30m", "1h 30m", "2d". Units fall from
// left to right, each at most once; only the last number may have a fraction.
Result<std::uint64_t> parse_duration(const Text& text);

// Cores: "2", "1.5", "0.25". Finite and not negative.
Result<double> parse_cpus(const Text& text);

// A whole number in decimal, without sign.
Result<std::uint64_t> parse_count(const Text& text);

// `key: "value"` for the first part of an Error; long values are cut.
std::string quoted(std::string_view key, std::string_view value);

}  // namespace sandy::policy
