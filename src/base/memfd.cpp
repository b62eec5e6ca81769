#include "base/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

namespace sandy {

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return fail("write", errno_text(errno));
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<UniqueFd> sealed_memfd(const char* name, std::string_view bytes) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail(name, "memfd_create: " + errno_text(errno));
  if (auto written = write_all(fd.get(), bytes); !written) return fail(name, written.error().why);
  if (::lseek(fd.get(), 0, SEEK_SET) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return fail(name, "sealing a memfd: " + errno_text(errno));
  }
  return fd;
}

}  // namespace sandy
