// What an operator wants to happen to a running testbed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dataplane/base/units.h"

namespace paceline::config {

struct LinkFault {
  // "h0": all ports of that NIC, or that device; "h0.1": its port 1; or a link, a switch, a plane
  // or a server as in an [[event]].
  std::string target;
  // An action of [[event]], a kind of [[fault]], or "clear": up, everything else as the testbed
  // file has it, and nothing that was planned.
  std::string action;
  Rate rate{};
  Picos delay{};
  double probability = 0;
  std::optional<double> severity{};  // of a kind; nothing: its usual one
  std::uint64_t seed = 0;            // of a kind that draws; 0: it goes on as it did
  std::string direction = "both";
  Picos after{0};  // from when the fault is given
  Picos lasts{0};  // then what it changed is as in the testbed file; 0: until somebody changes it
};

}  // namespace paceline::config
