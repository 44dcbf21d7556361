// Topologies of SimAI and of htsim: what is accepted makes a fabric, and what of it can be written
// is read back to the same.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/scenario/fabric_shape.h"
#include "tools/workload/files/htsim_topology.h"
#include "tools/workload/files/topology_file.h"

namespace {

using namespace paceline::workload;

void demand(bool holds) {
  if (!holds) std::abort();
}

void simai(std::string_view text) {
  const auto read = parse_simai_topology(text, "fuzz");
  if (!read.ok()) return;
  const TopologyFile& file = read.value;
  const std::uint32_t ends = file.numbers.endpoints();
  std::vector<std::uint32_t> links(ends);
  for (const auto& link : file.links) {
    demand(link.a != link.b && link.b >= ends && link.b < ends + file.numbers.switches());
    demand(link.rate.bps > 0 && link.delay.count > 0);
    if (link.a < ends) ++links[link.a];
  }
  for (const std::uint32_t count : links) demand(count == 1);
  demand(file.numbers.hosts() % file.nics == 0);
  for (std::uint32_t host = 0; host < file.numbers.hosts(); ++host) {
    demand(file.numbers.host_index(file.numbers.number(host)) == host);
  }
}

void htsim(std::string_view text) {
  const auto read = parse_htsim_topology(text, "fuzz");
  if (!read.ok()) return;
  const FabricFromHtsim made = fabric_from_htsim(read.value);
  const auto shape = paceline::config::shape_of(made.fabric);
  demand(shape.endpoints() == read.value.hosts);
  demand(shape.switches() == read.value.leaves + read.value.spines + read.value.cores);
  if (!made.error.empty()) return;
  const auto written = write_htsim_topology(made.fabric);
  demand(written.ok());
  const auto again = parse_htsim_topology(written.value, "again");
  demand(again.ok() && again.value.links() == read.value.links());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    htsim(text);  // 'h' is even
  } else {
    simai(text);
  }
  return 0;
}
