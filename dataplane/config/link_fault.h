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
  // An action of [[event]], a kind of [[fault]], or "clear": the link is up, everything else is as
  // in the testbed file, and nothing stays planned.
  std::string action;
  Rate rate{};
  Picos delay{};
  double probability = 0;
  std::optional<double> severity{};  // of a kind; nothing: its usual one
  std::uint64_t seed = 0;            // for a kind with random choices; 0: its sequence continues
  std::string direction = "both";
  Picos after{0};  // from when the fault is given
  Picos lasts{0};  // then the testbed file's values return; 0: until another change
};

}  // namespace paceline::config
