// Where the programs are: our own, and bubblewrap.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace sandy::host {

// Where this program is, and others of Sandy's with it.
const std::string& own_directory();

// `name` ("sandy-agent", "sandy-launch"): beside this program, then in ../libexec/sandy from there. The error lists the places.
Result<std::string> own_program(const std::string& name);

struct BubblewrapPlace {
  std::string path;
  std::vector<std::string> passed_over;  // "/tmp/bin/bwrap: …", each with its reason, safe to print
};

// $SANDY_BWRAP, else the first `bwrap` in PATH, /usr/bin, /usr/local/bin and /bin. A program that others than root and the caller can replace
// (they can write to it or its directory, or the directory is relative) is passed over.
Result<BubblewrapPlace> locate_bubblewrap();

// Why this bubblewrap can't be used for the rights it runs with (setuid, file capabilities), or success.
Result<void> check_privileges(const std::string& bubblewrap);

struct Bubblewrap {
  std::string path;
  std::set<std::string> options;  // "--bind-fd", ... from its --help
};

// locate_bubblewrap() and check_privileges(). The options are asked for once and kept in the state directory for as long as the file is the same.
Result<Bubblewrap> find_bubblewrap();

}  // namespace sandy::host
