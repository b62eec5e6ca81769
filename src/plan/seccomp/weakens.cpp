#include <algorithm>
#include <map>
#include <set>

#include "plan/seccomp/decide.h"
#include "plan/seccomp/seccomp_policy.h"
#include "plan/seccomp/symbols.h"

namespace sandy::seccomp {
namespace {

// Arguments that the default policy refuses in calls that it otherwise allows.
struct Probe {
  std::string syscall;
  std::array<std::string, 3> args;
  std::string text;
};

std::vector<Probe> make_probes() {
  std::vector<Probe> probes;
  const auto add = [&](std::string syscall, std::array<std::string, 3> args, std::string text) {
    probes.push_back({std::move(syscall), std::move(args), std::move(text)});
  };
  // AF_MAX is 46 in Linux 6.18; above it are the families to come.
  for (int family = 0; family < 64; ++family) {
    const std::string number = std::to_string(family);
    for (const char* type :
         {"SOCK_STREAM", "SOCK_DGRAM", "SOCK_RAW", "SOCK_SEQPACKET", "SOCK_PACKET"}) {
      add("socket", {number, type, "0"}, "sockets of family " + number + ", type " + type);
    }
    add("socketpair", {number, "SOCK_STREAM", "0"}, "socket pairs of family " + number);
  }
  for (int protocol = 1; protocol < 32; ++protocol) {
    add("socket", {"AF_NETLINK", "SOCK_RAW", std::to_string(protocol)},
        "netlink protocol " + std::to_string(protocol));
  }
  for (const char* protocol : {"IPPROTO_SCTP", "IPPROTO_SMC", "IPPROTO_MPTCP"}) {
    add("socket", {"AF_INET", "SOCK_STREAM", protocol},
        std::string("IP sockets with protocol ") + protocol);
  }
  for (const char* request :
       {"TIOCSTI", "TIOCLINUX", "TIOCCONS", "TIOCSETD", "KDSKBENT", "KDSKBSENT"}) {
    add("ioctl", {"0", request, "0"}, std::string("the terminal request ") + request);
    add("ioctl", {"0", std::string(request) + "|0x100000000", "0"},
        std::string("the terminal request ") + request +
            " with high bits set, which the kernel ignores");
  }
  for (const char* flag : {"CLONE_NEWNS", "CLONE_NEWCGROUP", "CLONE_NEWUTS", "CLONE_NEWIPC",
                           "CLONE_NEWUSER", "CLONE_NEWPID", "CLONE_NEWNET", "CLONE_NEWTIME"}) {
    if (flag != std::string_view("CLONE_NEWTIME")) {
      add("clone", {flag, "0", "0"}, std::string("new namespaces: ") + flag);
      add("clone", {std::string(flag) + "|17", "0", "0"}, std::string("new namespaces: ") + flag);
    }
    add("unshare", {flag, "0", "0"}, std::string("new namespaces: ") + flag);
  }
  for (const char* persona : {"READ_IMPLIES_EXEC", "MMAP_PAGE_ZERO", "ADDR_NO_RANDOMIZE"}) {
    add("personality", {persona, "0", "0"}, std::string("the personality ") + persona);
  }
  for (const char* type : {"S_IFCHR", "S_IFBLK"}) {
    add("mknod", {"0", type, "0"}, std::string("device nodes: ") + type);
    add("mknodat", {"0", "0", type}, std::string("device nodes: ") + type);
  }
  return probes;
}

using RowsByNumber = std::map<std::uint32_t, std::vector<const Row*>>;

RowsByNumber index(const Policy& policy, Arch arch) {
  RowsByNumber out;
  for (NumberRows& entry : rows_by_number(policy, arch, {}))
    out[entry.number] = std::move(entry.rows);
  return out;
}

// Whether any arguments can get the call through.
bool may_permit(const Policy& policy, const std::vector<const Row*>* rows) {
  if (rows == nullptr) return policy.default_action.permits();
  if (std::ranges::any_of(*rows, [](const Row* row) { return row->action.permits(); })) return true;
  return policy.default_action.permits() && !rows->back()->when.empty();
}

const std::vector<const Row*>* find(const RowsByNumber& rows, std::uint32_t number) {
  const auto found = rows.find(number);
  return found == rows.end() ? nullptr : &found->second;
}

bool permits(const Policy& policy, const std::vector<const Row*>* rows,
             const std::array<std::uint64_t, 6>& args) {
  if (rows != nullptr) {
    for (const Row* row : *rows) {
      if (std::ranges::all_of(row->when, [&](const ArgTest& test) { return test.holds(args); })) {
        return row->action.permits();
      }
    }
  }
  return policy.default_action.permits();
}

// The last row's reason where the default refuses, for the sentence.
std::string why_refused(const std::vector<const Row*>* rows) {
  if (rows == nullptr || rows->back()->reason.empty()) return "";
  return " (refused by default: " + rows->back()->reason + ")";
}

class Comparison {
 public:
  Comparison(const Policy& policy, const Policy& base) : policy_(policy), base_(base) {}

  std::vector<std::string> run() {
    if (policy_.default_action.permits()) {
      say("the default action is " + policy_.default_action.text() +
          ": every call without a row runs");
    }
    for (const Arch arch : kArches) {
      whole_calls(arch);
      probes(arch);
    }
    return std::move(sentences_);
  }

 private:
  void say(std::string sentence) {
    if (said_.insert(sentence).second) sentences_.push_back(std::move(sentence));
  }

  void whole_calls(Arch arch) {
    const RowsByNumber own = index(policy_, arch), base = index(base_, arch);
    std::map<std::uint32_t, std::string> names;
    for (const Policy* policy : {&base_, &policy_}) {
      for (const Row& row : policy->rows) {
        for (const std::string& name : row.syscalls) {
          if (const auto number = policy->number(arch, name)) names.emplace(*number, name);
        }
      }
    }
    for (const auto& [number, name] : names) {
      const auto* base_rows = find(base, number);
      if (may_permit(base_, base_rows) || !may_permit(policy_, find(own, number))) continue;
      say("permits " + printable(name) + why_refused(base_rows));
    }
  }

  void probes(Arch arch) {
    static const std::vector<Probe> all = make_probes();
    const RowsByNumber own = index(policy_, arch), base = index(base_, arch);
    for (const Probe& probe : all) {
      const auto number = base_.number(arch, probe.syscall);
      if (!number) continue;
      std::array<std::uint64_t, 6> args{};
      for (std::size_t i = 0; i < probe.args.size(); ++i)
        args[i] = parse_value(probe.args[i]).value();
      if (permits(base_, find(base, *number), args) || !permits(policy_, find(own, *number), args))
        continue;
      say("permits " + probe.syscall + ": " + probe.text);
    }
  }

  const Policy& policy_;
  const Policy& base_;
  std::vector<std::string> sentences_;
  std::set<std::string> said_;
};

}  // namespace

std::vector<std::string> weakens(const Policy& policy) {
  const auto base = builtin("default");
  if (!base) return {"can't be compared with the default policy: " + base.error().text()};
  return Comparison(policy, **base).run();
}

}  // namespace sandy::seccomp
