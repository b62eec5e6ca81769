// One attack as it is tried: outside first, then in a sandbox.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "policy/policy.h"
#include "session/wire/frame.h"
#include "verify/canaries.h"
#include "verify/judge.h"
#include "verify/outside.h"

namespace sandy::verify {

struct Trial {
  Attack attack;
  Control control;                      // already tried
  std::vector<std::string> words;       // sandy-attack's, inside
  Proof proof = Proof::report;
  std::function<bool()> arrived;        // seen outside, since it was asked last
  std::function<std::string()> allowed_by;
  // What the end of the command says of it besides.
  std::function<void(const wire::Json& end, Inside& inside)> look;
};

// What the attacks are on, and with.
struct Setting {
  const policy::PolicyFields& policy;
  const plan::SandboxPlan& plan;
  Canaries& canaries;
  const Outside& outside;
  std::string nonce, home, policy_file;
  std::string state_directory;        // Sandy's own on this machine
  bool own_workspace = false;         // the workspace is one of ours, beside which a secret is
  std::set<AttackClass> classes;

  bool wants(AttackClass attack_class) const { return classes.contains(attack_class); }
  // A path of this machine, by each name that the sandbox may have for it: its own, and those where a rule or the workspace shows it.
  std::vector<std::string> inside(const std::string& path) const;
  // The last of these: where it is shown, if it is.
  std::string shown_inside(const std::string& path) const { return inside(path).back(); }
  // The policy's rule that shows one of these paths of the machine (explain.h).
  std::string shown_by(const std::vector<std::string>& paths, bool writing) const;
  // A directory of ours in the workspace, as it is called inside.
  std::string directory() const { return plan.workspace + "/.sandy-verify-" + nonce; }
};

// Those on any sandbox, and those on one with a list of what can be reached: `allowed` is in its policy, and no other canary.
std::vector<Trial> trials(Setting& setting);
std::vector<Trial> network_trials(Setting& setting);
std::vector<Trial> allowlist_trials(Setting& setting, const Control& control);

// What an allowlist's sandbox can reach through the proxy, which shows that the attempts could: words for sandy-attack.
std::vector<std::string> allowed_connection(const Setting& setting);

}  // namespace sandy::verify
