// The test peer in the guest: libibverbs, driven by lines on standard input (commands.h).
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "tests/interop/peer/commands.h"
#include "tests/interop/peer/verbs_backend.h"

int main() {
  try {
    paceline::interop::VerbsBackend backend;
    paceline::interop::Commands(backend).run(STDIN_FILENO, STDOUT_FILENO);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peer: %s\n", error.what());
    return 1;
  }
}
