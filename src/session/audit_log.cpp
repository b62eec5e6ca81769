#include "session/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>

namespace sandy::session {
namespace {

std::string now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const std::time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(since).count();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(since).count() % 1'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string digits = std::to_string(1'000 + milliseconds);
  return std::string(text, size) + "." + digits.substr(1) + "Z";
}

}  // namespace

Result<AuditLog> AuditLog::open(const std::string& path) {
  const std::string what = "audit log " + printable(path);
  AuditLog out;
  // O_NONBLOCK: a FIFO that nobody reads would hold us up.
  out.fd_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!out.fd_ && errno == ELOOP) return fail(what, "is a symbolic link", "name the file that it leads to");
  struct stat st{};
  if (!out.fd_ || ::fstat(out.fd_.get(), &st) != 0) return fail(what, errno_text(errno));
  if (!S_ISREG(st.st_mode)) return fail(what, "is no regular file");
  return out;
}

bool AuditLog::append(nlohmann::json fields) const {
  fields["time"] = now();
  const std::string line = fields.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
  ssize_t n = -1;
  do n = ::write(fd_.get(), line.data(), line.size());
  while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(line.size());
}

}  // namespace sandy::session
