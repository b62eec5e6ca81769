#include "agent/files/grep.h"

#include <dirent.h>
#include <fcntl.h>

#include <utility>

#include "agent/files/directory.h"
#include "agent/files/glob_match.h"
#include "agent/files/line_search.h"
#include "agent/files/regular_file.h"
#include "agent/files/walk.h"

namespace sandy::files {
namespace {

// The NUL bytes of a text would end its record.
std::string without_nul(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  for (const char c : text) {
    if (c == '\0') {
      out += "\xEF\xBF\xBD";
    } else {
      out += c;
    }
  }
  return out;
}

class Search {
 public:
  Search(std::string_view pattern, const GrepOptions& options, const Sink& sink,
         std::stop_token stop)
      : lines_(pattern),
        options_(options),
        budget_(options.budget),
        records_(sink),
        stop_(std::move(stop)) {}

  // Searches one file. False: the whole search is over; `error` or the report says why.
  bool file(const RegularFile& open_file, const std::string& shown) {
    auto end =
        lines_.run(open_file, budget_, stop_, [&](std::uint64_t line, std::string_view text) {
          if (options_.max_count && report.matches == *options_.max_count) {
            report.truncated = true;
            return false;
          }
          ++report.matches;
          records_.add(shown);
          records_.add(std::to_string(line));
          records_.add(text.find('\0') == std::string_view::npos ? text : without_nul(text));
          if (!records_.flush_if_full()) error = file_error(Code::cancelled).error();
          return !error;
        });
    if (!end && end.error().code == Code::cancelled) error = end.error();
    if (!end && !error) ++report.unreadable;
    if (end && *end == LineSearch::End::over_budget) report.truncated = true;
    return end ? *end == LineSearch::End::file : !error;
  }

  FileResult<GrepReport> finish() {
    if (!error && !records_.flush()) error = file_error(Code::cancelled).error();
    if (error) return std::unexpected(*error);
    return report;
  }

  const Budget& budget() const { return budget_; }

  GrepReport report;
  std::optional<FileError> error;

 private:
  LineSearch lines_;
  const GrepOptions& options_;
  Budget budget_;
  RecordSink records_;
  std::stop_token stop_;
};

}  // namespace

FileResult<GrepReport> grep(const std::string& root, std::string_view pattern,
                            const GrepOptions& options, const Sink& sink, std::stop_token stop) {
  std::optional<GlobPattern> filter;
  if (!options.glob.empty()) {
    auto compiled = GlobPattern::compile(options.glob, GlobPattern::Dots::are_ordinary);
    if (!compiled) return std::unexpected(compiled.error());
    filter = std::move(*compiled);
  }
  std::string shown = options.shown_root.value_or(root);
  Search search(pattern, options, sink, stop);
  auto directory = open_search_root(root);
  if (!directory) {
    if (directory.error().code != Code::not_a_directory) return std::unexpected(directory.error());
    auto file = open_regular(AT_FDCWD, root);
    if (!file) return std::unexpected(file.error());
    if (!filter || filter->has_slash() || filter->matches(root)) search.file(*file, shown);
    if (search.report.unreadable > 0 && search.report.matches == 0) {
      return file_error(Code::io, "the file can't be read");
    }
    return search.finish();
  }
  while (shown.ends_with('/')) shown.pop_back();
  shown += '/';
  Walk walk(search.budget(), stop);
  walk.exclude = options.exclude_dirs;
  const auto walked = walk.run(*directory, [&](const std::string& path, unsigned char type) {
    if (type != DT_REG || (filter && !filter->matches(path))) return Walk::Next::go_on;
    auto file = open_regular(directory->get(), path, O_NOFOLLOW);
    if (!file) {
      // What vanished, or turned into something else, is no hole in the result.
      const Code code = file.error().code;
      if (code != Code::file_not_found && code != Code::not_a_file && code != Code::is_directory) {
        ++search.report.unreadable;
      }
      return Walk::Next::go_on;
    }
    return search.file(*file, shown + path) ? Walk::Next::go_on : Walk::Next::stop;
  });
  if (!walked) return std::unexpected(walked.error());
  search.report.walk_errors = walked->errors;
  search.report.truncated = search.report.truncated || walked->over_budget;
  return search.finish();
}

}  // namespace sandy::files
