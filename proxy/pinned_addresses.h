// The real addresses that names were told to have, so that a connection to one tells which names it can be for. Pure.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "policy/ip_address.h"

namespace sandy::proxy {

class PinnedAddresses {
 public:
  static constexpr std::size_t kMaxAddresses = 4'096;
  static constexpr std::size_t kMaxNames = 16;  // of an address: the last that were told

  // False: the table is full, which breaks nothing that is in it.
  bool pin(const policy::IpAddress& address, const std::string& name);
  // The last first. Many names can have one address, as on machines that serve content for others.
  std::vector<std::string> names_of(const policy::IpAddress& address) const;

 private:
  std::map<policy::IpAddress, std::deque<std::string>> names_;
};

}  // namespace sandy::proxy
