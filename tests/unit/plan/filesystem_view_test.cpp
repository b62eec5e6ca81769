// Properties of plans, on random small hosts and rules. What single policies give stands in tests/golden.
#include "plan/filesystem_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "fake_host.h"
#include "mount_simulation.h"

namespace sandy::testing {
namespace {

using plan::FileType;
using policy::Access;

constexpr int kRounds = 2500;

struct Rule {
  std::string path;
  Access access;
};

// A host with a tree below /d, rules about it, and a workspace that is private, mounted elsewhere or at its own path.
class RandomCase {
 public:
  explicit RandomCase(unsigned seed) : random_(seed) {
    const int entries = 4 + below(12);
    host.add("/d", FileType::directory);
    for (int i = 0; i < entries; ++i) {
      const std::string path = existing_directory() + "/" + name();
      if (host.nodes().contains(path)) continue;
      const int kind = below(10);
      if (kind < 6) {
        host.add(path, FileType::directory);
      } else if (kind < 7) {
        host.add(path, FileType::file);
      } else if (kind < 8) {
        host.add(path, FileType::socket);
        host.base.sockets.push_back(path);
      } else {
        host.add_link(path, below(2) == 0 ? any_path() : name());
      }
    }
    mode = below(3);
    if (mode != 0) workspace = existing_directory();
    if (mode != 0 && below(4) == 0) workspace += "/../" + name();
    if (workspace == "/d" && below(2) == 0) workspace.clear(), mode = 0;
    for (int i = 1 + below(6); i > 0; --i) rules.push_back({any_path(), static_cast<Access>(below(3))});
    if (below(8) == 0) rules.push_back({"/d", below(2) == 0 ? Access::read : Access::write});
  }

  // The policy file, its lists in a random order.
  std::string json() {
    std::ranges::shuffle(rules, random_);
    nlohmann::json filesystem = {{"unsafe_broad_workspace", true}};
    for (const auto& rule : rules) {
      filesystem[rule.access == Access::read ? "read" : rule.access == Access::write ? "write" : "deny"].push_back(rule.path);
    }
    if (mode == 1) filesystem["workspace"] = {{"path", workspace}};
    if (mode == 2) filesystem["workspace"] = {{"path", workspace}, {"mount", workspace}};
    return nlohmann::json{{"version", 1}, {"filesystem", filesystem}}.dump();
  }

  FakeHost host;
  std::vector<Rule> rules;
  int mode = 0;  // of the workspace: 0 private, 1 bound at /workspace, 2 bound at its own path
  std::string workspace;

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string name() { return std::string(1, static_cast<char>('a' + below(3))) + (below(6) == 0 ? "-" : ""); }
  std::string existing_directory() {
    std::vector<std::string> out;
    for (const auto& [path, node] : host.nodes()) {
      if (path.starts_with("/d") && path.find('e') == std::string::npos && node.type == FileType::directory) out.push_back(path);
    }
    return out[static_cast<std::size_t>(below(static_cast<int>(out.size())))];
  }
  // Mostly one that exists; below links too, and with "..".
  std::string any_path() {
    std::string path = plain_path();
    if (below(4) != 0) return path;
    path += "/..";
    return below(2) == 0 ? path : path + "/" + name();
  }
  std::string plain_path() {
    std::string path = "/d";
    for (int depth = 1 + below(3); depth > 0; --depth) path += "/" + name();
    if (below(4) == 0) return path;
    std::vector<std::string> out;
    for (const auto& [existing, node] : host.nodes()) {
      if (existing.starts_with("/d/")) out.push_back(existing);
    }
    return out.empty() ? path : out[static_cast<std::size_t>(below(static_cast<int>(out.size())))];
  }

