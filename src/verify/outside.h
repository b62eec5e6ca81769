// sandy-attack outside of any sandbox, as the caller: the positive control of an attack.
#pragma once

#include <string>
#include <vector>

#include "verify/judge.h"

namespace sandy::verify {

class Outside {
 public:
  Outside(std::string program, std::string nonce) : program_(std::move(program)), nonce_(std::move(nonce)) {}
  const std::string& program() const { return program_; }

  // What an attempt reports with this process's environment and descriptors. `in_namespaces`: with rights that no plain user has elsewhere.
  AttemptReport attempt(const std::vector<std::string>& words, bool in_namespaces = false) const;
  // The same, as a control: `worked` where it was done.
  Control control(const std::vector<std::string>& words, bool in_namespaces = false) const;

 private:
  std::string program_, nonce_;
};

}  // namespace sandy::verify
