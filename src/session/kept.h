// Sandboxes that outlive whoever made them: the records of them, of this user on this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "host/state_directory.h"

namespace sandy::session {

// What is written down of each, for others to find it, and to go on with it when it has ended.
struct KeptRecord {
  std::string id, name;             // a name is none, or as check_kept_name() has it
  std::string policy;               // JSON (policy::to_json)
  std::vector<std::string> files;   // the policy's own, and the audit log: "", or a path
  std::string socket;               // where it listens while it runs
  std::uint64_t created_ms = 0;     // of the Unix epoch
  std::uint64_t idle_ms = 0;        // it ends when there was no request for so long; 0: it does not
  std::int64_t pid = 0;             // of its `sandy serve`, while it runs
  bool operator==(const KeptRecord&) const = default;
};
std::string to_text(const KeptRecord& record);
std::optional<KeptRecord> read_record(std::string_view text);

struct Kept {
  KeptRecord record;
  bool running = false;
};
// All of them, oldest first.
Result<std::vector<Kept>> kept_sandboxes();
// By its id or its name. The error says which there are.
Result<Kept> find_kept(std::string_view id_or_name);
// One that doesn't run, with all that it has left.
Result<void> remove_kept(const std::string& id);

// Removes the sockets of those that don't run. `state` must be locked (lock_kept), so that none is made meanwhile.
void sweep_kept(const host::StateDirectory& state);
// As far as nobody has the lock, who does it then.
Result<void> sweep_kept();

// Letters, digits, '.', '_' and '-', the first a letter or digit, at most 63; and no id.
Result<void> check_kept_name(std::string_view name);
// 16 hexadecimal digits.
bool is_sandbox_id(std::string_view text);

}  // namespace sandy::session
