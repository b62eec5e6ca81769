#include "cli/policy_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/unique_fd.h"
#include "host/named_policy.h"
#include "policy/policy_name.h"

namespace sandy::cli {
namespace {

Result<std::string> read_file(const std::string& path) {
  constexpr std::size_t kMax = 1 << 20;
  const UniqueFd fd(path == "-" ? ::fcntl(0, F_DUPFD_CLOEXEC, 3) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(printable(path), errno_text(errno));
  std::string text;
  std::array<char, 65'536> buffer;
  while (text.size() <= kMax) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(printable(path), errno_text(errno));
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return fail(printable(path), "is larger than 1 MiB");
}

}  // namespace

Result<PolicySource> read_policy_source(const std::string& given, const policy::Caller& caller) {
  if (policy::is_policy_name(given)) {
    auto found = host::find_policy(given, caller.cwd);
    if (!found) return std::unexpected(found.error());
    return PolicySource{std::move(found->path), std::move(found->text)};
  }
  auto text = read_file(given);
  if (!text) return std::unexpected(text.error());
  return PolicySource{given == "-" ? "" : given.starts_with('/') ? given : caller.cwd + "/" + given, std::move(*text)};
}

}  // namespace sandy::cli
