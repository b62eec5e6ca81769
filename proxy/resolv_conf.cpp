#include "proxy/resolv_conf.h"

#include "policy/host_name.h"
#include "proxy/text_lines.h"

namespace sandy::proxy {

ResolvConf parse_resolv_conf(std::string_view text) {
  ResolvConf out;
  while (!text.empty()) {
    const auto words = words_of(next_line(text));
    if (words.size() < 2) continue;
    if (words.front() == "nameserver") {
      if (const auto address = policy::parse_ip_address(words[1])) out.servers.push_back(*address);
    } else if (words.front() == "search" || words.front() == "domain") {
      out.search.clear();
      for (std::size_t i = 1; i < words.size(); ++i) {
        if (auto name = policy::canonical_host_name(words[i])) out.search.push_back(std::move(*name));
      }
    }
  }
  return out;
}

}  // namespace sandy::proxy
