// A plan as a connection matrix of htsim, by triggers.
//
// A message that waits for one that its sender receives is started by recv_done_trigger; a message
// that waits for one that its sender sends, by send_done_trigger. A join is not a flow: messages
// that wait for it wait for all of its dependencies, by a barrier. Messages that share a queue pair
// are messages of one connection.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "tools/workload/exports/plan_order.h"

namespace paceline::workload {

struct MatrixText {
  std::string text;
  std::uint64_t dropped_waits = 0;
};

// The hosts of the plan are the nodes. Errors: times of computing, unless they are to be dropped;
// sizes of 0 and above 2^31 - 1; a message that waits and has a start of its own; the end of a flow
// for which different sets of messages wait, as it fires one trigger. Where waits are to be
// dropped, the first of these sets keeps it, and the others wait for the rest of theirs, if there
// is any.
config::Read<MatrixText> write_htsim_plan(const MessagePlan& plan, std::uint32_t nodes,
                                          const PlanDrops& drops);

}  // namespace paceline::workload
