// Classic BPF code, built from its end to its start. Pure. Kernel side:
// Documentation/networking/filter.rst.
//
// Jumps go forward only, so what an instruction jumps to exists before the instruction does, and
// every offset is known when it is written. Conditional offsets have 8 bits: a target that is
// farther gets a trampoline.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace sandy::seccomp {

class BpfBuilder {
 public:
  using Label = std::size_t;  // an instruction, counted from the program's end

  // Ends the program with a SECCOMP_RET_* value.
  Label ret(std::uint32_t value);
  // A = 32-bit word at `offset` of struct seccomp_data; then `next`.
  Label load(std::uint32_t offset, Label next);
  // A &= mask; then `next`.
  Label mask(std::uint32_t mask, Label next);
  // `yes` where A <condition> value, else `no`. condition: BPF_JEQ, BPF_JGE, BPF_JGT (unsigned).
  Label jump(std::uint16_t condition, std::uint32_t value, Label yes, Label no);

  std::size_t size() const { return code_.size(); }
  // Whether two labels do the same: one instruction, or returns of the same value.
  bool same(Label a, Label b) const;

  // The program that starts at `start`, in order.
  std::vector<sock_filter> program(Label start) const;

 private:
  Label push(std::uint16_t code, std::uint32_t k, std::uint8_t yes = 0, std::uint8_t no = 0);
  void fall_into(Label next);       // makes `next` what the next instruction written falls into
  Label within_reach(Label label);  // `label`, or a stand-in near enough for a conditional jump

  std::vector<sock_filter> code_;  // last instruction first
  std::unordered_map<std::uint32_t, Label> returns_;
};

}  // namespace sandy::seccomp
