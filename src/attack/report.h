// What an attempt has to say: one line, "NONCE WORD DETAIL", and the end of the process. Who gets no such line knows that the attempt died on its way.
#pragma once

#include <stddef.h>

namespace sandy::attack {

// Known to who started us, and to nobody else in a sandbox.
void set_nonce(const char* nonce);

// The attack succeeded; with what it found.
[[noreturn]] void done(const char* detail, size_t length);
[[noreturn]] void done(const char* detail);
// It was refused: errno(3), or a word of the attempt's own.
[[noreturn]] void refused(int error);
[[noreturn]] void refused(const char* word);
// There is nothing here to try it with.
[[noreturn]] void absent(const char* why);

// As done(), and goes on.
void say_done(const char* detail);

}  // namespace sandy::attack
