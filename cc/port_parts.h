// What a proactive algorithm has once for a port, made by its name: the half that receives, and the
// arbiter of the uplink for algorithms that have one.
#pragma once

#include <cstddef>
#include <memory>

#include "cc/algorithm.h"
#include "cc/downlink_allocator.h"
#include "cc/uplink_arbiter.h"

namespace paceline::cc {

struct ParamBlock;  // dispatch.h

// Null for algorithms without one. params: the algorithm's block; copied.
std::unique_ptr<DownlinkAllocator> make_downlink_allocator(const ParamBlock& params);
std::unique_ptr<UplinkArbiter> make_uplink_arbiter(const ParamBlock& params);

}  // namespace paceline::cc
