// What an attack is, and what became of it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandy::verify {

// By what is attacked.
enum class AttackClass { network, sockets, syscalls, files, processes, host_side, limits };
inline constexpr AttackClass kClasses[] = {AttackClass::network,   AttackClass::sockets,   AttackClass::syscalls, AttackClass::files,
                                           AttackClass::processes, AttackClass::host_side, AttackClass::limits};

const char* word(AttackClass attack_class);
std::optional<AttackClass> attack_class(std::string_view word);

struct Attack {
  std::string name;       // "read-home"
  AttackClass in = AttackClass::files;
  std::vector<int> rows;  // of the list of known ways in which such promises broke elsewhere (tests/escape/README.md)
  std::string words;      // "read a file of your home directory"
};

enum class Verdict { pass, fail, untried };
const char* word(Verdict verdict);

struct Finding {
  Attack attack;
  Verdict verdict = Verdict::fail;
  std::string detail;      // "refused: EPERM"; printable
  std::string allowed_by;  // of a failure, where it is known: what in the policy allows it; printable
};

}  // namespace sandy::verify
