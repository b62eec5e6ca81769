// More than one's share: row 39. All of it is counted, and given back at once.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "attack/attempts.h"
#include "attack/report.h"

namespace sandy::attack {
namespace {

// forks COUNT: so many processes at a time, which wait to be ended.
void forks(char** arguments) {
  const int wanted = atoi(arguments[0]);
  int wait_for[2];
  if (pipe2(wait_for, O_CLOEXEC) != 0) refused(errno);
  int made = 0, error = 0;
  for (; made < wanted; ++made) {
    const pid_t child = fork();
    if (child == 0) {
      close(wait_for[1]);
      char byte;
      _exit(read(wait_for[0], &byte, 1) == 0 ? 0 : 1);  // our end
    }
    if (child < 0) {
      error = errno;
      break;
    }
  }
  close(wait_for[1]);
  while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {}
  char detail[64];
  snprintf(detail, sizeof detail, "%d processes", made);
  made == wanted ? done(detail) : refused(error);
}

// memory MIB: so much of it, written to. A child takes it, so that somebody is left to tell.
void memory(char** arguments) {
  const size_t size = static_cast<size_t>(atoi(arguments[0])) << 20;
  const pid_t child = fork();
  if (child < 0) refused(errno);
  if (child == 0) {
    void* const pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) _exit(1);
    for (size_t at = 0; at < size; at += 4096) static_cast<volatile char*>(pages)[at] = 1;
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) done(arguments[0]);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) refused("killed");
  refused(ENOMEM);
}

// cgroup: changes the limits of its own group.
void own_group(char** /*arguments*/) {
  char text[4096] = {};
  const int own = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
  if (own < 0 || read(own, text, sizeof text - 1) <= 0) refused(errno == 0 ? ENOENT : errno);
  char* const group = strstr(text, "0::");
  if (group == nullptr) absent("no control groups of version 2");
  group[strcspn(group, "\n")] = '\0';
  int error = ENOENT;
  for (const char* const file : {"cgroup.procs", "memory.max", "pids.max", "cgroup.freeze"}) {
    char path[8192];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", group + 3, file);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) done(path);
    error = errno;
  }
  refused(error);
}

}  // namespace

const Attempt kLimits[] = {
    {"forks", 1, forks},
    {"memory", 1, memory},
    {"cgroup", 0, own_group},
    {nullptr, 0, nullptr},
};

}  // namespace sandy::attack
