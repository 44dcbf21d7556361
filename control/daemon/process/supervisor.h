// The shell around SupervisorPlan: the process of the service, and what the control client knows.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "control/daemon/process/process.h"
#include "control/daemon/process/supervisor_plan.h"
#include "control/daemon/service_link/control_client.h"

namespace paceline::daemon {

class Supervisor {
 public:
  Supervisor(const SupervisorSettings& settings, const ControlClient& client)
      : plan_(settings), client_(client) {}

  // Changes the command for later starts.
  void set_launch(Launch launch) { launch_ = std::move(launch); }
  // A connection to this process has been made; 0: it cannot be told.
  void attached(std::int32_t pid) {
    if (pid > 0) process_.watch(pid);
  }
  // Call it several times a second. Returns sentences for the log and for listeners.
  std::vector<std::string> step(std::int64_t now_ns);
  bool replace(std::int64_t now_ns) { return plan_.replace(now_ns); }
  // Sends SIGTERM to the running service, whoever started it.
  void end() { process_.signal(SIGTERM); }

  const SupervisorPlan& plan() const { return plan_; }
  std::int32_t pid() { return process_.alive() ? process_.pid() : 0; }
  bool child() const { return process_.is_child(); }

 private:
  SupervisorPlan plan_;
  const ControlClient& client_;
  Launch launch_;
  Process process_;
};

}  // namespace paceline::daemon
