// Topologies, flow lists and flow-size distributions: what is accepted obeys the formats' rules,
// and is written and read back to the same.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tools/workload/cdf.h"
#include "tools/workload/files/hpcc_format.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void topology(std::string_view text) {
  using namespace paceline::workload;
  const auto read = parse_hpcc_topology(text, "fuzz");
  if (!read.ok()) return;
  const std::uint32_t nodes = read.value.numbers.nodes();
  for (const auto& link : read.value.links) {
    require(link.a < nodes && link.b < nodes && link.a != link.b);
    require(link.rate.bps > 0 && link.delay.count > 0);
  }
  const std::string written = write_hpcc_topology(read.value);
  const auto again = parse_hpcc_topology(written, "again");
  require(again.ok() && write_hpcc_topology(again.value) == written);
}

void flows(std::string_view text) {
  using namespace paceline::workload;
  const NodeNumbers numbers({1, 3, 5, 6}, {0, 2, 4});
  const auto read = parse_hpcc_flows(text, "fuzz", numbers);
  if (!read.ok()) return;
  for (const HpccFlow& f : read.value) {
    require(f.src < 4 && f.dst < 4 && f.src != f.dst && f.bytes > 0 && f.start.count >= 0);
  }
  const auto again = parse_hpcc_flows(write_hpcc_flows(read.value, numbers), "again", numbers);
  require(again.ok() && again.value == read.value);
}

void cdf(std::string_view text) {
  using namespace paceline::workload;
  const auto read = parse_cdf(text, "fuzz");
  if (!read.ok()) return;
  require(read.value.mean() >= 0);
  std::uint64_t last = 0;
  for (int i = 0; i < 64; ++i) {
    const std::uint64_t bytes = read.value.quantile(i / 64.0);
    require(bytes >= 1 && bytes >= last);
    last = bytes;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      topology(text);
      break;
    case 1:
      flows(text);
      break;
    default:
      cdf(text);
      break;
  }
  return 0;
}
