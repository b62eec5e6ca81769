// Who asks for a sandbox, and from where: facts that the effects side finds out once and hands to
// the pure code.
#pragma once

#include <cstdint>
#include <string>

namespace sandy::policy {

struct Caller {
  std::string home;       // absolute; "" where the caller has none, and then "~" is refused
  std::string cwd;        // absolute; what relative paths are relative to
  std::string state_dir;  // absolute; where Sandy keeps its own state
  std::uint32_t uid = 0;  // on the host
};

}  // namespace sandy::policy
