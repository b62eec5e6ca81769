// Policies that are found by a name: files NAME.json in a few directories. What they say is not known here.
//
// A name decides what a sandbox may do, so that nobody but root, the caller and this program's owner may have a say in what it stands for (host/replaceable.h): a directory
// that others can change is an error also where it has no such file, as somebody may have taken away the stricter policy that was there.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace sandy::host {

inline constexpr std::size_t kMaxNamedPolicy = 256 * 1024;  // bytes of a file
inline constexpr std::size_t kMaxPolicyName = 64;

// The caller's own: $XDG_CONFIG_HOME/sandy/policies, or ~/.config/sandy/policies; "" where there is no home.
std::string own_policy_directory();

// In the order in which they are searched: the caller's, /etc/sandy/policies, and what came with this program: "policies" beside it (a wheel, a build), or, where
// that isn't there, share/sandy/policies of the prefix that it is installed in (PREFIX/bin, PREFIX/libexec/sandy).
std::vector<std::string> policy_directories();

struct NamedPolicy {
  std::string name, path, text;
};

// The first of that name (policy/policy_name.h). The error lists the places; `cwd`: a directory whose file of that name is mentioned there, and never taken.
Result<NamedPolicy> find_policy(const std::string& name, const std::string& cwd);

struct ListedPolicy {
  std::string name, path;
  Result<std::string> text;
};

// All names, sorted, with what each stands for or why it can't be taken. A directory that can't be trusted is an error.
Result<std::vector<ListedPolicy>> list_policies();

}  // namespace sandy::host
