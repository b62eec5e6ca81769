#include "plan/synthetic_etc.h"

#include "base/gateway.h"

namespace sandy::plan {

EtcView synthetic_etc(const policy::Process& process, const std::string& home, bool has_network, const std::vector<std::string>& etc_names) {
  EtcView view;
  view.copied = etc_names;
  const std::string uid = std::to_string(process.uid), gid = std::to_string(process.gid);
  // passwd(5), group(5): the sandbox's user, and `nobody`, as which files of every other user show.
  view.made["passwd"] = "root:x:0:0:root:/root:/usr/sbin/nologin\nsandbox:x:" + uid + ":" + gid + ":sandbox:" + home +
                        ":/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
  view.made["group"] = "root:x:0:\nsandbox:x:" + gid + ":\ntty:x:5:\nnogroup:x:65534:\n";
  // With a network, the host name has an IPv6 address as well: else a resolver asks for one, and is refused.
  view.made["hosts"] = "127.0.0.1 localhost " + process.hostname + "\n::1 localhost ip6-localhost ip6-loopback" + (has_network ? " " + process.hostname : "") + "\n";
  view.made["hostname"] = process.hostname + "\n";
  // Without a network no name server: a resolver gives up at once instead of asking one that is not there. With one, the proxy answers at the
  // gateway's address, of allowed names alone; no search domain of the host's is named.
  view.made["resolv.conf"] = has_network ? "nameserver " + std::string(kGatewayIpv4) + "\noptions edns0\n" : "# no network\noptions timeout:1 attempts:1\n";
  view.made["nsswitch.conf"] = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\n"
                               "services: files\nethers: files\nrpc: files\n";
  return view;
}

}  // namespace sandy::plan
