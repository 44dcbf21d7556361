// Estimates how many events a world will have in a time, before it runs.
#pragma once

#include "dataplane/config/scenario.h"
#include "dataplane/driver/traffic/message_plan.h"

namespace paceline {

// Pops per simulated microsecond, if the busiest port is busy throughout: about five events a
// packet (two links each way and the pacer). Only the width of the event queue's slots depends on
// it.
double expected_events_per_us(const config::Scenario& scenario, const MessagePlan& plan);

}  // namespace paceline
