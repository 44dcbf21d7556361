// Settings from the environment: PACELINE_SOCKET, PACELINE_NIC, PACELINE_VERBS_LOG.
#pragma once

#include <string>

namespace paceline::verbs {

struct Settings {
  std::string socket;  // of the service
  std::string nic;     // the only instance that is listed; empty: all
  bool log = false;    // say on standard error what is refused and why
};

// Without PACELINE_SOCKET: the user's own service if there is one (attach/runtime_folder.h), else
// the machine's.
Settings read_settings();

// One line on standard error, by one write: "paceline: ...".
void say(const std::string& text);

}  // namespace paceline::verbs
