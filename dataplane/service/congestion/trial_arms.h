// Trials with clusters: two arms in force at a time, each for data to the ports of its clusters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/service/congestion/champions.h"
#include "dataplane/service/congestion/trial_table.h"

namespace paceline::service {

// Receivers are identified by their addresses. Workers are independent of each other, so an address
// may exist twice, which is an error.
void check_addresses(const Trial& trial, const Champions& champions,
                     std::vector<std::string>& errors);

// The arms for each NIC's engine, by index in trial.nics. `arms`: by cluster.
std::vector<transport::ArmsByPeer> arms_by_peer(const Trial& trial,
                                                const std::vector<std::uint8_t>& arms,
                                                const Champions& champions);

}  // namespace paceline::service
