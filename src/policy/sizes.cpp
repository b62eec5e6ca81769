#include "policy/sizes.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace sandy::policy {
namespace {

// Wide enough that number × unit can't wrap: 18 decimals × 2^40 or 86,400,000 is below 2^100.
__extension__ using Wide = unsigned __int128;

constexpr std::size_t kMaxDecimals = 18;
constexpr std::size_t kMaxShown = 120;
constexpr char kSizeFix[] =
    "write bytes, or a number with k, M, G or T: 1048576, \"512M\", \"1.5G\"";
constexpr char kDurationFix[] =
    "write seconds, or numbers with d, h, m, s or ms: 600, \"10m\", \"1h30m\", \"500ms\"";
constexpr char kTooLarge[] = "larger than 64 bits can hold";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "12.5" = 125 with one decimal.
struct Decimal {
  std::uint64_t whole = 0;
  std::uint64_t fraction = 0;
  std::uint64_t scale = 1;  // 10^decimals
  bool has_fraction = false;
};

enum class NumberError { not_a_number, too_large, too_many_decimals };

// Takes digits[.digits] from the front of `text`.
std::expected<Decimal, NumberError> take_decimal(std::string_view& text) {
  Decimal number;
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  if (digits == 0) return std::unexpected(NumberError::not_a_number);
  if (std::from_chars(text.data(), text.data() + digits, number.whole).ec != std::errc{}) {
    return std::unexpected(NumberError::too_large);
  }
  text.remove_prefix(digits);
  if (text.empty() || text[0] != '.') return number;
  text.remove_prefix(1);
  std::size_t decimals = 0;
  while (decimals < text.size() && is_digit(text[decimals])) {
    if (decimals == kMaxDecimals) return std::unexpected(NumberError::too_many_decimals);
    number.fraction = number.fraction * 10 + static_cast<std::uint64_t>(text[decimals] - '0');
    number.scale *= 10;
    ++decimals;
  }
  if (decimals == 0) return std::unexpected(NumberError::not_a_number);
  text.remove_prefix(decimals);
  number.has_fraction = true;
  return number;
}

std::optional<std::uint64_t> times(const Decimal& number, std::uint64_t unit) {
  const Wide product = Wide{number.whole} * unit + Wide{number.fraction} * unit / number.scale;
  if (product > std::numeric_limits<std::uint64_t>::max()) return std::nullopt;
  return static_cast<std::uint64_t>(product);
}

std::unexpected<Error> bad_number(const Text& text, NumberError error, const char* kind,
                                  const char* fix) {
  switch (error) {
    case NumberError::too_large:
      return fail(quoted(text.key, text.value), kTooLarge);
    case NumberError::too_many_decimals:
      return fail(quoted(text.key, text.value), "more than 18 decimals");
    case NumberError::not_a_number:
      break;
  }
  if (!text.value.empty() && text.value[0] == '-') {
    return fail(quoted(text.key, text.value), "may not be negative", fix);
  }
  return fail(quoted(text.key, text.value), std::string("not a ") + kind, fix);
}

// The factor of a size's unit, or 0.
std::uint64_t size_unit(std::string_view unit) {
  if (unit.empty() || unit == "B" || unit == "b") return 1;
  const std::string_view rest = unit.substr(1);
  if (!rest.empty() && rest != "B" && rest != "b" && rest != "iB" && rest != "ib") return 0;
  switch (unit[0]) {
    case 'k':
    case 'K':
      return std::uint64_t{1} << 10;
    case 'm':
    case 'M':
      return std::uint64_t{1} << 20;
    case 'g':
    case 'G':
      return std::uint64_t{1} << 30;
    case 't':
    case 'T':
      return std::uint64_t{1} << 40;
    default:
      return 0;
  }
}

struct DurationUnit {
  std::string_view name;
  std::uint64_t ms;
};
constexpr std::array<DurationUnit, 5> kDurationUnits{
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

}  // namespace

std::string quoted(std::string_view key, std::string_view value) {
  std::string out(key);
  out += ": \"";
  out += printable(value.substr(0, kMaxShown));
  out += value.size() > kMaxShown ? "…\"" : "\"";
  return out;
}

Result<std::uint64_t> parse_size(const Text& text) {
  std::string_view rest = text.value;
  const auto number = take_decimal(rest);
  if (!number) return bad_number(text, number.error(), "size", kSizeFix);
  if (rest.size() > 1 && rest[0] == ' ') rest.remove_prefix(1);
  const std::uint64_t unit = size_unit(rest);
  if (unit == 0) return fail(quoted(text.key, text.value), "not a size", kSizeFix);
  if (unit == 1 && number->has_fraction && number->fraction != 0) {
    return fail(quoted(text.key, text.value), "not a whole number of bytes", kSizeFix);
  }
  const auto bytes = times(*number, unit);
  if (!bytes) return fail(quoted(text.key, text.value), kTooLarge);
  return *bytes;
}

Result<std::uint64_t> parse_duration(const Text& text) {
  const auto refuse = [&](std::string why) {
    return fail(quoted(text.key, text.value), std::move(why), kDurationFix);
  };
  std::string_view rest = text.value;
  std::uint64_t total = 0;
  std::size_t next_unit = 0;  // units before it were used
  bool last = false;
  bool first = true;
  do {
    const auto number = take_decimal(rest);
    if (!number) return bad_number(text, number.error(), "duration", kDurationFix);
    if (last) return refuse("only the last number may have a fraction");
    last = number->has_fraction;
    std::size_t length = 0;
    while (length < rest.size() && !is_digit(rest[length]) && rest[length] != ' ') ++length;
    std::string_view name = rest.substr(0, length);
    rest.remove_prefix(length);
    if (name.empty() && first && rest.empty()) name = "s";
    std::size_t unit = 0;
    while (unit < kDurationUnits.size() && kDurationUnits[unit].name != name) ++unit;
    if (name.empty()) return refuse("a number without its unit");
    if (unit == kDurationUnits.size()) return refuse("not a duration");
    if (unit < next_unit) return refuse("units must fall from left to right, each once");
    next_unit = unit + 1;
    const auto ms = times(*number, kDurationUnits[unit].ms);
    if (!ms || __builtin_add_overflow(total, *ms, &total)) return refuse(kTooLarge);
    if (rest.size() > 1 && rest[0] == ' ') rest.remove_prefix(1);
    first = false;
  } while (!rest.empty());
  return total;
}

Result<double> parse_cpus(const Text& text) {
  constexpr char kFix[] = "write cores: 2, 1.5, 0.25";
  std::string_view rest = text.value;
  const auto number = take_decimal(rest);
  // The digits are read again as a double: the shortest text of a double may have more decimals
  // than a Decimal.
  const bool shape = number || number.error() != NumberError::not_a_number;
  double cpus = 0;
  const char* end = text.value.data() + text.value.size();
  const auto [stop, error] =
      std::from_chars(text.value.data(), end, cpus, std::chars_format::fixed);
  if (!shape || error == std::errc::invalid_argument || stop != end) {
    const bool negative = !text.value.empty() && text.value[0] == '-';
    return fail(quoted(text.key, text.value),
                negative ? "may not be negative" : "not a number of cores", kFix);
  }
  if (error != std::errc{} || !std::isfinite(cpus)) {
    return fail(quoted(text.key, text.value), "larger than a number can be", kFix);
  }
  return cpus;
}

Result<std::uint64_t> parse_count(const Text& text) {
  std::uint64_t count = 0;
  const char* end = text.value.data() + text.value.size();
  const auto [stop, error] = std::from_chars(text.value.data(), end, count);
  if (error == std::errc::result_out_of_range && stop == end) {
    return fail(quoted(text.key, text.value), kTooLarge);
  }
  if (error != std::errc{} || stop != end) {
    return bad_number(text, NumberError::not_a_number, "whole number", "write decimal digits: 512");
  }
  return count;
}

}  // namespace sandy::policy
