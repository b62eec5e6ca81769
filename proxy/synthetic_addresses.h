// The addresses that names get in a sandbox: made up, so that no packet has to leave for them, and one name's alone, so that a connection tells the name. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/ip_address.h"

namespace sandy::proxy {

class SyntheticAddresses {
 public:
  // IPv4 from 198.18.0.0/15 (RFC 2544), IPv6 from a unique local prefix (RFC 4193). The first 256 of each are left for the gateway.
  static constexpr std::size_t kReserved = 256;
  static constexpr std::size_t kMaxNames = 16'384;

  struct Pair {
    policy::IpAddress v4, v6;
  };

  explicit SyntheticAddresses(std::size_t max_names = kMaxNames) : max_names_(max_names) {}

  // The same for the same name as long as this lives. None: the table is full, which breaks nothing that has an address.
  std::optional<Pair> addresses_of(const std::string& name);

  // The name that has this address; none if it is not a synthetic one, or not given away.
  std::optional<std::string> name_of(const policy::IpAddress& address) const;

  std::size_t size() const { return names_.size(); }

 private:
  std::size_t max_names_;
  std::map<std::string, std::uint32_t, std::less<>> indices_;
  std::vector<std::string> names_;  // by index
};

}  // namespace sandy::proxy
