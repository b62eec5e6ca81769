#include "session/wire/frame.h"

#include <limits>
#include <set>

namespace sandy::wire {
namespace {

std::uint32_t load_le32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<std::uint8_t>(bytes[static_cast<std::size_t>(i)]);
  return value;
}

void store_le32(std::string& out, std::size_t value) {
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

// nlohmann's parser keeps the last of two equal keys; a callback sees both, so that we can refuse them.
class KeyWatch {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    // `depth` is that of what surrounds the new object or array.
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= kMaxDepth) bad_ = true;
    switch (event) {
      case Json::parse_event_t::object_start:
        keys_.emplace_back();
        break;
      case Json::parse_event_t::object_end:
        keys_.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!keys_.back().insert(parsed.get_ref<const std::string&>()).second) bad_ = true;
        break;
      default:
        break;
    }
    return true;
  }
  bool bad() const { return bad_; }

 private:
  std::vector<std::set<std::string>> keys_;
  bool bad_ = false;
};

}  // namespace

std::string_view Frame::word(const char* key) const {
  const auto it = header.find(key);
  if (it == header.end() || !it->is_string()) return {};
  return it->get_ref<const std::string&>();
}

std::uint64_t Frame::number(const char* key, std::uint64_t otherwise) const {
  const auto it = header.find(key);
  return it != header.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : otherwise;
}

bool Frame::flag(const char* key, bool otherwise) const {
  const auto it = header.find(key);
  return it != header.end() && it->is_boolean() ? it->get<bool>() : otherwise;
}

std::optional<Frame::Cut> Frame::cut() const {
  Cut cut;
  std::string_view rest = payload;
  if (const auto it = header.find("args"); it != header.end()) {
    if (!it->is_array() || it->size() > kMaxArgs) return std::nullopt;
    cut.args.reserve(it->size());
    for (const Json& length : *it) {
      if (!length.is_number_unsigned()) return std::nullopt;
      const auto n = length.get<std::uint64_t>();
      if (n > rest.size()) return std::nullopt;
      cut.args.push_back(rest.substr(0, n));
      rest.remove_prefix(n);
    }
  }
  cut.data = rest;
  return cut;
}

Json event(std::uint32_t id, std::string_view ev) { return {{"id", id}, {"ev", ev}}; }
Json credit_event(std::uint32_t id, std::size_t bytes) { return {{"id", id}, {"ev", "credit"}, {"bytes", bytes}}; }
Json request(std::string_view op) { return {{"op", op}}; }
Json credit_request(std::size_t bytes) { return {{"op", "credit"}, {"bytes", bytes}}; }

std::optional<Sizes> read_sizes(std::string_view prefix, std::size_t max_payload) {
  const Sizes sizes{load_le32(prefix), load_le32(prefix.substr(4))};
  if (sizes.header < 2 || sizes.header > kMaxHeaderBytes || sizes.payload > max_payload) return std::nullopt;
  return sizes;
}

Result<Frame> parse_header(std::string_view bytes) {
  // The parser takes a NUL for the end of its input, whatever follows.
  if (bytes.find('\0') != std::string_view::npos) return fail("frame header", "not a JSON object");
  KeyWatch watch;
  Frame frame;
  frame.header = Json::parse(bytes.begin(), bytes.end(), std::ref(watch), /*allow_exceptions=*/false);
  if (frame.header.is_discarded() || !frame.header.is_object()) return fail("frame header", "not a JSON object");
  if (watch.bad()) return fail("frame header", "a key stands twice, or it is nested too deep");
  const std::uint64_t id = frame.number("id", std::numeric_limits<std::uint64_t>::max());
  if (id > std::numeric_limits<std::uint32_t>::max()) return fail("frame header", "no usable id");
  frame.id = static_cast<std::uint32_t>(id);
  return frame;
}

std::string encode_head(const Json& header, std::size_t payload_bytes) {
  // Bytes that are no UTF-8 never stand in a header by the protocol; `replace` keeps a slip from throwing.
  const std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  out.reserve(kPrefixBytes + text.size());
  store_le32(out, text.size());
  store_le32(out, payload_bytes);
  return out += text;
}

}  // namespace sandy::wire
