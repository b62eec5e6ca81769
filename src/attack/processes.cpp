// Processes of the host, the sandbox's own first one, and what outlives its end: rows 34, 40, 45.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <initializer_list>

#include "attack/attempts.h"
#include "attack/report.h"

namespace sandy::attack {
namespace {

char the_secret[128];

// victim SECRET: has it in its memory, and lets everyone look who may. Tells where, and then when it is signalled. It ends with its input.
void victim(char** arguments) {
  snprintf(the_secret, sizeof the_secret, "%s", arguments[0]);
  // From its own arguments it is gone: memory and environment are what is attacked.
  memset(arguments[0], 'x', strlen(arguments[0]));
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  struct sigaction action{};
  action.sa_handler = [](int) {
    if (write(1, "signalled\n", 10) < 0) _exit(1);
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  char line[32];
  snprintf(line, sizeof line, "%llu", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(the_secret)));
  say_done(line);
  char byte;
  while (read(0, &byte, 1) > 0) {}
  _exit(0);
}

// memory-of PID ADDRESS LENGTH
void memory_of(char** arguments) {
  const pid_t pid = static_cast<pid_t>(atoi(arguments[0]));
  const uint64_t address = strtoull(arguments[1], nullptr, 10);
  const size_t length = strtoull(arguments[2], nullptr, 10);
  char content[256] = {};
  if (length > sizeof content) refused(EINVAL);
  iovec here{content, length}, there{reinterpret_cast<void*>(static_cast<uintptr_t>(address)), length};
  if (process_vm_readv(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(length)) done(content, length);
  const int error = errno;
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/mem", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && pread(fd, content, length, static_cast<off_t>(address)) == static_cast<ssize_t>(length)) done(content, length);
  refused(error);
}

// signal PID: one that nobody dies of who doesn't ask for it.
void send_signal(char** arguments) { kill(static_cast<pid_t>(atoi(arguments[0])), SIGUSR1) == 0 ? done(arguments[0]) : refused(errno); }

// find TEXT PATH...: a file that has it.
void find(char** arguments) {
  static char content[262'144];
  const size_t length = strlen(arguments[0]);
  int error = ENODATA;
  for (char** path = arguments + 1; *path != nullptr; ++path) {
    const int fd = open(*path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
      error = errno;
      continue;
    }
    size_t size = 0;
    for (ssize_t n = 1; n > 0 && size < sizeof content; size += n > 0 ? static_cast<size_t>(n) : 0) n = read(fd, content + size, sizeof content - size);
    close(fd);
    const auto* const found = static_cast<const char*>(memmem(content, size, arguments[0], length));
    if (found != nullptr) done(found, strnlen(found, static_cast<size_t>(content + size - found)));
  }
  refused(error);
}

// parent: its parent's and the first process's descriptors, environment and memory.
void look_at_parent(char** /*arguments*/) {
  int error = EACCES;
  const pid_t parents[] = {getppid(), 1};
  for (const pid_t pid : parents) {
    for (const char* const name : {"environ", "maps", "fd/0", "mem"}) {
      char path[64], byte;
      snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
      const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
      // Of memory the right to open it is enough; an empty environment tells nothing.
      if (fd >= 0 && (strcmp(name, "mem") == 0 || read(fd, &byte, 1) == 1)) done(path);
      if (fd < 0) error = errno;
      if (fd >= 0) close(fd);
    }
  }
  refused(error);
}

// variables NAME...: those that are set.
void variables(char** names) {
  char found[2048] = {};
  for (; *names != nullptr; ++names) {
    const char* const value = getenv(*names);
    if (value == nullptr) continue;
    const size_t at = strlen(found);
    // Each name with a digest of its value (FNV-1a), which stays where it is.
    uint64_t digest = 14'695'981'039'346'656'037U;
    for (const char* c = value; *c != '\0'; ++c) digest = (digest ^ static_cast<unsigned char>(*c)) * 1'099'511'628'211U;
    snprintf(found + at, sizeof found - at, "%s%s=%llu", at == 0 ? "" : " ", *names, static_cast<unsigned long long>(digest));
  }
  found[0] != '\0' ? done(found) : refused("none of them is set");
}

void ignore_all() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_IGN);
}

// Until it is ended, and no longer than a minute.
[[noreturn]] void stay() {
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3 && null >= 0; ++fd) dup2(null, fd);
  for (int second = 0; second < 60; ++second) sleep(1);
  _exit(0);
}

// daemon MARK: a process that has left its parent, its session, and every signal behind; MARK among its arguments shows it.
void daemon(char** /*arguments*/) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) refused(errno);
  const pid_t child = fork();
  if (child < 0) refused(errno);
  if (child == 0) {
    setsid();
    ignore_all();
    prctl(PR_SET_PDEATHSIG, 0);
    if (const pid_t again = fork(); again != 0) _exit(again < 0 ? 1 : 0);
    const bool told = write(ready[1], "x", 1) == 1;
    if (!told) _exit(1);
    close(ready[0]);
    close(ready[1]);
    stay();
  }
  close(ready[1]);
  char byte;
  read(ready[0], &byte, 1) == 1 ? done("") : refused(ECHILD);
}

// outstay MARK: ignores whoever asks it to end, with children that do the same.
void outstay(char** /*arguments*/) {
  ignore_all();
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      setsid();
      stay();
    }
    if (child < 0) refused(errno);
  }
  say_done("");
  stay();
}

}  // namespace

const Attempt kProcesses[] = {
    {"victim", 1, victim},
    {"memory-of", 3, memory_of},
    {"signal", 1, send_signal},
    {"find", 2, find},
    {"parent", 0, look_at_parent},
    {"variables", 1, variables},
    {"daemon", 1, daemon},
    {"outstay", 1, outstay},
    {nullptr, 0, nullptr},
};

}  // namespace sandy::attack
