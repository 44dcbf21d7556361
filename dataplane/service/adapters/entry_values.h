// Translates between the engine's types and those of the shared queues: work requests in,
// completions out.
#pragma once

#include <cstdint>
#include <optional>

#include "dataplane/attach/queues.h"
#include "dataplane/transport/interface/types.h"

namespace paceline::service {

attach::EntryStatus entry_status(transport::CompletionStatus status);
attach::EntryOpcode entry_opcode(transport::CompletionOpcode opcode);
// Nothing: the service itself carries it out (local_invalidate, bind_window), or it is invalid.
std::optional<transport::WorkOpcode> work_opcode(attach::SendOpcode opcode);
// The opcode of a completion of this request; for an unknown request: send.
attach::EntryOpcode entry_opcode(attach::SendOpcode opcode);
// How a request that the engine refuses to take completes.
attach::EntryStatus refused_status(transport::PostResult result);

constexpr bool is_receive(transport::CompletionOpcode opcode) {
  return opcode == transport::CompletionOpcode::receive ||
         opcode == transport::CompletionOpcode::receive_write_imm;
}

// All fields that do not depend on the queue of the request.
attach::CompletionEntry entry_from(const transport::Completion& completion);

}  // namespace paceline::service
