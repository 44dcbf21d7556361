// Watches a running testbed of emulated hosts, for `paceline diagnose --testbed`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "control/diagnosis/evidence.h"

namespace paceline::tools {

struct WatchRequest {
  std::string name;    // of the testbed
  std::string socket;  // where the service answers; empty: follows from the name
  Picos lasts{0};
};

struct WatchedTestbed {
  std::vector<std::string> errors;  // empty: good
  int exit_code = 0;                // of errors
  bool interrupted = false;
  std::string name;  // of the testbed, as its file says
  diagnosis::Evidence evidence;
};

// `progress` gets the share that is done and the seconds that are left.
using WatchTestbed = std::function<WatchedTestbed(
    const WatchRequest& request, const std::function<void(double, double)>& progress)>;

// Needs a service, as the commands of tools/live_commands.h do.
WatchedTestbed watch_testbed(const WatchRequest& request,
                             const std::function<void(double, double)>& progress);

}  // namespace paceline::tools
