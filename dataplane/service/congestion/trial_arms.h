// Trials with clusters: two arms in force at a time, each for data that goes to its clusters'
// ports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/service/congestion/champions.h"
#include "dataplane/service/congestion/trial_table.h"

namespace paceline::service {

// Receivers are told by their addresses: workers that know nothing of each other may have some
// twice, which is an error.
void check_addresses(const Trial& trial, const Champions& champions,
                     std::vector<std::string>& errors);

// What each NIC's engine needs to know, by place in trial.nics. `arms`: by cluster.
std::vector<transport::ArmsByPeer> arms_by_peer(const Trial& trial,
                                                const std::vector<std::uint8_t>& arms,
                                                const Champions& champions);

}  // namespace paceline::service
