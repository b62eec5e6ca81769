#include "plan/seccomp/bpf_evaluator.h"

#include <linux/seccomp.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "plan/seccomp/symbols.h"

namespace sandy::seccomp {
namespace {

constexpr std::uint16_t kAllScratch = 0xffff;  // one bit for each of the BPF_MEMWORDS words
static_assert(BPF_MEMWORDS == 16);

std::unexpected<Error> bad(std::size_t at, const char* why) {
  return fail("BPF instruction " + std::to_string(at), why);
}

Result<void> check_jump(std::span<const sock_filter> program, std::size_t at,
                        std::uint64_t offset) {
  if (offset >= program.size() - at - 1) return bad(at, "jumps past the end");
  return {};
}

// One instruction alone; what seccomp_check_filter and bpf_check_classic look at.
Result<void> check_instruction(std::span<const sock_filter> program, std::size_t at) {
  const sock_filter& insn = program[at];
  switch (insn.code) {
    case BPF_LD | BPF_W | BPF_ABS:
      if (insn.k % 4 != 0 || insn.k >= sizeof(seccomp_data))
        return bad(at, "loads outside of struct seccomp_data");
      return {};
    case BPF_LD | BPF_MEM:
    case BPF_LDX | BPF_MEM:
    case BPF_ST:
    case BPF_STX:
      if (insn.k >= BPF_MEMWORDS) return bad(at, "scratch memory has 16 words");
      return {};
    case BPF_ALU | BPF_DIV | BPF_K:
      if (insn.k == 0) return bad(at, "divides by zero");
      return {};
    case BPF_ALU | BPF_LSH | BPF_K:
    case BPF_ALU | BPF_RSH | BPF_K:
      if (insn.k >= 32) return bad(at, "shifts by 32 or more");
      return {};
    case BPF_JMP | BPF_JA:
      return check_jump(program, at, insn.k);
    case BPF_JMP | BPF_JEQ | BPF_K:
    case BPF_JMP | BPF_JEQ | BPF_X:
    case BPF_JMP | BPF_JGE | BPF_K:
    case BPF_JMP | BPF_JGE | BPF_X:
    case BPF_JMP | BPF_JGT | BPF_K:
    case BPF_JMP | BPF_JGT | BPF_X:
    case BPF_JMP | BPF_JSET | BPF_K:
    case BPF_JMP | BPF_JSET | BPF_X:
      if (const auto yes = check_jump(program, at, insn.jt); !yes) return yes;
      return check_jump(program, at, insn.jf);
    case BPF_LD | BPF_W | BPF_LEN:
    case BPF_LDX | BPF_W | BPF_LEN:
    case BPF_LD | BPF_IMM:
    case BPF_LDX | BPF_IMM:
    case BPF_MISC | BPF_TAX:
    case BPF_MISC | BPF_TXA:
    case BPF_RET | BPF_K:
    case BPF_RET | BPF_A:
    case BPF_ALU | BPF_ADD | BPF_K:
    case BPF_ALU | BPF_ADD | BPF_X:
    case BPF_ALU | BPF_SUB | BPF_K:
    case BPF_ALU | BPF_SUB | BPF_X:
    case BPF_ALU | BPF_MUL | BPF_K:
    case BPF_ALU | BPF_MUL | BPF_X:
    case BPF_ALU | BPF_DIV | BPF_X:
    case BPF_ALU | BPF_AND | BPF_K:
    case BPF_ALU | BPF_AND | BPF_X:
    case BPF_ALU | BPF_OR | BPF_K:
    case BPF_ALU | BPF_OR | BPF_X:
    case BPF_ALU | BPF_XOR | BPF_K:
    case BPF_ALU | BPF_XOR | BPF_X:
    case BPF_ALU | BPF_LSH | BPF_X:
    case BPF_ALU | BPF_RSH | BPF_X:
    case BPF_ALU | BPF_NEG:
      return {};
    default:
      return bad(at, "is none that seccomp knows");
  }
}

// Scratch words that are written on every way to each instruction (check_load_and_stores).
Result<void> check_scratch(std::span<const sock_filter> program) {
  std::vector<std::uint16_t> written(program.size(), kAllScratch);
  std::uint16_t now = 0;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& insn = program[at];
    now &= written[at];
    const auto bit = static_cast<std::uint16_t>(1U << (insn.k % BPF_MEMWORDS));
    if (insn.code == BPF_ST || insn.code == BPF_STX) now |= bit;
    if (insn.code == (BPF_LD | BPF_MEM) || insn.code == (BPF_LDX | BPF_MEM)) {
      if ((now & bit) == 0) return bad(at, "reads scratch memory that was not written");
    }
    if (BPF_CLASS(insn.code) != BPF_JMP) continue;
    if (BPF_OP(insn.code) == BPF_JA) {
      written[at + 1 + insn.k] &= now;
    } else {
      written[at + 1 + insn.jt] &= now;
      written[at + 1 + insn.jf] &= now;
    }
    now = kAllScratch;
  }
  return {};
}

std::uint32_t arithmetic(std::uint16_t op, std::uint32_t a, std::uint32_t b) {
  switch (op) {
    case BPF_ADD:
      return a + b;
    case BPF_SUB:
      return a - b;
    case BPF_MUL:
      return a * b;
    case BPF_AND:
      return a & b;
    case BPF_OR:
      return a | b;
    case BPF_XOR:
      return a ^ b;
    case BPF_LSH:
      return a << (b & 31);  // the kernel's interpreter masks the count too
    case BPF_RSH:
      return a >> (b & 31);
    case BPF_NEG:
      return 0U - a;
    default:
      return a;
  }
}

bool compare(std::uint16_t op, std::uint32_t a, std::uint32_t b) {
  switch (op) {
    case BPF_JEQ:
      return a == b;
    case BPF_JGE:
      return a >= b;
    case BPF_JGT:
      return a > b;
    default:
      return (a & b) != 0;  // BPF_JSET
  }
}

}  // namespace

