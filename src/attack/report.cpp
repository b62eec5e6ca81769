#include "attack/report.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

namespace sandy::attack {
namespace {

const char* the_nonce = "";

// In one write: a pipe takes so much at once, and a half line is none.
void say(const char* word, const char* detail, size_t length) {
  static char line[4096];
  size_t at = 0;
  const auto add = [&](const char* text, size_t size) {
    if (size > sizeof line - 1 - at) size = sizeof line - 1 - at;
    memcpy(line + at, text, size);
    at += size;
  };
  add(the_nonce, strlen(the_nonce));
  add(" ", 1);
  add(word, strlen(word));
  add(" ", 1);
  add(detail, length);
  for (size_t i = 0; i < at; ++i) {
    if (line[i] == '\n' || line[i] == '\0') line[i] = ' ';
  }
  line[at++] = '\n';
  while (write(1, line, at) < 0 && errno == EINTR) {}
}

}  // namespace

void set_nonce(const char* nonce) { the_nonce = nonce; }

void say_done(const char* detail) { say("done", detail, strlen(detail)); }

void done(const char* detail, size_t length) {
  say("done", detail, length);
  _exit(0);
}

void done(const char* detail) { done(detail, strlen(detail)); }

void refused(const char* word) {
  say("refused", word, strlen(word));
  _exit(0);
}

void refused(int error) {
  const char* name = strerrorname_np(error);
  refused(name != nullptr ? name : "an unknown error");
}

void absent(const char* why) {
  say("absent", why, strlen(why));
  _exit(0);
}

}  // namespace sandy::attack
