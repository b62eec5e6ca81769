// The interpreter: what it computes, and that hostile programs neither hang it nor lead it out of
// range.
#include "plan/seccomp/bpf_evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>

#include <random>
#include <vector>

namespace sandy::seccomp {
namespace {

sock_filter op(std::uint16_t code, std::uint32_t k = 0, std::uint8_t jt = 0, std::uint8_t jf = 0) {
  return {code, jt, jf, k};
}
const sock_filter kRetA = op(BPF_RET | BPF_A);

struct Refused {
  std::vector<sock_filter> program;
  const char* why;
};
class HostileProgram : public testing::TestWithParam<Refused> {};

TEST_P(HostileProgram, IsRefused) {
  const auto result = evaluate(GetParam().program, {});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().why, testing::HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileProgram,
    testing::Values(Refused{{}, "1 to 4096"},
                    Refused{std::vector<sock_filter>(4097, kRetA), "1 to 4096"},
                    Refused{{op(BPF_LD | BPF_IMM, 1)}, "must return"},
                    Refused{{op(BPF_LD | BPF_W | BPF_ABS, 64), kRetA}, "outside"},
                    Refused{{op(BPF_LD | BPF_W | BPF_ABS, 2), kRetA}, "outside"},
                    Refused{{op(BPF_LD | BPF_W | BPF_ABS, 0xfffffffc), kRetA}, "outside"},
                    Refused{{op(BPF_LD | BPF_H | BPF_ABS, 0), kRetA}, "none that seccomp knows"},
                    Refused{{op(BPF_LD | BPF_W | BPF_IND, 0), kRetA}, "none that seccomp knows"},
                    Refused{{op(BPF_LDX | BPF_B | BPF_MSH, 0), kRetA}, "none that seccomp knows"},
                    Refused{{op(0xffff), kRetA}, "none that seccomp knows"},
                    Refused{{op(BPF_ALU | BPF_MOD | BPF_K, 3), kRetA}, "none that seccomp knows"},
                    Refused{{op(BPF_JMP | BPF_JA, 1), kRetA}, "past the end"},
                    Refused{{op(BPF_JMP | BPF_JA, 0xffffffff), kRetA}, "past the end"},
                    Refused{{op(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), kRetA}, "past the end"},
                    Refused{{op(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 255), kRetA}, "past the end"},
                    Refused{{op(BPF_ST, 16), kRetA}, "16 words"},
                    Refused{{op(BPF_STX, 0xffffffff), kRetA}, "16 words"},
                    Refused{{op(BPF_LD | BPF_MEM, 16), kRetA}, "16 words"},
                    Refused{{op(BPF_LD | BPF_MEM, 3), kRetA}, "not written"},
                    Refused{{op(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1), op(BPF_ST, 3),
                             op(BPF_LD | BPF_MEM, 3), kRetA},
                            "not written"},
                    Refused{{op(BPF_ALU | BPF_DIV | BPF_K, 0), kRetA}, "divides by zero"},
                    Refused{{op(BPF_ALU | BPF_LSH | BPF_K, 32), kRetA}, "shifts"}));

struct Computed {
  std::vector<sock_filter> program;
  std::uint32_t value;
};
class GoodProgram : public testing::TestWithParam<Computed> {};

TEST_P(GoodProgram, Computes) {
  const Call call{0x11111111, 0x22222222, {0xaaaaaaaabbbbbbbb, 2, 3, 4, 5, 0x1234567890abcdef}};
  const auto result = evaluate(GetParam().program, call);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(*result, GetParam().value);
}

INSTANTIATE_TEST_SUITE_P(
    All, GoodProgram,
    testing::Values(
        Computed{{op(BPF_LD | BPF_W | BPF_ABS, 0), kRetA}, 0x22222222},
        Computed{{op(BPF_LD | BPF_W | BPF_ABS, 4), kRetA}, 0x11111111},
        Computed{{op(BPF_LD | BPF_W | BPF_ABS, 16), kRetA}, 0xbbbbbbbb},
        Computed{{op(BPF_LD | BPF_W | BPF_ABS, 20), kRetA}, 0xaaaaaaaa},
        Computed{{op(BPF_LD | BPF_W | BPF_ABS, 56), kRetA}, 0x90abcdef},
        Computed{{op(BPF_LD | BPF_W | BPF_ABS, 60), kRetA}, 0x12345678},
        Computed{{op(BPF_LD | BPF_W | BPF_LEN), kRetA}, 64},
        Computed{{op(BPF_LD | BPF_IMM, 7), op(BPF_ALU | BPF_SUB | BPF_K, 9), kRetA}, 0xfffffffe},
        Computed{{op(BPF_LD | BPF_IMM, 6), op(BPF_LDX | BPF_IMM, 7), op(BPF_ALU | BPF_MUL | BPF_X),
                  kRetA},
                 42},
        Computed{{op(BPF_LD | BPF_IMM, 6), op(BPF_ALU | BPF_DIV | BPF_X), kRetA},
                 SECCOMP_RET_KILL_THREAD},
        Computed{{op(BPF_LD | BPF_IMM, 1), op(BPF_LDX | BPF_IMM, 33), op(BPF_ALU | BPF_LSH | BPF_X),
                  kRetA},
                 2},
        Computed{{op(BPF_LD | BPF_IMM, 1), op(BPF_ALU | BPF_NEG), kRetA}, 0xffffffff},
        Computed{{op(BPF_LD | BPF_IMM, 5), op(BPF_ST, 15), op(BPF_LDX | BPF_MEM, 15),
                  op(BPF_MISC | BPF_TXA), kRetA},
                 5},
        Computed{{op(BPF_JMP | BPF_JSET | BPF_K, 1, 0, 1), op(BPF_RET | BPF_K, 1),
                  op(BPF_RET | BPF_K, 2)},
                 2},
        Computed{{op(BPF_JMP | BPF_JA, 1), op(BPF_RET | BPF_K, 1), op(BPF_RET | BPF_K, 2)}, 2},
        Computed{{op(BPF_LD | BPF_IMM, 0x80000000), op(BPF_JMP | BPF_JGT | BPF_K, 1, 1, 0),
                  op(BPF_RET | BPF_K, 1), op(BPF_RET | BPF_K, 2)},
                 2}));

TEST(BpfEvaluator, RandomProgramsEnd) {
  std::mt19937 engine(1);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  std::size_t ran = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<sock_filter> program(1 + random() % 12);
    for (sock_filter& insn : program) {
      insn = op(static_cast<std::uint16_t>(random() % 256),
                random() % 4 == 0 ? random() : random() % 20,
                static_cast<std::uint8_t>(random() % 6), static_cast<std::uint8_t>(random() % 6));
    }
    if (random() % 2 == 0) program.back() = kRetA;
    ran += evaluate(program, {random(), random(), {random(), random()}}).has_value() ? 1 : 0;
  }
  EXPECT_GT(ran, 0U);
}

TEST(BpfEvaluator, VerdictTexts) {
  EXPECT_EQ(verdict_text(SECCOMP_RET_ALLOW), "allow");
  EXPECT_EQ(verdict_text(SECCOMP_RET_ERRNO | 1), "errno EPERM");
  EXPECT_EQ(verdict_text(SECCOMP_RET_KILL_PROCESS), "kill_process");
  EXPECT_EQ(verdict_text(SECCOMP_RET_KILL_THREAD), "kill_thread");
  EXPECT_EQ(verdict_text(SECCOMP_RET_USER_NOTIF), "unknown 2143289344");
}

}  // namespace
}  // namespace sandy::seccomp
