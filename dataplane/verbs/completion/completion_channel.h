// A completion channel: a pipe on which the service names queues that have something.
#pragma once

#include <cstdint>

#include "dataplane/attach/descriptors/own_descriptor.h"
#include "dataplane/verbs/abi/abi.h"

namespace paceline::verbs {

struct CompletionChannel {
  ibv_comp_channel channel{};  // first: programs hold its address
  attach::OwnDescriptor pipe;
  std::uint32_t handle = 0;
};

inline std::uint32_t channel_handle(ibv_comp_channel& channel) {
  return reinterpret_cast<CompletionChannel&>(channel).handle;
}

}  // namespace paceline::verbs