Result<void> check_program(std::span<const sock_filter> program) {
  if (program.empty() || program.size() > BPF_MAXINSNS) {
    return fail("BPF program",
                "must have 1 to 4096 instructions, has " + std::to_string(program.size()));
  }
  for (std::size_t at = 0; at < program.size(); ++at) {
    if (const auto good = check_instruction(program, at); !good) return good;
  }
  if (BPF_CLASS(program.back().code) != BPF_RET)
    return bad(program.size() - 1, "is the last, so must return");
  return check_scratch(program);
}

Result<std::uint32_t> evaluate(std::span<const sock_filter> program, const Call& call) {
  if (const auto good = check_program(program); !good) return std::unexpected(good.error());
  seccomp_data data{};
  data.nr = static_cast<int>(call.number);
  data.arch = call.audit_arch;
  for (std::size_t i = 0; i < call.args.size(); ++i) data.args[i] = call.args[i];
  std::array<std::uint32_t, sizeof data / 4> words;
  std::memcpy(words.data(), &data, sizeof data);

  std::uint32_t a = 0, x = 0;
  std::array<std::uint32_t, BPF_MEMWORDS> scratch{};
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& insn = program[at];
    const std::uint32_t operand = BPF_SRC(insn.code) == BPF_X ? x : insn.k;
    switch (BPF_CLASS(insn.code)) {
      case BPF_LD:
      case BPF_LDX: {
        std::uint32_t value = insn.k;  // BPF_IMM
        if (BPF_MODE(insn.code) == BPF_ABS) value = words[insn.k / 4];
        if (BPF_MODE(insn.code) == BPF_MEM) value = scratch[insn.k];
        if (BPF_MODE(insn.code) == BPF_LEN) value = sizeof data;
        (BPF_CLASS(insn.code) == BPF_LD ? a : x) = value;
        break;
      }
      case BPF_ST:
        scratch[insn.k] = a;
        break;
      case BPF_STX:
        scratch[insn.k] = x;
        break;
      case BPF_ALU:
        if (BPF_OP(insn.code) == BPF_DIV) {
          if (operand == 0)
            return 0;  // the kernel ends the program with 0, which is SECCOMP_RET_KILL_THREAD
          a /= operand;
        } else {
          a = arithmetic(BPF_OP(insn.code), a, operand);
        }
        break;
      case BPF_JMP:
        if (BPF_OP(insn.code) == BPF_JA) {
          at += insn.k;
        } else {
          at += compare(BPF_OP(insn.code), a, operand) ? insn.jt : insn.jf;
        }
        break;
      case BPF_RET:
        return BPF_RVAL(insn.code) == BPF_A ? a : insn.k;
      case BPF_MISC:
        (BPF_MISCOP(insn.code) == BPF_TAX ? x : a) = BPF_MISCOP(insn.code) == BPF_TAX ? a : x;
        break;
    }
  }
  return fail("BPF program", "ended without a return");
}

std::string verdict_text(std::uint32_t bpf_return) {
  const std::uint32_t data = bpf_return & SECCOMP_RET_DATA;
  switch (bpf_return & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
      return "allow";
    case SECCOMP_RET_LOG:
      return "log";
    case SECCOMP_RET_ERRNO:
      return "errno " + errno_name(static_cast<int>(data));
    case SECCOMP_RET_TRAP:
      return "trap";
    case SECCOMP_RET_KILL_THREAD:
      return "kill_thread";
    case SECCOMP_RET_KILL_PROCESS:
      return "kill_process";
    default:
      return "unknown " + std::to_string(bpf_return);
  }
}

}  // namespace sandy::seccomp