  std::mt19937 random_;
};

// By definition: of all rules for a place at or above `path`, the deepest counts; a socket is shown only by a rule of its own. `path` is a
// canonical host path.
Access expected(const RandomCase& test, const std::string& path) {
  Access out = Access::deny;
  std::size_t depth = 0;
  auto apply = [&](const std::string& place, Access access) {
    if (place.size() >= depth && MountSimulation::at_or_below(path, place)) out = access, depth = place.size();
  };
  if (test.mode != 0) apply(test.host.resolve(test.workspace)->canonical, Access::write);
  for (const auto& rule : test.rules) apply(test.host.resolve(rule.path)->canonical, rule.access);
  const bool by_name = depth == path.size();
  return test.host.nodes().at(path).type == FileType::socket && !by_name ? Access::deny : out;
}

Seen seen(Access access) { return access == Access::write ? Seen::write : access == Access::read ? Seen::read : Seen::nothing; }

template <typename Check>
void for_each_plan(int at_least, Check check) {
  int planned = 0;
  for (unsigned seed = 1; seed <= kRounds; ++seed) {
    RandomCase test(seed);
    const std::string json = test.json();
    const auto plan = test.host.plan(json);
    if (!plan) continue;
    ++planned;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + json);
    check(test, *plan);
    if (::testing::Test::HasFailure()) return;  // one is enough to look at
  }
  EXPECT_GE(planned, at_least) << "too few of the random policies are valid for the test to mean much";
}

TEST(FilesystemViewProperties, OrderOfRulesDoesNotMatter) {
  for (unsigned seed = 1; seed <= kRounds; ++seed) {
    RandomCase test(seed);
    const auto first = test.host.plan(test.json());
    for (int i = 0; i < 3; ++i) {
      const std::string json = test.json();
      const auto again = test.host.plan(json);
      ASSERT_EQ(first.has_value(), again.has_value()) << "seed " << seed << ": " << json << (first ? "" : first.error().text()) << (again ? "" : again.error().text());
      if (first) {
        ASSERT_EQ(*first, *again) << "seed " << seed << ": " << json;
      }
    }
  }
}

TEST(FilesystemViewProperties, EveryPathHasTheAccessOfItsMostSpecificRule) {
  int hidden = 0;
  for_each_plan(400, [&](const RandomCase& test, const plan::SandboxPlan& plan) {
    const MountSimulation simulation(test.host, plan);
    const std::string inside = test.mode == 0 ? "" : test.host.resolve(test.workspace)->canonical;
    for (const auto& [path, node] : test.host.nodes()) {
      if (!path.starts_with("/d") || path.starts_with("/dev") || !node.target.empty()) continue;
      const Access access = expected(test, path);
      const auto host = simulation.host_path(path);
      EXPECT_EQ(host.value_or(path), path) << "another file is in its place";
      if (test.mode == 1 && MountSimulation::at_or_below(path, inside)) {
        const std::string mapped = "/workspace" + path.substr(inside.size());
        EXPECT_EQ(simulation.access(mapped), seen(access)) << path << " at " << mapped;
        if (access != Access::deny) {
          EXPECT_EQ(simulation.host_path(mapped), path);
        }
        // At its own path, if another rule shows it there: never with more rights.
        EXPECT_LE(simulation.access(path), seen(access)) << path << " at its own path";
        continue;
      }
      EXPECT_EQ(simulation.access(path), seen(access)) << path;
    }
    hidden += static_cast<int>(plan.hidden_sockets.size());
  });
  EXPECT_GE(hidden, 50);
}

TEST(FilesystemViewProperties, EverySpellingOfARuleLeadsToItsFile) {
  int with_dot_dot = 0;
  for_each_plan(400, [&](const RandomCase& test, const plan::SandboxPlan& plan) {
    if (test.mode == 1) return;  // the workspace has another name there
    const MountSimulation simulation(test.host, plan);
    for (const auto& rule : test.rules) {
      if (rule.access == Access::deny) continue;
      const auto real = test.host.resolve(rule.path);
      // A link in a directory that is denied is not made again, and ".." leads out of none.
      const auto is_denied = [&](const std::string& path) {
        return std::ranges::any_of(test.rules, [&](const Rule& other) {
          return other.access == Access::deny && MountSimulation::at_or_below(path, test.host.resolve(other.path)->canonical);
        });
      };
      if (std::ranges::any_of(real->links, is_denied, &plan::Symlink::path) || std::ranges::any_of(real->passed, is_denied)) continue;
      const auto reached = simulation.follow(rule.path);
      ASSERT_TRUE(reached) << rule.path;
      EXPECT_EQ(simulation.host_path(*reached), real->canonical) << rule.path;
      if (!real->passed.empty()) ++with_dot_dot;
    }
  });
  EXPECT_GE(with_dot_dot, 50);
}

// Neither a rule's path nor the workspace's leads through a link that the sandbox could change.
TEST(FilesystemViewProperties, NoLinkOnTheWayIsWritable) {
  int links = 0;
  for_each_plan(400, [&](const RandomCase& test, const plan::SandboxPlan& plan) {
    const MountSimulation simulation(test.host, plan);
    std::vector<std::string> paths;
    if (test.mode != 0) paths.push_back(test.workspace);
    for (const auto& rule : test.rules) paths.push_back(rule.path);
    const std::string inside = test.mode == 0 ? "" : test.host.resolve(test.workspace)->canonical;
    for (const auto& path : paths) {
      const auto real = test.host.resolve(path);
      for (const auto& link : real->links) {
        ++links;
        EXPECT_NE(simulation.access(link.path), Seen::write) << path << " by " << link.path;
        if (test.mode == 0 || !MountSimulation::at_or_below(link.path, inside)) continue;
        EXPECT_NE(simulation.access(plan.workspace + link.path.substr(inside.size())), Seen::write) << path << " by " << link.path;
      }
    }
  });
  EXPECT_GE(links, 50);
}

TEST(FilesystemViewProperties, NoDirectoryAboveAProtectedPathCanBeRenamed) {
  int pinned = 0;
  for_each_plan(400, [&](const RandomCase& test, const plan::SandboxPlan& plan) {
    const MountSimulation simulation(test.host, plan);
    for (const auto& mount : simulation.mounts()) {
      if (!mount.read_only && !mount.host.empty()) continue;  // not protected
      if (!mount.dest.starts_with("/d/") && !mount.dest.starts_with("/workspace/")) continue;
      for (std::string path = mount.dest.substr(0, mount.dest.rfind('/')); !path.empty(); path = path.substr(0, path.rfind('/'))) {
        if (simulation.access(path) != Seen::write) break;
        // A mount point, or the parent is not writable either.
        const std::string parent = path.substr(0, path.rfind('/'));
        if (simulation.is_mount(path)) {
          ++pinned;
          continue;
        }
        EXPECT_NE(simulation.access(parent), Seen::write) << path << " above " << mount.dest;
      }
    }
  });
  EXPECT_GE(pinned, 25);
}

TEST(FilesystemViewProperties, EveryMountPointIsThereAlready) {
  for_each_plan(400, [](const RandomCase& test, const plan::SandboxPlan& plan) {
    const MountSimulation simulation(test.host, plan);
    EXPECT_TRUE(simulation.missing_mount_points().empty()) << simulation.missing_mount_points().front();
  });
}

}  // namespace
}  // namespace sandy::testing
