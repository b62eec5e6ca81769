#include "proxy/pinned_addresses.h"

namespace sandy::proxy {

bool PinnedAddresses::pin(const policy::IpAddress& address, const std::string& name) {
  auto found = names_.find(address);
  if (found == names_.end()) {
    if (names_.size() >= kMaxAddresses) return false;
    found = names_.emplace(address, std::deque<std::string>()).first;
  }
  auto& names = found->second;
  std::erase(names, name);
  names.push_front(name);
  if (names.size() > kMaxNames) names.pop_back();
  return true;
}

std::vector<std::string> PinnedAddresses::names_of(const policy::IpAddress& address) const {
  const auto found = names_.find(address);
  if (found == names_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

}  // namespace sandy::proxy
