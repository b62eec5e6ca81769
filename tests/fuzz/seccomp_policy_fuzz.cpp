// links: sandy_seccomp sandy_base
// Hostile seccomp policies: the reader, the compiler, the evaluator and the sentences about them.
// What is accepted must compile to a program that the kernel would load, and that means what the
// rows say.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "plan/seccomp/bpf_evaluator.h"
#include "plan/seccomp/seccomp_compile.h"

namespace {

using namespace sandy::seccomp;

// FNV-1a over the input, so that an input always asks for the same calls.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 14695981039346656037ULL;
  for (const char byte : text)
    value = (value ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  return value;
}

void require(bool holds) {
  if (!holds) std::abort();
}

// Errors are printed by others as they are.
void check_error(const sandy::Error& error) {
  require(!error.what.empty() && !error.why.empty());
  for (const std::string* part : {&error.what, &error.why, &error.fix}) {
    require(sandy::printable(*part) == *part && part->size() <= 2048);
  }
}

void check(const Policy& policy, Arch arch, const CompileOptions& options, std::uint64_t seed) {
  const auto program = compile(policy, arch, options);
  if (!program) return;  // beyond the kernel's limit
  require(check_program(*program).has_value());
  Call call{audit_arch(arch), 0, {}};
  for (std::uint32_t i = 0; i < 64; ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    call.number = i % 8 == 7 ? static_cast<std::uint32_t>(seed >> 32)
                             : static_cast<std::uint32_t>((seed >> 33) % 480);
    if (!policy.rows.empty() && i % 2 == 0) {
      const Row& row = policy.rows[(seed >> 40) % policy.rows.size()];
      if (const auto number = policy.number(arch, row.syscalls.front())) call.number = *number;
      for (const ArgTest& test : row.when)
        call.args[test.arg] = test.values.front().number + (seed >> 60) % 2;
    }
    const auto verdict = evaluate(*program, call);
    require(verdict.has_value());
    require(*verdict == decide(policy, arch, options, call).bpf_return());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto policy = parse_policy(text, "fuzz.json");
  if (!policy) {
    check_error(policy.error());
  } else {
    for (const Arch arch : kArches) {
      check(*policy, arch, {}, hash(text));
      check(*policy, arch, {.allow_ptrace = true}, ~hash(text));
      for (const std::string& line : describe(*policy, arch))
        require(sandy::printable(line) == line);
    }
    for (const std::string& line : weakens(*policy)) require(sandy::printable(line) == line);
  }

  // The same bytes as a program: it is refused, or it ends.
  std::vector<sock_filter> program(size / sizeof(sock_filter));
  for (std::size_t i = 0; i < program.size(); ++i) {
    const std::uint8_t* at = data + i * sizeof(sock_filter);
    program[i] = {static_cast<std::uint16_t>(at[0] | at[1] << 8), at[2], at[3],
                  static_cast<std::uint32_t>(at[4]) | static_cast<std::uint32_t>(at[5]) << 8 |
                      static_cast<std::uint32_t>(at[6]) << 16 |
                      static_cast<std::uint32_t>(at[7]) << 24};
  }
  (void)evaluate(program, {audit_arch(Arch::x86_64), 16, {1, 2, 3, 4, 5, 6}});
  return 0;
}
