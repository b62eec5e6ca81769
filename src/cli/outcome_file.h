// `--json FILE`: how a run ended, for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::cli {

class OutcomeFile {
 public:
  // None: nothing is written.
  OutcomeFile() = default;
  // Opened before anything runs that could put a link in its place, and emptied: a run that ends early leaves no other one's outcome.
  static Result<OutcomeFile> open(const std::string& path);

  // {"exit_status", "degraded"} and the keys of the agent's `end` (session/PROTOCOL.md).
  void write(const nlohmann::json& end, int status, const std::vector<std::string>& degraded) const;
  // For what could not start: {"exit_status", "error": "could_not_start", "detail"}.
  void write(const Error& error, int status) const;

 private:
  void write_text(const nlohmann::json& value) const;

  std::string path_;
  UniqueFd fd_;
};

}  // namespace sandy::cli
