// Between the engine's words and those of the shared queues: work requests in, completions out.
#pragma once

#include <cstdint>
#include <optional>

#include "dataplane/attach/queues.h"
#include "dataplane/transport/interface/types.h"

namespace paceline::service {

attach::EntryStatus entry_status(transport::CompletionStatus status);
attach::EntryOpcode entry_opcode(transport::CompletionOpcode opcode);
// Nothing: no operation of the engine's (local_invalidate, bind_window), or none at all.
std::optional<transport::WorkOpcode> work_opcode(attach::SendOpcode opcode);
// The opcode of a completion of this request; for an unknown request: send.
attach::EntryOpcode entry_opcode(attach::SendOpcode opcode);
// How a request that the engine refuses to take completes.
attach::EntryStatus refused_status(transport::PostResult result);

constexpr bool is_receive(transport::CompletionOpcode opcode) {
  return opcode == transport::CompletionOpcode::receive ||
         opcode == transport::CompletionOpcode::receive_write_imm;
}

// All that does not depend on the queue that the request was in.
attach::CompletionEntry entry_from(const transport::Completion& completion);

}  // namespace paceline::service
