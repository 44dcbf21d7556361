#include "tools/task/run/workers.h"

#include <exception>
#include <memory>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "dataplane/base/text/printable.h"
#include "tools/cli/cli.h"
#include "tools/task/ranks/rank_team.h"
#include "tools/task/task_threads.h"

namespace paceline::tools {

bool Workers::first() const { return team == nullptr || team->first(); }

std::string Workers::text() const {
  return team == nullptr ? fmt::format("{} jobs", jobs) : fmt::format("{} ranks", team->ranks());
}

int run_on_ranks(unsigned jobs, bool& quiet, const std::function<int(const Workers&)>& command) {
  std::unique_ptr<RankTeam> team;
  try {
    team = RankTeam::join(jobs);
  } catch (const std::exception& error) {
    fmt::print(stderr, "paceline: error: {}\n", printable(error.what()));
    return kExitFailed;
  }
  if (team == nullptr) return command(Workers(jobs != 0 ? jobs : jobs_for(1)));
  if (team->ended()) return kExitGood;
  if (!team->first()) quiet = true;
  const int code = command(Workers(team->jobs(), team.get()));
  return !team->first() && code == kExitInterrupted ? kExitGood : code;
}

std::string execute_all(TaskList& tasks, const Workers& workers, const std::atomic<bool>& stop) {
  std::vector<std::size_t> all(tasks.size());
  std::iota(all.begin(), all.end(), 0);
  if (workers.team == nullptr) {
    ProgressLine none(true);
    TaskThreads threads;
    threads.run(tasks, all, workers.jobs, stop, none);
    return threads.error();
  }
  const RankRun run = workers.team->run(tasks, all, Keepers::every_rank, true);
  if (run.end == RankRun::End::interrupted) Interrupt::set();
  return run.failures.empty() ? run.error : run.failures.front();
}

}  // namespace paceline::tools
