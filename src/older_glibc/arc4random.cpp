// arc4random(3), which glibc has since 2.36, and which std::random_device of the libstdc++ that is linked in calls.
#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
  std::uint32_t out = 0;
  // So few bytes come whole. Without random numbers it ends the program, as glibc's does.
  while (::getrandom(&out, sizeof out, 0) != sizeof out) {
    if (errno != EINTR) std::abort();
  }
  return out;
}
