// links: sandy_host
// Lists of the kernel's with names in them that any user may have chosen: of mount points, and of sockets.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "broken.h"
#include "host/proc_text.h"

namespace {

// As the kernel writes it (seq_path(), mangle()).
std::string escaped(std::string_view name) {
  std::string out;
  for (const char c : name) {
    switch (c) {
      case ' ': out += "\\040"; break;
      case '\t': out += "\\011"; break;
      case '\n': out += "\\012"; break;
      case '\\': out += "\\134"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sandy::host;
  const std::string text(data, data + size);
  const auto once = [](std::vector<std::string> names) {
    std::ranges::sort(names);
    return std::ranges::adjacent_find(names) == names.end() && !std::ranges::binary_search(names, std::string());
  };
  if (!once(kernel_mounts(text)) || !once(mounts_below(text, "/proc")) || !once(socket_names(text))) broken("each once, and none without a name");
  (void)has_root_mount(text);
  // Whatever a mount point is called, it is that one, and its line is nobody else's.
  const std::string name = "/" + text;
  const std::string lines = "1 0 0:5 / " + escaped(name) + " rw shared:1 - proc none rw\n2 0 0:6 / " + escaped(name) + "/files rw - ext4 none rw\n";
  if (kernel_mounts(lines) != std::vector{name}) broken("a mount point's name is read as it is");
  return 0;
}
