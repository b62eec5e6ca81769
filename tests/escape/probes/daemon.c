// daemon KIND MARKER: leaves a process behind that is hard to find or to kill, and returns. Each ends by itself after 300 s.
// The process has MARKER among its arguments, and makes the file started-KIND when it is as it wants to be.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void started(const char* kind) {
  char name[64];
  snprintf(name, sizeof name, "started-%s", kind);
  const int fd = open(name, O_WRONLY | O_CREAT, 0600);
  if (fd >= 0) close(fd);
}

static void ignore_all(void) {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_IGN);
}

static void stay(void) {
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  for (int second = 0; second < 300; ++second) sleep(1);
  _exit(0);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const char* kind = argv[1];
  if (strcmp(kind, "bomb") == 0) {
    for (int i = 0; i < 300; ++i) {
      if (fork() == 0) {
        ignore_all();
        setsid();
        stay();
      }
    }
    return 0;
  }
  if (fork() != 0) return 0;
  if (strcmp(kind, "setsid") == 0) setsid();
  if (strcmp(kind, "double") == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    (void)!chdir("/");
    (void)!chdir(getenv("PWD"));
  }
  if (strcmp(kind, "ignore") == 0) ignore_all();
  if (strcmp(kind, "nodeathsig") == 0) prctl(PR_SET_PDEATHSIG, 0);
  if (strcmp(kind, "subreaper") == 0) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (fork() == 0) {
      if (fork() != 0) _exit(0);
      stay();
    }
  }
  if (strcmp(kind, "deep") == 0) {
    for (int i = 0; i < 30; ++i) {
      setsid();
      if (fork() != 0) stay();
    }
  }
  started(kind);
  if (strcmp(kind, "stop") == 0) raise(SIGSTOP);
  stay();
}
