#include "tools/diagnose/fabric_evidence.h"

#include <algorithm>

#include "tools/run/link_names.h"

namespace paceline::tools {

void describe_fabric(const config::Scenario& scenario, const workload::NodeNumbers& numbers,
                     const fabric::FabricSpec& spec, diagnosis::Evidence& out) {
  const std::vector<NamedLink> names = link_names(scenario, numbers);
  std::vector<double> from_hosts(spec.switches), to_switches(spec.switches);
  out.nics.resize(spec.nics());
  for (std::size_t i = 0; i < spec.links.size(); ++i) {
    const fabric::LinkSpec& link = spec.links[i];
    const bool of_host = std::min(link.a, link.b) < spec.hosts;
    const auto rate = static_cast<double>(link.rate.bps);
    out.links.push_back({names[i].name, names[i].first, names[i].second, rate, of_host});
    if (of_host) {
      const std::uint32_t end = std::min(link.a, link.b);
      const std::uint32_t leaf = std::max(link.a, link.b);
      diagnosis::NicEvidence& nic = out.nics[end % spec.nics()];
      if (end < spec.nics()) nic.name = link.a == end ? names[i].first : names[i].second;
      nic.rate_bps += rate;
      if (leaf >= spec.hosts) from_hosts[leaf - spec.hosts] += rate;
    } else {
      to_switches[link.a - spec.hosts] += rate;
      to_switches[link.b - spec.hosts] += rate;
    }
  }
  for (std::uint32_t s = 0; s < spec.switches; ++s) {
    if (from_hosts[s] == 0 || to_switches[s] == 0) continue;
    out.oversubscription = std::max(out.oversubscription, from_hosts[s] / to_switches[s]);
  }
  out.packet_bytes = scenario.transport.payload_bytes;
  out.marks = scenario.fabric.ecn.enabled;
}

}  // namespace paceline::tools
