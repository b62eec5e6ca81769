// What tells the next start that one was cut short.
//
// bubblewrap's child waits for its parent early in a start. Where the parent and `sandy` are both killed just then, nobody is left to end it
// (host/children ends it where only one of them is). So each start leaves a mark in the state directory until its agent has answered, locked
// by its maker; a mark that nobody locks any more is a reason to look for such a child.
#pragma once

#include <string>

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/state_directory.h"

namespace sandy::host {

class StartMark {
 public:
  static Result<StartMark> make(const StateDirectory& state, const std::string& id);
  StartMark() = default;
  StartMark(StartMark&&) = default;
  StartMark& operator=(StartMark&&) = default;
  ~StartMark() { remove(); }

  void remove();

  // Ends what starts that were cut short have left.
  static void sweep(const StateDirectory& state);

 private:
  UniqueFd parent_, fd_;
  std::string name_;
};

}  // namespace sandy::host
