// Another process: started in a session of its own so that it outlives the daemon, or found by its
// number. It is watched by a descriptor, so that a reused process number cannot be confused with
// it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "dataplane/attach/descriptors/descriptor.h"

namespace paceline::daemon {

struct Launch {
  std::vector<std::string> arguments;    // the program first; looked for in PATH without a slash
  std::vector<std::string> environment;  // "NAME=value"
  std::string log;                       // standard output and error are appended; empty: /dev/null
};

class Process {
 public:
  Process() = default;
  // Starts it. Returns an error, or an empty text.
  std::string start(const Launch& launch);
  // Takes up a process that runs, as far as it can be seen. 0: none.
  void watch(pid_t pid);

  pid_t pid() const { return pid_; }
  bool is_child() const { return child_; }
  // Whether it lives; collects it when it was our child and has ended.
  bool alive();
  // How it ended, in words; empty: it lives, or was not a child.
  const std::string& ending() const { return ending_; }
  bool signal(int number);

 private:
  attach::Descriptor handle_;
  pid_t pid_ = 0;
  bool child_ = false;
  std::string ending_;
};

// The environment without what concerns only this daemon: sockets and notifications of systemd.
std::vector<std::string> inherited_environment(const std::vector<std::string>& environment);

}  // namespace paceline::daemon
