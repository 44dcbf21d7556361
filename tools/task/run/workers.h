// The workers that execute the tasks of a command: threads of this process, or all ranks that an
// MPI has started.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "tools/task/task_list.h"

namespace paceline::tools {

class RankTeam;

struct Workers {
  Workers() = default;
  Workers(unsigned jobs_, RankTeam* team_ = nullptr) : jobs(jobs_), team(team_) {}

  // This process writes the results, and says what there is to say.
  bool first() const;
  std::string text() const;  // "4 jobs", "8 ranks"

  unsigned jobs = 1;         // tasks at a time, in this process
  RankTeam* team = nullptr;  // null: this process alone
};

// Runs a command that works on ranks. On the first one, or if there are no others, the result is
// its exit code. The others exit with success when the first one says so, and print nothing
// (`quiet`). `jobs`: 0 for as many as fit.
int run_on_ranks(unsigned jobs, bool& quiet, const std::function<int(const Workers&)>& command);

// Executes all tasks of a list that is one step of a search, whose progress the caller shows: every
// rank keeps every record, and takes the same next step. Incomplete once `stop` is set, which is
// Interrupt::flag() if there are ranks: it is also set when the first rank ends the command.
// Returns an error, or an empty text.
std::string execute_all(TaskList& tasks, const Workers& workers, const std::atomic<bool>& stop);

}  // namespace paceline::tools
