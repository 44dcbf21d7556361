// Watches a fabric whose hosts are real or emulated in real time, for `paceline diagnose`: a
// running testbed, a fleet of hosts behind pacelined, or looks at either that were kept.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "control/diagnosis/evidence.h"

namespace paceline::tools {

// One of name, fleet and replay.
struct WatchRequest {
  std::string name;    // of the testbed
  std::string socket;  // where its service answers; empty: follows from the name
  std::string fleet;   // file
  std::string replay;  // file of looks
  std::string record;  // file to keep looks in; empty: they are not kept
  Picos lasts{0};
};

struct WatchedTestbed {
  std::vector<std::string> errors;  // empty: good
  int exit_code = 0;                // of errors
  bool interrupted = false;
  std::string name;                // of testbed or fleet, as its file says
  std::vector<std::string> notes;  // hosts that did not answer all the time
  diagnosis::Evidence evidence;
};

// `progress` gets the share that is done and the seconds that are left.
using WatchTestbed = std::function<WatchedTestbed(
    const WatchRequest& request, const std::function<void(double, double)>& progress)>;

// Needs a service, or daemons, as the commands of tools/live_commands.h do.
WatchedTestbed watch_testbed(const WatchRequest& request,
                             const std::function<void(double, double)>& progress);

}  // namespace paceline::tools
