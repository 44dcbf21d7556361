// libFuzzer target for capture files, pcap and pcapng: whatever they hold, the reader comes to an
// end, gives no byte that the file does not have and says where it stopped. Seeds:
// tests/fuzz/corpus/capture.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "dataplane/port/capture/capture_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  paceline::CaptureReader reader(in);
  paceline::FrameRead frame;
  std::size_t total = 0;
  unsigned sum = 0;
  while (reader.next(frame)) {
    total += frame.bytes.size();
    for (const std::byte byte : frame.bytes) sum += std::to_integer<unsigned>(byte);
  }
  if (total > size || (!reader.error().empty() && reader.error().rfind("byte ", 0) != 0) ||
      sum > 255 * size) {
    std::fprintf(stderr, "fuzz_capture: %zu bytes of %zu; %s\n", total, size,
                 reader.error().c_str());
    std::abort();
  }
  return 0;
}
