#include "cgroup/cgroup_directory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cgroup/cgroup_text.h"

namespace sandy::cgroup {

Result<Directory> Directory::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail("cgroup " + printable(path), errno_text(errno));
  return Directory(path, std::move(fd));
}

Result<Directory> Directory::below(const std::string& name) const {
  if (::mkdirat(fd_.get(), name.c_str(), 0755) != 0 && errno != EEXIST) return fail("cgroup " + printable(path_ + "/" + name), errno_text(errno));
  return enter(name);
}

Result<Directory> Directory::enter(const std::string& name) const {
  const std::string path = path_ + "/" + name;
  UniqueFd fd(::openat(fd_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return fail("cgroup " + printable(path), errno_text(errno));
  return Directory(path, std::move(fd));
}

Result<Directory> Directory::make(const std::string& name) const {
  const bool is_new = ::mkdirat(fd_.get(), name.c_str(), 0755) == 0;
  if (!is_new && errno != EEXIST) return fail("cgroup " + printable(path_ + "/" + name), errno_text(errno));
  auto out = enter(name);
  if (out && !is_new && out->populated()) return fail("cgroup " + printable(out->path()), "is in use");
  return out;
}

std::string Directory::read(const char* file) const {
  constexpr std::size_t kMost = 4 << 20;
  std::string out;
  const UniqueFd fd(::openat(fd_.get(), file, O_RDONLY | O_CLOEXEC));
  if (!fd) return out;
  char buffer[4'096];
  ssize_t n = 0;
  while (out.size() < kMost && (n = ::read(fd.get(), buffer, sizeof buffer)) > 0) {
    out.append(buffer, static_cast<std::size_t>(n));
    // The kernel fills a buffer with lines as long as there are any, and none is this long: a command's end reads several of these files.
    if (static_cast<std::size_t>(n) < sizeof buffer / 2) break;
  }
  return out;
}

Result<UniqueFd> Directory::open_file(const char* file) const {
  UniqueFd fd(::openat(fd_.get(), file, O_RDONLY | O_CLOEXEC));
  if (!fd) return fail("cgroup " + printable(path_) + "/" + file, errno_text(errno));
  return fd;
}

std::string read_again(const UniqueFd& file) {
  char buffer[4'096];
  const ssize_t n = ::pread(file.get(), buffer, sizeof buffer, 0);
  return {buffer, static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

Result<void> Directory::write(const char* file, std::string_view text) const {
  const UniqueFd fd(::openat(fd_.get(), file, O_WRONLY | O_CLOEXEC));
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return fail("cgroup " + printable(path_) + "/" + file, errno_text(errno));
  }
  return {};
}

bool Directory::has(const char* file) const { return ::faccessat(fd_.get(), file, F_OK, 0) == 0; }

Result<void> Directory::add(int pid) const { return write("cgroup.procs", std::to_string(pid)); }

bool Directory::populated() const { return flat_value(read("cgroup.events"), "populated").value_or(0) != 0; }

void Directory::kill() const {
  if (write("cgroup.kill", "1")) return;
  // While they are frozen none can fork; SIGKILL ends them all the same once they thaw.
  (void)write("cgroup.freeze", "1");
  for (const int pid : process_ids(read("cgroup.procs"))) ::kill(pid, SIGKILL);
  (void)write("cgroup.freeze", "0");
}

bool Directory::remove(const std::string& name) const { return ::unlinkat(fd_.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT; }

}  // namespace sandy::cgroup
