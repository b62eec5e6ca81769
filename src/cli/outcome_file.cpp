#include "cli/outcome_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/memfd.h"

namespace sandy::cli {

Result<OutcomeFile> OutcomeFile::open(const std::string& path) {
  const std::string what = "--json " + printable(path);
  if (path.empty()) return fail("--json", "an empty value", "leave the option out, or name a file");
  if (path == "-") return fail(what, "is no file", "name one; /dev/stdout is standard output, where the command writes too");
  // A link is one that an earlier command may have put there. Not in /dev and /proc, where links are how a caller names its own descriptors.
  const bool own = path.starts_with("/dev/") || path.starts_with("/proc/");
  OutcomeFile out;
  out.path_ = path;
  // O_NONBLOCK: a FIFO that nobody reads would hold us up.
  out.fd_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (own ? 0 : O_NOFOLLOW), 0666));
  if (!out.fd_ && errno == ELOOP) return fail(what, "is a symbolic link", "name the file that it leads to");
  struct stat st{};
  if (!out.fd_ || ::fstat(out.fd_.get(), &st) != 0 || (S_ISREG(st.st_mode) && ::ftruncate(out.fd_.get(), 0) != 0)) return fail(what, errno_text(errno));
  return out;
}

void OutcomeFile::write_text(const nlohmann::json& value) const {
  if (!fd_) return;
  const std::string text = value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (!write_all(fd_.get(), text)) std::fprintf(stderr, "sandy: --json %s: %s\n", printable(path_).c_str(), errno_text(errno).c_str());
}

void OutcomeFile::write(const nlohmann::json& end, int status, const std::vector<std::string>& degraded) const {
  nlohmann::json out{{"exit_status", status}, {"degraded", degraded}};
  // What comes from the sandbox can't take the place of what we say.
  for (const char* key : {"reason", "code", "signal", "core", "errno", "cwd", "omitted", "wall_ms", "user_ms", "system_ms", "max_rss_kib", "memory_peak", "cpu_us", "throttled_us", "oom_kills", "limit_notes", "error", "detail", "wall_time", "denials", "more_denials"}) {
    if (const auto it = end.find(key); it != end.end()) out[key] = *it;
  }
  write_text(out);
}

void OutcomeFile::write(const Error& error, int status) const {
  write_text({{"exit_status", status}, {"error", "could_not_start"}, {"detail", error.text()}});
}

}  // namespace sandy::cli
