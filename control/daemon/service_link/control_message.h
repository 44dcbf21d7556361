// Messages of the control protocol (dataplane/service/protocol/control_protocol.h) from the
// daemon's side: texts and their reading, and the one call that receives a message with its
// descriptors.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/service/protocol/control_protocol.h"

namespace paceline::daemon {

struct ControlAnswer {
  enum class Kind : std::uint8_t {
    done,        // body holds the operation's answer
    refused,     // errors say why; nothing took effect
    unanswered,  // no service, no answer in time: it is unknown whether it took effect
  };
  Kind kind = Kind::unanswered;
  nlohmann::json body = nlohmann::json::object();
  std::vector<std::string> errors;
  std::vector<attach::Descriptor> descriptors;
  bool ok() const { return kind == Kind::done; }
};

ControlAnswer unanswered(std::string why);

// {"schema": 1, "id": id, "op": op, ...members}.
std::string request_text(std::uint64_t id, std::string_view op, const nlohmann::json& members);

// The answer to request `id`. A message that the protocol does not allow is `unanswered`, with an
// error; the connection must then be closed.
ControlAnswer answer_of(std::string_view text, std::uint64_t id);

// The body; for an answer that was too long for a message (`bytes` in memory of its own), the
// content of that memory. Nothing, with an error: it is not a JSON object.
std::optional<nlohmann::json> whole_body(ControlAnswer answer, std::string& error);

// The state of an entry in the answer to `trials`; nothing if it is missing or unknown.
std::optional<service::TrialState> trial_state_of(const nlohmann::json& trial);

enum class Receipt : std::uint8_t { message, nothing_yet, closed, broken };

// One message of at most kMostControlBytes from a non-blocking socket; descriptors close on exec.
Receipt receive_control(int socket, std::string& text,
                        std::vector<attach::Descriptor>& descriptors);

}  // namespace paceline::daemon
