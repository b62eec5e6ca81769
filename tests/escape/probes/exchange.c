// exchange A B: renameat2(2) with RENAME_EXCHANGE, which puts each in the other's place.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) == 0) return 0;
  perror("exchange");
  return 1;
}
