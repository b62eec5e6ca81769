#include "policy/paths.h"

#include "policy/sizes.h"

namespace sandy::policy {
namespace {

constexpr std::size_t kMaxPath = 4095;

Result<std::string> checked(const Text& text, std::string_view absolute) {
  std::string path = normalized(absolute);
  if (path.size() > kMaxPath)
    return fail(quoted(text.key, text.value), "longer than 4095 bytes as an absolute path");
  return path;
}

Result<void> check_bytes(const Text& text) {
  if (text.value.empty())
    return fail(text.key, "an empty path", "write \".\" for the current directory");
  if (text.value.find('\0') != std::string::npos)
    return fail(quoted(text.key, text.value), "contains a NUL byte");
  return {};
}

}  // namespace

std::string normalized(std::string_view absolute) {
  std::string out;
  while (!absolute.empty()) {
    const std::size_t slash = absolute.find('/');
    const std::string_view name = absolute.substr(0, slash);
    absolute.remove_prefix(slash == std::string_view::npos ? absolute.size() : slash + 1);
    if (name.empty() || name == "." || (name == ".." && out.empty())) continue;
    out += '/';
    out += name;
  }
  return out.empty() ? "/" : out;
}

bool has_dot_dot(std::string_view path) {
  return path.ends_with("/..") || path.find("/../") != std::string_view::npos;
}

bool is_within(std::string_view path, std::string_view tree) {
  if (tree == "/") return true;
  return path.starts_with(tree) && (path.size() == tree.size() || path[tree.size()] == '/');
}

Result<std::string> host_path(const Text& text, const Caller& caller) {
  if (auto ok = check_bytes(text); !ok) return std::unexpected(ok.error());
  const std::string& value = text.value;
  if (value[0] == '/') return checked(text, value);
  if (value[0] == '~' && !text.literal) {
    if (value.size() > 1 && value[1] != '/') {
      return fail(quoted(text.key, value), "\"~user\" is not supported",
                  "write the path in full, or \"./~…\" for a name that starts with \"~\"");
    }
    if (caller.home.empty() || caller.home[0] != '/') {
      return fail(quoted(text.key, value), "the caller has no home directory",
                  "set HOME, or write the path in full");
    }
    return checked(text, caller.home + value.substr(1));
  }
  if (caller.cwd.empty() || caller.cwd[0] != '/') {
    return fail(quoted(text.key, value), "a relative path, and the caller has no current directory",
                "write the path in full");
  }
  return checked(text, caller.cwd + "/" + value);
}

Result<std::string> sandbox_path(const Text& text) {
  if (auto ok = check_bytes(text); !ok) return std::unexpected(ok.error());
  if (text.value[0] != '/') {
    return fail(quoted(text.key, text.value), "a path inside the sandbox must be absolute",
                "start it with \"/\"");
  }
  return checked(text, text.value);
}

}  // namespace sandy::policy
