// All that attacks are aimed at: harmless things of the caller's outside of the sandbox, made for one run and removed with this.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "verify/canary_directory.h"
#include "verify/canary_listener.h"
#include "verify/victim.h"

namespace sandy::verify {

// The variable that has the secret, in the environment of this process and of the victim.
inline constexpr char kSecretVariable[] = "SANDY_VERIFY_SECRET";

// One that can't be had says why: what is aimed at it is not possible to try here.
template <typename T>
using Canary = Result<T>;

// A directory, and sockets in it. `later`: made when the sandbox's plan already was, and so not among what that hides.
struct CanaryPlace {
  std::string path;  // of the directory; "": it could not be made
  Canary<CanaryDirectory> directory = fail("not made", "");
  Canary<CanaryListener> stream = fail("not made", ""), datagram = fail("not made", ""), later = fail("not made", "");
  std::string file(const std::string& name) const { return path + "/" + name; }
};

class Canaries {
 public:
  // `program`: sandy-attack. Sets the variable.
  Canaries(const std::string& program, const std::string& nonce, const std::string& home);

  // What is to be there only when the plan is made.
  void make_later_sockets();
  // A workspace for policies that name none: in the directory in /tmp.
  Result<std::string> make_workspace();

  std::string secret;
  CanaryPlace home, tmp, runtime;
  Canary<CanaryListener> tcp4 = fail("", ""), tcp6 = fail("", ""), tcp_host = fail("", ""), udp4 = fail("", ""), udp_host = fail("", ""), allowed = fail("", ""),
                         abstract_stream = fail("", ""), abstract_datagram = fail("", "");
  Canary<Victim> victim = fail("", "");
  UniqueFd inherited;  // the directory in /tmp, without close-on-exec
};

}  // namespace sandy::verify
