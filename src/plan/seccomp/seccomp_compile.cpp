#include "plan/seccomp/seccomp_compile.h"

#include <linux/seccomp.h>

#include <cstddef>
#include <map>

#include "plan/seccomp/bpf_builder.h"
#include "plan/seccomp/decide.h"
#include "plan/seccomp/policy_parse.h"

namespace sandy::seccomp {
namespace {

using Label = BpfBuilder::Label;

constexpr std::uint32_t low_word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
constexpr std::uint32_t high_word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

// Both architectures are little-endian: the low half comes first.
constexpr std::uint32_t low_offset(unsigned arg) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * arg);
}
constexpr std::uint32_t high_offset(unsigned arg) {
  return low_offset(arg) + 4;
}

// The loads of both halves, then the comparison that `test` asks for.
class TestCode {
 public:
  TestCode(BpfBuilder& out, const ArgTest& test) : out_(out), test_(test) {}

  Label generate(Label yes, Label no) {
    const std::uint64_t value = test_.values.front().number;
    switch (test_.op) {
      case Op::equal:
        return any_equal(~std::uint64_t{0}, yes, no);
      case Op::not_equal:
        return any_equal(~std::uint64_t{0}, no, yes);
      case Op::masked_equal:
        return any_equal(test_.mask.number, yes, no);
      case Op::masked_not_equal:
        return any_equal(test_.mask.number, no, yes);
      case Op::greater_equal:
        return ordered(BPF_JGE, value, yes, no);
      case Op::less:
        return ordered(BPF_JGE, value, no, yes);
      case Op::greater:
        return ordered(BPF_JGT, value, yes, no);
      case Op::less_equal:
        return ordered(BPF_JGT, value, no, yes);
    }
    return no;
  }

 private:
  Label any_equal(std::uint64_t mask, Label yes, Label no) {
    if (test_.bits == 32) {
      Label next = no;
      for (const Value& value : test_.values)
        next = out_.jump(BPF_JEQ, low_word(value.number), yes, next);
      return half(low_offset(test_.arg), low_word(mask), next);
    }
    Label next = no;
    for (const Value& value : test_.values) {
      // A mask without high bits, as for the arguments that the kernel truncates, needs the low
      // half alone.
      const Label low = half(low_offset(test_.arg), low_word(mask),
                             out_.jump(BPF_JEQ, low_word(value.number), yes, next));
      next = high_word(mask) == 0 ? low
                                  : half(high_offset(test_.arg), high_word(mask),
                                         out_.jump(BPF_JEQ, high_word(value.number), low, next));
    }
    return next;
  }

  Label half(std::uint32_t offset, std::uint32_t mask, Label next) {
    if (mask != ~std::uint32_t{0}) next = out_.mask(mask, next);
    return out_.load(offset, next);
  }

  Label ordered(std::uint16_t condition, std::uint64_t value, Label yes, Label no) {
    const Label low =
        out_.load(low_offset(test_.arg), out_.jump(condition, low_word(value), yes, no));
    if (test_.bits == 32) return low;
    const Label equal = out_.jump(BPF_JEQ, high_word(value), low, no);
    return out_.load(high_offset(test_.arg), out_.jump(BPF_JGT, high_word(value), yes, equal));
  }

  BpfBuilder& out_;
  const ArgTest& test_;
};

class Compiler {
 public:
  Compiler(const Policy& policy, Arch arch, const CompileOptions& options)
      : policy_(policy), arch_(arch), options_(options) {}

  Result<Program> run() {
    const std::vector<NumberRows> numbers = rows_by_number(policy_, arch_, options_);
    add_range(0, default_label());
    for (const NumberRows& entry : numbers) {
      add_range(entry.number, body(entry.rows));
      add_range(entry.number + 1, default_label());
      if (out_.size() > kAbandon) return too_long();
    }
    if (arch_ == Arch::x86_64) {
      add_range(kX32Bit, foreign_label());
      add_range(2 * kX32Bit, default_label());  // the bit is not set in 0x80000000 to 0xbfffffff
      add_range(3 * kX32Bit, foreign_label());
      add_range(~std::uint32_t{0}, default_label());
    }
    const Label search = out_.load(offsetof(seccomp_data, nr), choose(0, ranges_.size()));
    const Label start = out_.load(offsetof(seccomp_data, arch),
                                  out_.jump(BPF_JEQ, audit_arch(arch_), search, foreign_label()));
    Program program = out_.program(start);
    if (program.size() > BPF_MAXINSNS) return too_long();
    return program;
  }

 private:
  struct Range {
    std::uint32_t first;  // up to the next range's first
    Label body;
  };

  static constexpr std::size_t kAbandon = 4 * BPF_MAXINSNS;

  std::unexpected<Error> too_long() const {
    return fail("seccomp policy " + policy_.name,
                "its program has more than " + std::to_string(BPF_MAXINSNS) +
                    " instructions, the kernel's limit",
                "use fewer rows with argument tests");
  }

  Label default_label() { return out_.ret(policy_.default_action.bpf_return()); }
  Label foreign_label() { return out_.ret(policy_.foreign_abi.bpf_return()); }

  // Neighbours that do the same become one range: fewer comparisons on the way to a verdict.
  void add_range(std::uint32_t first, Label body) {
    if (!ranges_.empty() && ranges_.back().first == first) ranges_.pop_back();
    if (!ranges_.empty() && out_.same(ranges_.back().body, body)) return;
    ranges_.push_back({first, body});
  }

  Label body(const std::vector<const Row*>& rows) {
    if (rows.front()->when.empty()) return out_.ret(rows.front()->action.bpf_return());
    const auto known = bodies_.find(rows);
    if (known != bodies_.end()) return known->second;
    Label next = default_label();
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) next = row_code(**row, next);
    return bodies_[rows] = next;
  }

  Label row_code(const Row& row, Label otherwise) {
    Label next = out_.ret(row.action.bpf_return());
    for (auto test = row.when.rbegin(); test != row.when.rend(); ++test) {
      next = TestCode(out_, *test).generate(next, otherwise);
    }
    return next;
  }

  // Binary search over ranges_[from, to).
  Label choose(std::size_t from, std::size_t to) {
    if (to - from == 1) return ranges_[from].body;
    const std::size_t middle = from + (to - from) / 2;
    const Label above = choose(middle, to);
    const Label below = choose(from, middle);
    return out_.jump(BPF_JGE, ranges_[middle].first, above, below);
  }

  const Policy& policy_;
  const Arch arch_;
  const CompileOptions options_;
  BpfBuilder out_;
  std::vector<Range> ranges_;
  std::map<std::vector<const Row*>, Label> bodies_;
};

}  // namespace

Result<Program> compile(const Policy& policy, Arch arch, const CompileOptions& options) {
  // A policy that parse_policy() made holds this already; one made by hand might not.
  for (const Row& row : policy.rows) {
    for (const ArgTest& test : row.when) {
      if (auto sane = check_test(test); !sane) {
        sane.error().what = row.origin;
        return std::unexpected(std::move(sane.error()));
      }
    }
  }
  return Compiler(policy, arch, options).run();
}

std::string_view as_bytes(const Program& program) {
  return {reinterpret_cast<const char*>(program.data()), program.size() * sizeof(sock_filter)};
}

}  // namespace sandy::seccomp
