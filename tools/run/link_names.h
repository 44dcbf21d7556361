// The links of a scenario's fabric by the names that people use for them: as in [[event]]
// (docs/scenarios.md), "host3", "leaf0-spine1#1", or "12-20" by a topology file's numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/scenario.h"
#include "tools/workload/files/hpcc_format.h"

namespace paceline::tools {

struct NamedLink {
  std::string name;
  std::string first, second;  // its ends, in the order of the fabric
};

// Names of all links, in the order of the fabric. `scenario` is prepared (its files are read).
std::vector<NamedLink> link_names(const config::Scenario& scenario,
                                  const workload::NodeNumbers& numbers);

// The name of one link.
NamedLink link_name(const config::Scenario& scenario, const workload::NodeNumbers& numbers,
                    std::uint32_t index);

struct LinkByName {
  std::uint32_t index = 0;
  std::string error;  // not empty: there is no such link, with the nearest name
};
LinkByName link_by_name(const config::Scenario& scenario, const std::vector<NamedLink>& links,
                        std::string_view name);

}  // namespace paceline::tools
