// Copies what can't be renamed, because it is to go to another mount.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sandy::agent {

// What may still be copied: commands wait for it.
struct CopyBudget {
  std::uint64_t bytes = std::uint64_t{256} << 20;
  std::size_t entries = 20'000;
};

// The file, symbolic link, FIFO or directory tree `from` to `to`, which is not there yet, with modes (without set-id bits) and times. No link is followed.
// False where something can't be copied (a socket, a lack of space, over the budget); what was copied until then is left for the caller to remove.
bool copy_tree(const std::string& from, const std::string& to, CopyBudget& budget);

}  // namespace sandy::agent
