#include "plan/synthetic_etc.h"

namespace sandy::plan {

EtcView synthetic_etc(const policy::Process& process, const std::string& home, const std::vector<std::string>& etc_names) {
  EtcView view;
  view.copied = etc_names;
  const std::string uid = std::to_string(process.uid), gid = std::to_string(process.gid);
  // passwd(5), group(5): the sandbox's user, and `nobody`, as which files of every other user show.
  view.made["passwd"] = "root:x:0:0:root:/root:/usr/sbin/nologin\nsandbox:x:" + uid + ":" + gid + ":sandbox:" + home +
                        ":/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
  view.made["group"] = "root:x:0:\nsandbox:x:" + gid + ":\ntty:x:5:\nnogroup:x:65534:\n";
  view.made["hosts"] = "127.0.0.1 localhost " + process.hostname + "\n::1 localhost ip6-localhost ip6-loopback\n";
  view.made["hostname"] = process.hostname + "\n";
  // No name server: a resolver gives up at once instead of asking one that is not there.
  view.made["resolv.conf"] = "# no network\noptions timeout:1 attempts:1\n";
  view.made["nsswitch.conf"] = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\n"
                               "services: files\nethers: files\nrpc: files\n";
  return view;
}

}  // namespace sandy::plan
