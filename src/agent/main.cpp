// sandy-agent: the sandbox's pid 1. Its socket to `sandy` is descriptor 3; it has no arguments but --version.
#include <cstdio>
#include <cstring>

#include "agent/run_agent.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) return std::puts("sandy-agent " SANDY_VERSION) < 0 ? 1 : 0;
  return sandy::agent::run_agent();
}
