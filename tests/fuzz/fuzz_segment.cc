// libFuzzer target for the reader of telemetry segments. The input is a list of changes to a sound
// segment: two bytes for the length it is cut to, then six at a time, a place and a new word.
// Whatever the segment claims then, nothing outside it is read (AddressSanitizer says so), and what
// is served has the sizes that were promised.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "dataplane/telemetry/segment_reader.h"
#include "dataplane/telemetry/segment_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline::telemetry;
  if (size < 2) return 0;
  SegmentSetup setup;
  setup.nics = {{"h0", 1, 0, 1024}, {"h1", 1, 0, 1024}};
  setup.records = 2;
  std::vector<std::uint64_t> words(SegmentWriter::bytes_needed(setup) / 8);
  const SegmentWriter writer(std::as_writable_bytes(std::span(words)), setup);
  for (std::size_t i = 2; i + 6 <= size; i += 6) {
    const std::size_t place = (data[i] | std::size_t{data[i + 1]} << 8U) * 4 % (words.size() * 8);
    std::memcpy(reinterpret_cast<std::byte*>(words.data()) + place, data + i + 2, 4);
  }
  const std::size_t cut = data[0] | std::size_t{data[1]} << 8U;
  if (cut < words.size()) {
    words.resize(words.size() - cut);
    words.shrink_to_fit();  // what lies behind is caught
  }
  SegmentReader reader;
  if (!reader.open(std::as_bytes(std::span(words))).empty()) return 0;
  NicSample sample;
  QueuePairRecord record;
  for (std::size_t nic = 0; nic < reader.nics().size(); ++nic) {
    if (reader.read(nic, sample) && sample.values.size() != reader.series().size()) std::abort();
    for (std::size_t i = 0; i < reader.records() && i < 64; ++i) {
      static_cast<void>(reader.read_record(nic, i, record));
    }
  }
  return 0;
}
