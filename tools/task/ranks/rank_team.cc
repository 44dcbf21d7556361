#include "tools/task/ranks/rank_team.h"

#include <sched.h>

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tools/cli/cli.h"
#include "tools/task/ranks/meeting_point.h"
#include "tools/task/ranks/mpi/mpi_start.h"
#include "tools/task/ranks/rank_proof.h"

namespace paceline::tools {

namespace {

// Ranks make their list when rank 0 has made it. They have as long as it had, and then some.
constexpr double kPatienceSeconds = 10;
constexpr double kPatienceFactor = 3;

}  // namespace

RankTeam::RankTeam(std::unique_ptr<MpiStart> mpi)
    : mpi_(std::move(mpi)), rank_(mpi_->rank()), ranks_(mpi_->ranks()) {}

RankTeam::~RankTeam() {
  bool whole = begun_ && complete_;
  if (server_) whole = server_->stop() && whole;
  if (worker_ && whole) whole = mpi_->leaves() && worker_->wait_for_stop();
  if (process_ && whole) process_->set_whole();
}

std::unique_ptr<RankTeam> RankTeam::join(unsigned jobs) {
  const std::string mpi = mpi_of_environment();
  if (mpi.empty()) return nullptr;
  std::unique_ptr<RankTeam> team(new RankTeam(std::make_unique<MpiStart>(mpi)));
  MpiStart& start = *team->mpi_;
  team->jobs_ = jobs != 0 ? jobs : jobs_for(start.ranks_here());
  MeetingPoint meeting;
  if (team->first() && team->ranks_ > 1) {
    meeting.token = secret_bytes(kTokenBytes);
    meeting.addresses = own_addresses();
    team->server_ = std::make_unique<TaskServer>(meeting.token, team->ranks_);
    meeting.port = team->server_->port();
  }
  const std::string text =
      start.share(team->server_ ? meeting.to_text() : std::string(), MeetingPoint::kMostText);
  std::string problem;
  if (!team->first()) {
    auto parsed = parse_meeting_point(text);
    if (parsed.ok()) {
      team->worker_ = std::make_unique<TaskWorker>(std::move(parsed.value), team->rank_);
      problem = team->worker_->connect();
    } else {
      problem = parsed.errors.front();
    }
  }
  // Rank 0 waits here until all others have tried to reach it, so that it is there for them.
  start.end();
  if (!problem.empty()) throw std::runtime_error(problem);
  if (team->ranks_ == 1) {
    start.leave(0);
    return nullptr;
  }
  team->process_ = std::make_unique<RankProcess>(start, team->rank_, [&] {
    team->server_.reset();
    team->worker_.reset();
  });
  team->joined_ = wall_seconds();
  if (team->worker_) {
    const Interrupt interrupt;
    team->ended_ = !team->worker_->wait_for_first(team->jobs_);
  }
  return team;
}

RankRun RankTeam::run(TaskList& tasks, std::span<const std::size_t> wanted, Keepers keepers,
                      bool quiet) {
  const double patience = std::max(kPatienceSeconds, kPatienceFactor * (wall_seconds() - joined_));
  RankRun run = worker_ ? worker_->run(tasks, jobs_, keepers)
                        : server_->run(tasks, wanted, jobs_, keepers, patience, quiet);
  begun_ = true;
  complete_ = complete_ && run.end == RankRun::End::complete && run.failures.empty();
  return run;
}

RankCost RankTeam::cost() const { return {server_->cpu_seconds(), server_->cost()}; }

unsigned jobs_for(std::uint32_t ranks_here) {
  const unsigned all = std::max(1U, std::thread::hardware_concurrency());
  cpu_set_t set;
  CPU_ZERO(&set);
  unsigned allowed = all;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    allowed = static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
  }
  return std::max(1U, std::min(allowed, all / std::max(1U, ranks_here)));
}

}  // namespace paceline::tools
