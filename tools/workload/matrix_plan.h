// Turns a connection matrix of htsim into what hosts will send.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "tools/workload/files/htsim_matrix.h"

namespace paceline::workload {

// The flows as messages of the same numbers, with joins behind them. A trigger of htsim starts
// flows at any host at once; a message here waits for what its sender receives or has completed.
// These are errors with their line: a flow that waits for the end of another at a third host, or at
// the other end of its own; failures; triggers that a run cannot obey; and triggers where only the
// run would tell what starts what.
config::Read<MessagePlan> plan_of_matrix(const HtsimMatrix& matrix, const std::string& source);

// A matrix file as a plan for that many hosts, which is the number of its nodes.
config::Read<MessagePlan> read_htsim_plan(const std::string& path, std::string_view unit,
                                          std::uint32_t hosts);

}  // namespace paceline::workload
