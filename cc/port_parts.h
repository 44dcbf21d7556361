// Makes, by its name, the parts that a proactive algorithm has once per port: the receiving half,
// and the uplink arbiter for algorithms that have one.
#pragma once

#include <cstddef>
#include <memory>

#include "cc/interface/algorithm.h"
#include "cc/interface/downlink_allocator.h"
#include "cc/interface/uplink_arbiter.h"

namespace paceline::cc {

struct ParamBlock;  // dispatch.h

// Null for algorithms without one. params: the algorithm's block; copied.
std::unique_ptr<DownlinkAllocator> make_downlink_allocator(const ParamBlock& params);
std::unique_ptr<UplinkArbiter> make_uplink_arbiter(const ParamBlock& params);

}  // namespace paceline::cc
