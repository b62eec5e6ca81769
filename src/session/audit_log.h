// A file to which every decision about a sandbox's network is appended, a line of JSON each.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::session {

// Several sandboxes, also of several programs, may append to one file: a line is one write(2) with O_APPEND.
//   time      RFC 3339, UTC, with milliseconds
//   sandbox   its id
//   commands  those that ran in it then, whichever of them it was: the beginning of their words
//   verdict, target, protocol, reason, address, bytes_up, bytes_down, ms: of the proxy's event (PROTOCOL.md)
class AuditLog {
 public:
  AuditLog() = default;  // writes nothing
  // Made if missing, for its owner alone. A symbolic link as last component is refused: a command may have put it there.
  static Result<AuditLog> open(const std::string& path);

  explicit operator bool() const { return static_cast<bool>(fd_); }
  // False: it could not be written, say as the disk is full.
  bool append(nlohmann::json fields) const;

 private:
  UniqueFd fd_;
};

}  // namespace sandy::session
