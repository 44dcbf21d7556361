// Judges a capture by our own parser: every packet whole, every ICRC right (or marked as damaged).
// Prints how many of each there are.
//
// usage: check_capture FILE.pcapng     exit: 0 good, 1 something is wrong
#include <cstdio>
#include <exception>

#include "tests/wire/checks/pcapng_reader.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: check_capture FILE.pcapng\n", stderr);
    return 2;
  }
  try {
    const auto file = paceline::test::read_pcapng(argv[1]);
    const std::string wrong = paceline::test::check_capture(file);
    if (!wrong.empty()) {
      std::fprintf(stderr, "%s: %s\n", argv[1], wrong.c_str());
      return 1;
    }
    for (const auto& [name, count] : paceline::test::count_packets(file)) {
      std::printf("%u\t%s\n", count, name.c_str());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
