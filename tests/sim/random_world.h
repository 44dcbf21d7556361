// Random worlds: fabrics, algorithms, traffic and trouble that no test would think of. A failure is
// repeated with the seed that describe() tells.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/base/numbers/random.h"
#include "dataplane/config/scenario.h"
#include "dataplane/driver/traffic/message_plan.h"

namespace paceline::simtest {

config::Scenario random_scenario(Random& random, std::uint64_t seed);

// Messages between random hosts: many small, some large, on numbered lanes or any idle queue pair;
// with `dependencies`, some that wait for an earlier one to arrive.
MessagePlan random_plan(Random& random, const config::Scenario& s, bool dependencies);

std::string describe(const config::Scenario& s, const MessagePlan& plan);

}  // namespace paceline::simtest
