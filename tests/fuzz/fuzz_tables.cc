// Whatever a flow list, a topology, a distribution of sizes, a placement, a connection matrix or a
// list of faults holds, its reader gives a value that keeps its promises, or says why not; and the
// name that a foreign file is given is one of a few.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "dataplane/attach/injection/fault_plan.h"
#include "tools/workload/cdf.h"
#include "tools/workload/exports/plan_order.h"
#include "tools/workload/files/foreign_format.h"
#include "tools/workload/files/hpcc_format.h"
#include "tools/workload/files/htsim_matrix.h"
#include "tools/workload/matrix_plan.h"
#include "tools/workload/placement.h"

namespace {

using namespace paceline::workload;

void require(bool holds) {
  if (!holds) std::abort();
}

void read_flows(std::string_view text) {
  constexpr std::uint32_t kHosts = 8;
  const auto read = parse_hpcc_flows(text, "fuzz", NodeNumbers::star(kHosts));
  if (!read.ok()) return;
  require(!read.value.empty());
  for (const HpccFlow& flow : read.value) {
    require(flow.src < kHosts && flow.dst < kHosts && flow.src != flow.dst);
    require(flow.bytes != 0 && flow.start.count >= 0);
  }
}

void read_topology(std::string_view text) {
  const auto read = parse_hpcc_topology(text, "fuzz");
  if (!read.ok()) return;
  const NodeNumbers& numbers = read.value.numbers;
  require(numbers.hosts() >= 2 && numbers.switches() >= 1);
  for (const auto& link : read.value.links) {
    require(link.a < numbers.nodes() && link.b < numbers.nodes() && link.a != link.b);
    require(link.rate.bps != 0 && link.delay.count > 0);
  }
}

void read_sizes(std::string_view text) {
  const auto read = parse_cdf(text, "fuzz");
  if (!read.ok()) return;
  std::uint64_t last = 0;
  for (const double share : {0.0, 0.001, 0.5, 0.999, 1.0}) {
    const std::uint64_t size = read.value.quantile(share);
    require(size >= 1 && size >= last && size <= 1'000'000'000'000'000);
    last = size;
  }
}

void read_placement(std::string_view text) {
  constexpr paceline::config::ServerShape kShape{3, 2};
  const auto read = parse_placement(text, "fuzz", kShape);
  if (!read.ok()) return;
  std::uint32_t nics = 0;
  for (const std::uint32_t nic : read.value) {
    require(nic < kShape.all_nics() && (nics & 1U << nic) == 0);
    nics |= 1U << nic;
  }
  require(read.value.size() == kShape.all_nics());
}

void read_matrix(std::string_view text) {
  const auto read = parse_htsim_matrix(text, "fuzz", text.size() % 2 == 0 ? "us" : "");
  if (!read.ok()) return;
  const HtsimMatrix& matrix = read.value;
  require(!matrix.flows.empty() && matrix.flows.size() <= text.size());
  for (const HtsimFlow& flow : matrix.flows) {
    require(flow.src < matrix.nodes && flow.dst < matrix.nodes && flow.src != flow.dst);
    require(flow.bytes != 0 && flow.start.count >= 0);
    require((flow.trigger == 0 && !flow.message) || flow.id != 0);
  }
  auto plan = plan_of_matrix(matrix, "fuzz");
  if (!plan.ok()) return;
  const auto& messages = plan.value.messages;
  require(messages.size() >= matrix.flows.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    require(messages[i].computes == (i >= matrix.flows.size()));
  }
  mark_awaited(plan.value);  // throws where a host cannot know what it waits for
  const PlanOrder order(plan.value);
  require(order.order().size() == messages.size());
}

void read_faults(std::string_view text) {
  using namespace paceline::attach;
  std::vector<FaultRule> rules;
  if (!parse_fault_rules(text, rules).empty()) return;
  require(!rules.empty() && rules.size() <= 64);
  for (const FaultRule& rule : rules) {
    require((rule.at != 0) + (rule.every != 0) + (rule.rate > 0) == 1 && rule.rate <= 1);
    require(rule.for_us <= 60'000'000);
    require(!rule.hits(1, 0, rule.queue_pair + 1, 1) || rule.queue_pair == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  // The first byte, '0' to '5', chooses the reader.
  switch (data[0] % 6U) {
    case 0:
      read_flows(text);
      break;
    case 1:
      read_topology(text);
      break;
    case 2:
      read_sizes(text);
      break;
    case 3:
      read_placement(text);
      break;
    case 5:
      read_faults(text);
      break;
    default:
      read_matrix(text);
      break;
  }
  require(known_format(text).size() < 64);
  return 0;
}
