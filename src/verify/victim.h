// A process of the caller's outside the sandbox, with a secret in its memory and its environment.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::verify {

class Victim {
 public:
  // `program`: sandy-attack. Its environment is this process's.
  static Result<Victim> start(const std::string& program, const std::string& nonce, const std::string& secret);
  Victim(Victim&& other) noexcept;
  Victim& operator=(Victim&& other) noexcept;
  ~Victim();

  pid_t pid() const { return pid_; }
  const std::string& address() const { return address_; }  // of the secret in its memory
  // Whether it was signalled since it was asked last.
  bool signalled();

 private:
  Victim() = default;
  pid_t pid_ = -1;
  UniqueFd input_, output_;  // it ends with its input
  std::string address_;
};

}  // namespace sandy::verify
