#include "control/daemon/process/supervisor.h"

#include <fmt/format.h>

#include <csignal>
#include <utility>

namespace paceline::daemon {

std::vector<std::string> Supervisor::step(std::int64_t now_ns) {
  std::vector<std::string> notes;
  ServiceFacts facts;
  facts.connected = client_.connected();
  facts.absent = client_.absent();
  facts.alive = process_.alive();
  if (!facts.alive && process_.pid() != 0 && !process_.ending().empty()) {
    notes.push_back(
        fmt::format("the service, process {}, ended: {}", process_.pid(), process_.ending()));
    process_.watch(0);
  }
  switch (plan_.step(now_ns, facts)) {
    case SupervisorPlan::Action::none:
      break;
    case SupervisorPlan::Action::start:
      if (std::string wrong = process_.start(launch_); wrong.empty()) {
        notes.push_back(
            fmt::format("started {}, process {}", launch_.arguments.front(), process_.pid()));
      } else {
        notes.push_back(std::move(wrong));
        plan_.failed(now_ns);
      }
      break;
    case SupervisorPlan::Action::end_politely:
      process_.signal(SIGTERM);
      break;
    case SupervisorPlan::Action::end_firmly:
      process_.signal(SIGKILL);
      break;
  }
  for (std::string& note : plan_.take_notes()) notes.push_back(std::move(note));
  return notes;
}

}  // namespace paceline::daemon
