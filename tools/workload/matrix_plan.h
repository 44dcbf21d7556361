// From a connection matrix of htsim to what hosts will send.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "tools/workload/files/htsim_matrix.h"

namespace paceline::workload {

// The same messages, where ours can wait as they do: for one message that its sender received.
// Everything else is an error with its line.
config::Read<MessagePlan> plan_of_matrix(const HtsimMatrix& matrix, const std::string& source);

// A matrix file as a plan for that many hosts, which is the number of its nodes.
config::Read<MessagePlan> read_htsim_plan(const std::string& path, std::string_view unit,
                                          std::uint32_t hosts);

}  // namespace paceline::workload
