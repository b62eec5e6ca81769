#include "verify/attack.h"

namespace sandy::verify {

const char* word(AttackClass attack_class) {
  switch (attack_class) {
    case AttackClass::network: return "network";
    case AttackClass::sockets: return "sockets";
    case AttackClass::syscalls: return "syscalls";
    case AttackClass::files: return "files";
    case AttackClass::processes: return "processes";
    case AttackClass::host_side: return "host-side";
    case AttackClass::limits: return "limits";
  }
  return "";
}

std::optional<AttackClass> attack_class(std::string_view text) {
  for (const auto candidate : kClasses) {
    if (text == word(candidate)) return candidate;
  }
  return {};
}

const char* word(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return "pass";
    case Verdict::fail: return "fail";
    case Verdict::untried: return "untried";
  }
  return "";
}

}  // namespace sandy::verify
