// The policy files of seccomp-policies/, put into the program by CMake. Internal to this folder.
#pragma once

#include <string_view>

namespace sandy::seccomp {

extern const std::string_view kDefaultPolicyText, kStrictPolicyText, kProxyPolicyText;

}  // namespace sandy::seccomp
