// Whatever a scenario, experiment or fleet file holds, the reader either gives a value or says why
// not, and a scenario it accepts obeys the rules it is checked for.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "tools/fleet/fleet_file.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const paceline::config::Scenario& s) {
  require(s.fabric.hosts >= 2);
  require(s.fabric.rate.bps >= 1'000'000);
  require(s.fabric.delay.count >= 1000);
  require(s.fabric.ecn.kmin_bytes <= s.fabric.ecn.kmax_bytes);
  require(s.fabric.ecn.pmax >= 0 && s.fabric.ecn.pmax <= 1);
  require(s.transport.payload_bytes >= 64 && s.transport.payload_bytes <= 4096);
  require(s.workload.load > 0 && s.workload.load <= 1);
  if (s.fabric.topology == "star" && s.workload.kind == "incast") {
    require(s.workload.receiver < s.fabric.hosts);
    require(s.workload.fan_in < s.fabric.hosts);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  config::ReaderOptions options{cc::algorithms(), {}};
  if (data[0] == 'F') {
    const auto read = tools::read_fleet_text(text, "fuzz", "", options);
    if (!read.ok()) return 0;
    require(!read.value.hosts.empty());
    if (read.value.has_fabric) check(read.value.scenario);
    for (const auto& host : read.value.hosts) {
      require(host.places.empty() || host.places.size() == host.nics.size());
    }
    return 0;
  }
  // The first byte chooses: a fleet, a scenario, an experiment, or an override of an empty
  // scenario.
  if (data[0] % 3 == 0) {
    const auto read = config::read_scenario_text(text, "fuzz", "", options);
    if (read.ok()) check(read.value);
  } else if (data[0] % 3 == 1) {
    const auto read = config::read_experiment_text(text, "fuzz", "", options);
    if (read.ok()) {
      require(read.value.arms.size() >= 2 && !read.value.scenarios.empty());
      for (const auto& s : read.value.scenarios) check(s);
    }
  } else {
    options.overrides.emplace_back(text);
    const auto read = config::read_scenario_text("", "fuzz", "", options);
    if (read.ok()) check(read.value);
  }
  return 0;
}
