#include "agent/files/glob.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "agent/files/directory.h"
#include "agent/files/glob_match.h"
#include "agent/files/walk.h"

namespace sandy::files {
namespace {

struct FreeText {
  void operator()(char* text) const { std::free(text); }  // realpath(3) allocates with malloc
};

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, FreeText> real(::realpath(path.c_str(), nullptr));
  return real ? std::string(real.get()) : std::string();
}

// True if `link`, below `root` (a real path), leads to a regular file below `root`.
bool leads_to_file_below(const std::string& root, const std::string& link) {
  const std::string prefix = root == "/" ? root : root + "/";
  const std::string target = real_path(prefix + link);
  struct stat info = {};
  return target.starts_with(prefix) && ::stat(target.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

FileResult<GlobReport> glob(const std::string& root, std::string_view pattern,
                            const GlobOptions& options, const Sink& sink, std::stop_token stop) {
  const Budget budget(options.budget);
  auto directory = open_search_root(root);
  if (!directory) return std::unexpected(directory.error());
  auto compiled = GlobPattern::compile(pattern);
  if (!compiled) return std::unexpected(compiled.error());
  const std::string real_root = real_path(root);
  GlobReport report;
  RecordSink records(sink);
  bool refused = false;
  Walk walk(budget, std::move(stop));
  const auto walked = walk.run(*directory, [&](const std::string& path, unsigned char type) {
    if (type != DT_REG && type != DT_LNK) return Walk::Next::go_on;
    if (!compiled->matches(path)) return Walk::Next::go_on;
    if (type == DT_LNK && !leads_to_file_below(real_root, path)) return Walk::Next::go_on;
    if (report.matches == options.max_matches) {
      report.truncated = true;
      return Walk::Next::stop;
    }
    ++report.matches;
    records.add(path);
    refused = !records.flush_if_full();
    return refused ? Walk::Next::stop : Walk::Next::go_on;
  });
  if (!walked) return std::unexpected(walked.error());
  if (refused || !records.flush()) return file_error(Code::cancelled);
  report.walk_errors = walked->errors;
  if (report.truncated || walked->over_budget) report.truncation_reason = "budget";
  if (report.walk_errors > 0) report.truncation_reason = "unreadable";
  report.truncated = !report.truncation_reason.empty();
  return report;
}

}  // namespace sandy::files
