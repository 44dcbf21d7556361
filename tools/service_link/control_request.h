// The control protocol (dataplane/service/protocol/control_protocol.h) from the command line: one
// request at a time, with patience for an answer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dataplane/attach/descriptors/descriptor.h"

namespace paceline::tools {

class ControlConnection {
 public:
  // Returns 0, or an errno.
  int open(const std::string& socket);

  struct Answer {
    nlohmann::json body;  // of a request that was not refused
    std::vector<attach::Descriptor> descriptors;
    std::vector<std::string> errors;  // empty: good
    int code = 0;                     // ETIMEDOUT: it does not answer
  };
  // `request` without schema and id. Waits at most kConnectPatience.
  Answer ask(nlohmann::json request);
  // The other end has gone; between requests.
  bool closed() const;

 private:
  attach::Descriptor socket_;
  unsigned last_id_ = 0;
};

}  // namespace paceline::tools
