// Writing a file whole or not at all.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "agent/files/result.h"

namespace sandy::files {

struct WriteOptions {
  bool parents = true;         // make missing directories, with mode 0777 less the umask
  std::optional<mode_t> mode;  // default: that of the file that is there, or 0666 less the umask
};

// Takes the new content of one file piece by piece. Until commit() the old content is what others
// see; without commit() nothing is left behind, also when the process is killed, as the pieces go
// to a file without a name (O_TMPFILE; where the file system lacks that, to a hidden file that the
// destructor removes).
//
// commit() gives that file the target's name, so that readers see the old bytes or the new, never a
// mix. The target is written in place instead where a rename would break something or can't be
// done:
//   - it has other hard links, or another owner or group than a new file would get;
//   - it is a mount point (a single-file bind), or its directory is not writable.
// In place, space is reserved before the first byte is overwritten; a failure after that can leave
// a mix, and its `detail` says so.
//
// A symlink at the end of the path stays, and its target is written, also where that does not exist
// yet. An existing file without any write bit is `permission_denied`, whoever runs the agent. A
// path that ends in "/", "." or ".." is `is_directory`; what is neither file nor directory is
// `not_a_file`, and is not opened.
class Writer {
 public:
  static FileResult<Writer> open(const std::string& path, const WriteOptions& options = {});

  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();

  // After an error the writer can only be destroyed.
  FileResult<void> append(std::string_view bytes);
  // The bytes written. `stop` is looked at while an in-place write has not begun.
  FileResult<std::uint64_t> commit(std::stop_token stop = {});

 private:
  struct State;
  explicit Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sandy::files
