#include "policy/base64.h"

#include <cstdint>

namespace sandy::policy {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (i + j < bytes.size() ? static_cast<std::uint8_t>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      const bool padding = i + j > bytes.size();
      out += padding ? '=' : kAlphabet[group >> (18 - 6 * j) & 63];
    }
  }
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < text.size() - padding; ++i) {
    const std::size_t value = kAlphabet.find(text[i]);
    if (value == std::string_view::npos) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(value);
    if (i % 4 == 3) {
      for (const int shift : {16, 8, 0}) out += static_cast<char>(group >> shift & 0xFF);
      group = 0;
    }
  }
  if (padding == 1) {  // 18 bits, of which 2 are unused
    if ((group & 3) != 0) return std::nullopt;
    for (const int shift : {10, 2}) out += static_cast<char>(group >> shift & 0xFF);
  } else if (padding == 2) {  // 12 bits, of which 4 are unused
    if ((group & 15) != 0) return std::nullopt;
    out += static_cast<char>(group >> 4 & 0xFF);
  }
  return out;
}

}  // namespace sandy::policy
