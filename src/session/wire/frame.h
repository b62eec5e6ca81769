// Frames of the wire protocol (session/PROTOCOL.md): bytes to values and back. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sandy::wire {

using Json = nlohmann::json;

inline constexpr int kProtocolVersion = 1;
inline constexpr std::size_t kPrefixBytes = 8;
inline constexpr std::size_t kMaxHeaderBytes = 65'536;
inline constexpr std::size_t kMaxRequestPayload = 67'108'864;  // towards the agent
inline constexpr std::size_t kMaxReplyPayload = 1'048'576;     // from the agent
inline constexpr std::size_t kMaxArgs = 65'536;
inline constexpr int kMaxDepth = 8;
inline constexpr std::size_t kWindowBytes = 1'048'576;  // stream data under way without credit
inline constexpr std::size_t kLeastCharge = 256;
// What a stream event with this payload takes of the window, and gives back by `credit`: a header costs memory too.
constexpr std::size_t stream_charge(std::size_t payload) { return payload < kLeastCharge ? kLeastCharge : payload; }
inline constexpr std::size_t kChunkBytes = 262'144;     // most payload of one data frame

struct Frame {
  std::uint32_t id = 0;
  Json header = Json::object();  // an object, with `id`, and `op` or `ev`
  std::string payload;

  std::string_view op() const { return word("op"); }
  std::string_view ev() const { return word("ev"); }
  std::string_view word(const char* key) const;              // "" if absent or no string
  std::uint64_t number(const char* key, std::uint64_t otherwise) const;  // unsigned integers only
  bool flag(const char* key, bool otherwise) const;

  // The byte strings that `args` cuts from the payload's start, and the rest. Nothing if the lengths
  // don't fit the payload. The views live as long as `payload` is unchanged.
  struct Cut {
    std::vector<std::string_view> args;
    std::string_view data;
  };
  std::optional<Cut> cut() const;
};

// Headers of common frames. (g++ 12 miscompiles braced lists inside coroutines, so they are made by functions.)
Json event(std::uint32_t id, std::string_view ev);                    // {"id", "ev"}
Json credit_event(std::uint32_t id, std::size_t bytes);               // {"id", "ev": "credit", "bytes"}
Json request(std::string_view op);                                    // {"op"}; the id is the sender's to set
Json credit_request(std::size_t bytes);                               // {"op": "credit", "bytes"}

// The sizes in a frame's first 8 bytes, or nothing if they are over the limits.
struct Sizes {
  std::size_t header, payload;
};
std::optional<Sizes> read_sizes(std::string_view prefix, std::size_t max_payload);

// A header's bytes to the frame's value; refuses what PROTOCOL.md refuses (not an object, no id, a duplicate
// key, too deep, not UTF-8). `payload` is left empty.
Result<Frame> parse_header(std::string_view bytes);

// The 8 bytes and the header of a frame: what precedes its payload on the wire.
std::string encode_head(const Json& header, std::size_t payload_bytes);

}  // namespace sandy::wire
