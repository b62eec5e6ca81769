#include "plan/seccomp/bpf_builder.h"

namespace sandy::seccomp {
namespace {

// Below 255, as the other target's stand-in may come between.
constexpr std::size_t kReach = 250;

}  // namespace

BpfBuilder::Label BpfBuilder::push(std::uint16_t code, std::uint32_t k, std::uint8_t yes,
                                   std::uint8_t no) {
  code_.push_back({code, yes, no, k});
  return code_.size() - 1;
}

BpfBuilder::Label BpfBuilder::ret(std::uint32_t value) {
  const auto known = returns_.find(value);
  if (known != returns_.end() && code_.size() - known->second < kReach) return known->second;
  return returns_[value] = push(BPF_RET | BPF_K, value);
}

void BpfBuilder::fall_into(Label next) {
  if (next + 1 == code_.size()) return;
  const auto offset = static_cast<std::uint32_t>(code_.size() - next - 1);
  push(BPF_JMP | BPF_JA, offset);
}

BpfBuilder::Label BpfBuilder::within_reach(Label label) {
  if (code_.size() - label < kReach) return label;
  const sock_filter target = code_[label];
  if (target.code == (BPF_RET | BPF_K))
    return ret(target.k);  // one instruction either way, and no second jump
  return push(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(code_.size() - label - 1));
}

BpfBuilder::Label BpfBuilder::load(std::uint32_t offset, Label next) {
  fall_into(next);
  return push(BPF_LD | BPF_W | BPF_ABS, offset);
}

BpfBuilder::Label BpfBuilder::mask(std::uint32_t mask, Label next) {
  fall_into(next);
  return push(BPF_ALU | BPF_AND | BPF_K, mask);
}

BpfBuilder::Label BpfBuilder::jump(std::uint16_t condition, std::uint32_t value, Label yes,
                                   Label no) {
  if (yes == no) return yes;
  yes = within_reach(yes);
  no = within_reach(no);
  const auto here = code_.size();
  const auto code = static_cast<std::uint16_t>(BPF_JMP | condition | BPF_K);
  return push(code, value, static_cast<std::uint8_t>(here - yes - 1),
              static_cast<std::uint8_t>(here - no - 1));
}

bool BpfBuilder::same(Label a, Label b) const {
  constexpr std::uint16_t kReturn = BPF_RET | BPF_K;
  return a == b ||
         (code_[a].code == kReturn && code_[b].code == kReturn && code_[a].k == code_[b].k);
}

std::vector<sock_filter> BpfBuilder::program(Label start) const {
  return {code_.rend() - static_cast<std::ptrdiff_t>(start) - 1, code_.rend()};
}

}  // namespace sandy::seccomp
