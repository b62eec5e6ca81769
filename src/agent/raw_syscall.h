// System calls without libc. Between clone(CLONE_VM) and execve a process shares its parent's memory, also libc's errno
// and locks, so it must not call libc. The return value is the kernel's: -errno on failure.
#pragma once

#include <sys/syscall.h>

namespace sandy::agent {

#if defined(__x86_64__)
[[gnu::always_inline]] inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
[[gnu::always_inline]] inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
}
#else
#error "raw_syscall is written for x86-64 and aarch64"
#endif

template <typename T>
[[gnu::always_inline]] inline long raw_arg(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

}  // namespace sandy::agent
