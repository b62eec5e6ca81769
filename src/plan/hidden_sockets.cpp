#include "plan/hidden_sockets.h"

#include <algorithm>
#include <map>

namespace sandy::plan {
namespace {

struct Shown {
  std::string dest, host;
  const Entry* tree;  // that shows it
};

// Each place where a sandbox would see one of the host's sockets.
std::vector<Shown> shown_sockets(const HostFacts& facts, const ViewEntries& entries) {
  std::vector<Shown> out;
  for (const auto& item : entries.all()) {
    const auto& [dest, entry] = item;
    if (entry.what != Entry::What::exposed || entry.type != FileType::directory) continue;
    // Those below a directory stand together.
    const std::string prefix = entry.host == "/" ? "/" : entry.host + "/";
    for (auto socket = std::ranges::lower_bound(facts.sockets, prefix); socket != facts.sockets.end() && socket->starts_with(prefix); ++socket) {
      const std::string place = moved(*socket, entry.host, dest);
      if (!entries.contains(place) && entries.exposure_above(place) == &item) out.push_back({place, *socket, &entry});
    }
  }
  return out;
}

std::unexpected<Error> too_many(const std::vector<Shown>& sockets) {
  std::map<std::string, std::size_t> counts;
  for (const Shown& socket : sockets) ++counts[parent_of(socket.host)];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& item) { return item.second; });
  const auto& tree = *std::ranges::find(sockets, most->first, [](const Shown& socket) { return parent_of(socket.host); })->tree;
  return fail((tree.key.empty() ? "the default view" : tree.key) + ": \"" + printable(tree.host) + "\"",
              "shows " + std::to_string(sockets.size()) + " sockets of the host's programs with the rest of the policy, " + std::to_string(most->second) +
                  " of them in \"" + printable(most->first) + "\": at most " + std::to_string(kMaxHiddenSockets) + " can be hidden",
              "deny \"" + printable(most->first) + "\", or show less than what it is in");
}

}  // namespace

Result<void> hide_sockets(const HostFacts& facts, ViewEntries& entries, SandboxPlan& plan) {
  const auto sockets = shown_sockets(facts, entries);
  if (sockets.size() > kMaxHiddenSockets) return too_many(sockets);
  for (const Shown& socket : sockets) {
    const bool in_writable = socket.tree->access == policy::Access::write;
    const auto same = std::ranges::find(plan.hidden_sockets, socket.host, &HiddenSocket::path);
    if (same == plan.hidden_sockets.end()) {
      plan.hidden_sockets.push_back({socket.host, in_writable});
    } else {
      same->in_writable = same->in_writable || in_writable;
    }
    entries.add_path(socket.dest, policy::Access::deny, {socket.host, FileType::socket, {}, {}}, "");
  }
  return {};
}

}  // namespace sandy::plan
