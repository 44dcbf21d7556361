// Runs of a plan on threads. Each is kept at the place that the plan has for it, so the number of
// threads cannot change what comes out.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "control/experiment/progress.h"
#include "tools/cli/cli.h"

namespace paceline::tools {

class RunPool {
 public:
  // One run. `keep` is called while no other thread keeps anything, and not for a run that was
  // stopped: half a run says nothing. It returns what is wrong; empty: nothing.
  struct Executed {
    std::uint64_t hops = 0;
    bool stopped = false;
    std::function<std::string()> keep;
  };
  using Execute = std::function<Executed(std::size_t run)>;

  // In the order of the plan, until all are over, one fails to be built or kept, or the command is
  // interrupted. `name`: of a run, for messages.
  void run(const std::vector<experiment::WorkUnit>& units, unsigned jobs, ProgressLine& line,
           const Execute& execute, const std::function<std::string(std::size_t)>& name);

  std::size_t executed() const { return executed_; }
  std::string speed_text() const;  // "12 runs, 3.4 M packet-hops in ..."
  const std::string& error() const { return error_; }

 private:
  void execute_one(std::size_t run, const Execute& execute,
                   const std::function<std::string(std::size_t)>& name);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0;
  unsigned alive_ = 0;
  std::size_t executed_ = 0;
  std::uint64_t hops_ = 0;
  double cpu_seconds_ = 0;
  double wall_seconds_ = 0;
  std::string error_;
};

}  // namespace paceline::tools
