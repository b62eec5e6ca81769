// sandy-attack: one attempt to do what a sandbox forbids. `sandy verify` runs it in a sandbox, and outside as the positive control.
//
//   sandy-attack [--namespace] NONCE ATTEMPT [ARGUMENT...]
//   sandy-attack --version
//
// --namespace: with all capabilities, in namespaces of its own (user, mount, network, cgroup), where no plain user may do it elsewhere. Status 2: wrong arguments.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <initializer_list>

#include "attack/attempts.h"
#include "attack/report.h"

namespace {

using namespace sandy::attack;

void write_file(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) absent("a user namespace of its own can't be had");
  close(fd);
}

void enter_namespaces() {
  char uids[64], gids[64];
  snprintf(uids, sizeof uids, "0 %u 1", getuid());
  snprintf(gids, sizeof gids, "0 %u 1", getgid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWCGROUP) != 0) absent("a user namespace of its own can't be had");
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", uids);
  write_file("/proc/self/gid_map", gids);
  // What is mounted there stays there.
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) absent("a mount namespace of its own can't be had");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    dprintf(1, "sandy-attack %s\n", SANDY_VERSION);
    return 0;
  }
  int at = 1;
  const bool own_namespaces = argc > 1 && strcmp(argv[1], "--namespace") == 0;
  if (own_namespaces) ++at;
  if (argc < at + 2) {
    dprintf(2, "sandy-attack: it is started by `sandy verify`\n");
    return 2;
  }
  set_nonce(argv[at]);
  for (const Attempt* list : {kCalls, kFiles, kLimits, kNetwork, kProcesses, kSockets}) {
    for (const Attempt* attempt = list; attempt->name != nullptr; ++attempt) {
      if (strcmp(attempt->name, argv[at + 1]) != 0) continue;
      if (argc - at - 2 < attempt->least) return 2;
      if (own_namespaces) enter_namespaces();
      attempt->run(argv + at + 2);
      return 3;  // without a report
    }
  }
  return 2;
}
