// How a fuzz target says that a property does not hold: libFuzzer and replay_main.cpp take the abort for a finding.
#pragma once

#include <cstdio>
#include <cstdlib>

[[noreturn]] inline void broken(const char* property) {
  std::fprintf(stderr, "broken: %s\n", property);
  std::abort();
}
