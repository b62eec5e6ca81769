// hello32: a 32-bit program that needs no 32-bit C library. Compile with -m32 -nostdlib.
static int call(int number, int first, const char* second, int third) {
  int result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(first), "c"(second), "d"(third) : "memory");
  return result;
}

void _start(void) {
  call(4, 1, "hello\n", 6);
  call(1, 0, 0, 0);
}
