/* A program with a secret, to be made set-user-id root: it waits for a line and says whether
 * anybody has written to its memory meanwhile. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "setuid_memory.h"

int main(void) {
  unsigned char* const at = mmap((void*)kSecretAt, kSecretBytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (at != (unsigned char*)kSecretAt) return 1;
  memset(at, kSecretByte, kSecretBytes);
  printf("ready %d\n", (int)geteuid());
  fflush(stdout);
  char line[16];
  if (fgets(line, sizeof line, stdin) == NULL) return 1;
  size_t changed = 0;
  for (size_t i = 0; i < kSecretBytes; ++i) changed += at[i] != kSecretByte;
  printf("changed %zu\n", changed);
  return 0;
}
