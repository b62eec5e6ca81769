// Where the programs are: our own, and bubblewrap.
#pragma once

#include <set>
#include <string>

#include "base/error.h"

namespace sandy::host {

// `name` ("sandy-agent", "sandy-launch"): beside this program, then in ../libexec/sandy from there. The error lists the places.
Result<std::string> own_program(const std::string& name);

struct Bubblewrap {
  std::string path;
  std::set<std::string> options;  // "--bind-fd", ... from its --help
};

// $SANDY_BWRAP, else the first `bwrap` in PATH, /usr/bin, /usr/local/bin and /bin. A directory that is relative, or that others than
// root and the caller can write to, is passed over. Its options are asked for once and kept in the state directory for as long as the
// file is the same.
Result<Bubblewrap> find_bubblewrap();

}  // namespace sandy::host
