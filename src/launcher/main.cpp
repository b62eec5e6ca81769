// sandy-launch: prepares what bubblewrap can't, and becomes it. Single-threaded, static and small.
//
//   sandy-launch [--user UID:GID] [--stage FD | --idmap FD]... [--network FD [--inward COUNT]] -- BWRAP ARGUMENT...
//   sandy-launch --wait FD
//   sandy-launch --try-network
//   sandy-launch --version
//
// Should: as root, put the tree behind each FD where the sandbox's user can reach it, with --idmap also with that user in the place of the
// tree's owner, and then become that user for good; with --network, enter a network namespace of the sandbox's own and send the
// sockets that listen there over FD, and COUNT pairs of others with which to connect to servers in it. With --wait, its arguments and descriptors come over FD
// (launcher/orders.h): until then its caller puts it where bubblewrap, and all that this starts, is to be. Mustn't: read a policy, decide anything, write anywhere. A failure is one line on
// stderr, and status 1. Its caller's end needs no watching: then the agent's socket is closed, and what was started here ends by itself.
#include <grp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "launcher/die.h"
#include "launcher/network.h"
#include "launcher/orders.h"
#include "launcher/stage.h"

namespace {

using namespace sandy::launcher;

unsigned parse_number(const char* text, const char** end) {
  char* after = nullptr;
  errno = 0;
  const unsigned long value = strtoul(text, &after, 10);
  if (errno != 0 || after == text || value > 0xFFFFFFFEUL) {
    errno = EINVAL;
    die(text);
  }
  *end = after;
  return static_cast<unsigned>(value);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kMaxTrees = 4096;
  bool switch_user = false;
  unsigned user = 0, group = 0;
  int network = -1;
  unsigned inward = 0;
  static Tree trees[kMaxTrees];
  int tree_count = 0;
  int i = 1;
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    dprintf(1, "sandy-launch %s\n", SANDY_VERSION);
    return 0;
  }
  if (argc == 2 && strcmp(argv[1], "--try-network") == 0) {
    enter_network(-1, 0);
    return 0;
  }
  if (argc == 3 && strcmp(argv[1], "--wait") == 0) {
    const char* end = nullptr;
    argv = take_orders(static_cast<int>(parse_number(argv[2], &end)), &argc);
  }
  for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
    const char* end = nullptr;
    if (strcmp(argv[i], "--user") == 0) {
      user = parse_number(argv[i + 1], &end);
      if (*end != ':') parse_number("", &end);
      group = parse_number(end + 1, &end);
      switch_user = true;
    } else if ((strcmp(argv[i], "--stage") == 0 || strcmp(argv[i], "--idmap") == 0) && tree_count < kMaxTrees) {
      trees[tree_count++] = {static_cast<int>(parse_number(argv[i + 1], &end)), argv[i][2] == 'i', -1, false};
    } else if (strcmp(argv[i], "--network") == 0) {
      network = static_cast<int>(parse_number(argv[i + 1], &end));
    } else if (strcmp(argv[i], "--inward") == 0) {
      inward = parse_number(argv[i + 1], &end);
      if (inward > kMaxInward) parse_number("", &end);
    } else {
      errno = EINVAL;
      die(argv[i]);
    }
  }
  if (i + 1 >= argc || strcmp(argv[i], "--") != 0 || (!switch_user && tree_count > 0)) {
    errno = EINVAL;
    die("usage: sandy-launch [--user UID:GID] [--stage FD | --idmap FD]... [--network FD [--inward COUNT]] -- BWRAP ARGUMENT...");
  }
  char** program = argv + i + 1;

  if (switch_user) {
    for (int k = 0; k < tree_count; ++k) copy_tree(trees[k], user, group);
    stage(trees, tree_count);
    // For good: with all three ids changed, no capability is left, and none comes back by execve (capabilities(7)).
    if (setgroups(0, nullptr) != 0 || setresgid(group, group, group) != 0 || setresuid(user, user, user) != 0) die("becoming an unprivileged user");
  }
  if (network >= 0) {
    // A change of user takes our own /proc entries away from us, in which a user namespace's maps are written (PR_SET_DUMPABLE in prctl(2)).
    if (switch_user && prctl(PR_SET_DUMPABLE, 1) != 0) die("prctl");
    enter_network(network, inward);
    close(network);
  }
  // With --network, this drops the capabilities over that network: they don't outlive execve for another user than its root.
  char* environment[] = {nullptr};
  execve(program[0], program, environment);
  die(program[0]);
}
