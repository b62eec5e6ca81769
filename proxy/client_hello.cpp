#include "proxy/client_hello.h"

#include <algorithm>

#include "proxy/byte_reader.h"

namespace sandy::proxy {
namespace {

constexpr std::size_t kRecordHeader = 5, kMessageHeader = 4;
constexpr std::uint8_t kHandshake = 22, kClientHello = 1;
constexpr std::size_t kMaxRecord = 16'384;  // RFC 8446, section 5.1: of a plaintext record
constexpr std::uint32_t kServerName = 0, kHostName = 0;

// RFC 6066, section 3. A list of more than one name is refused: who of them is meant would be the server's to choose.
std::optional<std::string> host_name_of(std::span<const std::uint8_t> extension) {
  ByteReader all(extension);
  const auto list = all.counted(2);
  if (!list || !all.empty()) return {};
  ByteReader names(*list);
  const auto type = names.number(1);
  const auto name = names.counted(2);
  if (type != kHostName || !name || name->empty() || !names.empty()) return {};
  return std::string(name->begin(), name->end());
}

}  // namespace

ClientHelloReader::State ClientHelloReader::feed(std::span<const std::uint8_t> bytes) {
  while (state_ == State::need_more && !bytes.empty()) {
    if (record_left_ == 0) {
      record_.push_back(bytes[0]);
      bytes = bytes.subspan(1);
      const std::size_t have = record_.size();
      // Judged byte by byte: a client of another protocol, which may wait for an answer, is not waited for. A header that turns out wrong later than in
      // the first record is no other protocol.
      const auto wrong = [&] { return state_ = message_.empty() && have <= 1 ? State::not_tls : State::malformed; };
      if (have == 1 && record_[0] != kHandshake) return wrong();
      // The version is to be ignored (RFC 8446, section 5.1), and some servers ignore all of it.
      if (have < kRecordHeader) continue;
      record_left_ = static_cast<std::size_t>(record_[3] << 8 | record_[4]);
      record_.clear();
      // RFC 8446, section 5.1: no empty fragments of handshake messages.
      if (record_left_ == 0 || record_left_ > kMaxRecord) return state_ = State::malformed;
      continue;
    }
    const std::size_t taken = std::min(record_left_, bytes.size());
    message_.insert(message_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(taken));
    bytes = bytes.subspan(taken);
    record_left_ -= taken;
    if (message_[0] != kClientHello) return state_ = State::malformed;
    if (message_.size() < kMessageHeader) continue;
    const std::size_t size = kMessageHeader + static_cast<std::size_t>(message_[1] << 16 | message_[2] << 8 | message_[3]);
    if (size > kMaxMessage) return state_ = State::malformed;
    if (message_.size() > size) return state_ = State::malformed;  // nothing may follow before the server's answer
    if (message_.size() == size) return state_ = record_left_ == 0 ? parse_message() : State::malformed;
  }
  return state_;
}

ClientHelloReader::State ClientHelloReader::parse_message() {
  const std::span<const std::uint8_t> message(message_);
  ByteReader reader(message.subspan(kMessageHeader));
  const auto version = reader.number(2);
  const auto random = reader.block(32);
  const auto session = reader.counted(1);
  const auto suites = reader.counted(2);
  const auto compressions = reader.counted(1);
  if (!version || *version >> 8 != 3 || !random || !session || session->size() > 32) return State::malformed;
  if (!suites || suites->empty() || suites->size() % 2 != 0 || !compressions || compressions->empty()) return State::malformed;
  if (reader.empty()) return State::done;  // TLS 1.2 and older have messages without extensions
  const auto block = reader.counted(2);
  if (!block || !reader.empty()) return State::malformed;
  ByteReader extensions(*block);
  while (!extensions.empty()) {
    const auto type = extensions.number(2);
    const auto data = extensions.counted(2);
    if (!type || !data) return State::malformed;
    if (*type != kServerName) continue;
    if (server_name_) return State::malformed;  // twice
    server_name_ = host_name_of(*data);
    if (!server_name_) return State::malformed;
  }
  return State::done;
}

}  // namespace sandy::proxy
