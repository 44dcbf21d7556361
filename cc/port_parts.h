// What a proactive algorithm has once for a port, made by its name: the half that receives, and the
// governor of the uplink for algorithms that have one.
#pragma once

#include <cstddef>
#include <memory>

#include "cc/algorithm.h"
#include "cc/port_receiver.h"
#include "cc/port_sender.h"

namespace paceline::cc {

struct ParamBlock;  // dispatch.h

// Null for algorithms without one. params: the algorithm's block; copied.
std::unique_ptr<PortReceiver> make_port_receiver(const ParamBlock& params);
std::unique_ptr<PortSender> make_port_sender(const ParamBlock& params);

}  // namespace paceline::cc
