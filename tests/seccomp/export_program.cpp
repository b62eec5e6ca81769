// Writes a built-in policy's program to standard output, for bwrap --seccomp FD.
#include <cstdio>
#include <cstring>

#include "base/memfd.h"
#include "plan/seccomp/seccomp_compile.h"

int main(int argc, char** argv) {
  using namespace sandy::seccomp;
  if (argc < 2 || argc > 3 || (argc == 3 && std::strcmp(argv[2], "ptrace") != 0)) {
    std::fputs("usage: seccomp_export default|strict [ptrace]\n", stderr);
    return 2;
  }
  const auto program = builtin_program(argv[1], native_arch(), {.allow_ptrace = argc == 3});
  if (!program) {
    std::fprintf(stderr, "seccomp_export: %s\n", program.error().text().c_str());
    return 1;
  }
  const auto written = sandy::write_all(1, as_bytes(*program));
  if (!written) std::fprintf(stderr, "seccomp_export: %s\n", written.error().text().c_str());
  return written ? 0 : 1;
}
