// What a sandbox with these mounts would see, worked out from the steps alone: the tests' second opinion on a plan.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fake_host.h"
#include "plan/plan.h"

namespace sandy::testing {

enum class Seen { nothing, read, write };

class MountSimulation {
 public:
  MountSimulation(const FakeHost& host, const plan::SandboxPlan& plan) : host_(host), plan_(plan) {
    using Kind = plan::MountStep::Kind;
    for (const auto& step : plan.mounts) {
      if (step.kind == Kind::remount_ro) {
        for (auto& mount : mounts_) {
          if (mount.dest == step.dest) mount.read_only = true;
        }
        continue;
      }
      if (step.kind == Kind::symlink) {
        links_.push_back(step);
        continue;
      }
      // bubblewrap makes a missing mount point: in a tree of the host that would be litter, or fail.
      if (step.kind != Kind::directory) {
        const auto source = host_path(step.dest);
        if (source && step.dest != "/" && !host.nodes().contains(*source)) missing_.push_back(step.dest);
      }
      Mount mount{step.dest, {}, false};
      if (step.kind == Kind::bind || step.kind == Kind::ro_bind) {
        const auto& slot = plan.slots.at(step.slot);
        if (slot.kind == plan::FdSlot::Kind::host_path) mount.host = slot.text;
        mount.read_only = step.kind == Kind::ro_bind;
      } else if (step.kind == Kind::directory) {
        continue;  // no mount: a directory of what is mounted there already
      }
      mounts_.push_back(mount);
    }
  }

  static bool at_or_below(const std::string& path, const std::string& parent) {
    return parent == "/" || path == parent || path.starts_with(parent + "/");
  }

  // Which host file is at `path` of the sandbox, if any. `path` has no links.
  std::optional<std::string> host_path(const std::string& path) const {
    const Mount* mount = mount_of(path);
    if (mount == nullptr || mount->host.empty()) return std::nullopt;
    const std::string rest = mount->dest == "/" ? path : path.substr(mount->dest.size());
    if (mount->host == "/") return rest.empty() ? "/" : rest;
    return rest == "/" ? mount->host : mount->host + rest;
  }

  Seen access(const std::string& path) const {
    if (!host_path(path)) return Seen::nothing;
    return mount_of(path)->read_only ? Seen::read : Seen::write;
  }

  bool is_mount(const std::string& path) const {
    for (const auto& mount : mounts_) {
      if (mount.dest == path) return true;
    }
    return false;
  }

  // Whether there is something at `path`, which has no links.
  bool exists(const std::string& path) const {
    if (const auto source = host_path(path)) return *source == "/" || host_.nodes().contains(*source);
    // bubblewrap makes the directories above what it mounts or makes.
    return path.empty() || std::ranges::any_of(plan_.mounts, [&](const auto& step) { return at_or_below(step.dest, path); });
  }

  // Where a path as written leads, links followed: those of host trees that are shown, and those the plan makes. As for the kernel, ".." is the
  // parent of something that is there.
  std::optional<std::string> follow(const std::string& path) const {
    std::vector<std::string> todo = split(path);
    std::string at;
    for (int links = 0; !todo.empty();) {
      const std::string name = todo.front();
      todo.erase(todo.begin());
      if (name == "..") {
        if (!exists(at)) return std::nullopt;
        at = at.substr(0, at.empty() ? 0 : at.rfind('/'));
        continue;
      }
      at += "/" + name;
      const auto target = link_at(at);
      if (!target) continue;
      if (++links > 40) return std::nullopt;
      at = target->starts_with('/') ? "" : at.substr(0, at.rfind('/'));
      const auto more = split(*target);
      todo.insert(todo.begin(), more.begin(), more.end());
    }
    return at.empty() ? "/" : at;
  }

  const std::vector<std::string>& missing_mount_points() const { return missing_; }

  struct Mount {
    std::string dest, host;  // host: "" for what is made
    bool read_only = false;
  };
  const std::vector<Mount>& mounts() const { return mounts_; }

 private:
  // The last one mounted at the path or above it covers all that was there before.
  const Mount* mount_of(const std::string& path) const {
    for (auto it = mounts_.rbegin(); it != mounts_.rend(); ++it) {
      if (at_or_below(path, it->dest)) return &*it;
    }
    return nullptr;
  }

  std::optional<std::string> link_at(const std::string& path) const {
    for (const auto& link : links_) {
      if (link.dest == path) return link.target;
    }
    const auto source = host_path(path);
    if (!source) return std::nullopt;
    const auto node = host_.nodes().find(*source);
    if (node == host_.nodes().end() || node->second.target.empty()) return std::nullopt;
    return node->second.target;
  }

  static std::vector<std::string> split(const std::string& path) {
    std::vector<std::string> out;
    std::size_t start = 0;
    while (start < path.size()) {
      const auto slash = std::min(path.find('/', start), path.size());
      if (slash > start) out.push_back(path.substr(start, slash - start));
      start = slash + 1;
    }
    return out;
  }

  const FakeHost& host_;
  const plan::SandboxPlan& plan_;
  std::vector<Mount> mounts_;
  std::vector<plan::MountStep> links_;
  std::vector<std::string> missing_;
};

}  // namespace sandy::testing
