// libFuzzer target for everything that reads bytes from the network: frames, headers with the
// payload elsewhere, control messages. The first byte of the input chooses which; the promises are
// those of tests/wire/checks/parse_check.h. Seeds: tests/fuzz/corpus/parse.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "tests/wire/checks/parse_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline::test;
  if (size < 3) return 0;
  const auto input = std::as_bytes(std::span(data, size));
  std::string wrong;
  switch (data[0] % 3) {
    case 0:
      wrong = check_frame(input.subspan(1));
      break;
    case 1: {
      // Two bytes for the payload's length; beyond what a datagram can hold too.
      const std::uint32_t payload = std::uint32_t{data[1]} << 8 | data[2];
      wrong = check_headers(input.subspan(3), payload * 4);
      break;
    }
    case 2:
      wrong = check_control(input.subspan(1));
      break;
  }
  if (!wrong.empty()) {
    std::fprintf(stderr, "fuzz_parse: %s\n", wrong.c_str());
    std::abort();
  }
  return 0;
}
