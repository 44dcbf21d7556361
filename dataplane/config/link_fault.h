// What an operator wants to happen to a link of a running testbed.
#pragma once

#include <string>

#include "dataplane/base/units.h"

namespace paceline::config {

struct LinkFault {
  // "h0": all ports of that NIC, or that device; "h0.1": its port 1; or a link, a switch, a plane
  // or a server as in an [[event]].
  std::string target;
  // An action of [[event]], or "clear": up, and everything else as the testbed file has it.
  std::string action;
  Rate rate{};
  Picos delay{};
  double probability = 0;
  std::string direction = "both";
  Picos after{0};  // from when the fault is given
  Picos lasts{0};  // then what it changed is as in the testbed file; 0: until somebody changes it
};

}  // namespace paceline::config
