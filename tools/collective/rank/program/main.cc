// paceline-rank: one rank of a collective or a job, with data, over the verbs of the device that it
// sees.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <memory>
#include <optional>

#include "tools/collective/rank/collective_data.h"
#include "tools/collective/rank/in_place.h"
#include "tools/collective/rank/meeting.h"
#include "tools/collective/rank/part_cut.h"
#include "tools/collective/rank/part_runner.h"
#include "tools/collective/rank/peer_traffic.h"
#include "tools/collective/rank/plan/plan_memory.h"
#include "tools/collective/rank/plan/plan_part.h"
#include "tools/collective/rank/plan/plan_routes.h"
#include "tools/collective/rank/plan/plan_runner.h"
#include "tools/collective/rank/plan/plan_session.h"
#include "tools/collective/rank/program/rank_options.h"
#include "tools/collective/rank/program/verbs_link.h"
#include "tools/collective/rank/rank_error.h"
#include "tools/collective/rank/slot_layout.h"

namespace paceline::rank {

namespace {

constexpr int kFailed = 1;

// One size: how its buffer is cut, and where the slots are.
struct SizePlan {
  SizePlan(const workload::Schedule& schedule, const RankOptions& options, std::uint64_t bytes)
      : cut(schedule, bytes / sizeof(float), options.chunk_bytes / sizeof(float)),
        layout(schedule, cut, options.window) {}
  PartCut cut;
  SlotLayout layout;
};

void add_wrong(const DataCheck& more, DataCheck& sum) {
  if (sum.wrong == 0) sum.first = more.first;
  sum.wrong += more.wrong;
}

SizeResult run_size(const RankCommand& command, const SizePlan& plan, const InPlace& in_place,
                    Meeting& meeting, VerbsLink& link) {
  using Clock = std::chrono::steady_clock;
  const RankOptions& options = command.options;
  CollectiveData data(command.schedule, plan.cut, plan.layout.buffers(), options.rank,
                      reinterpret_cast<float*>(link.staging()));
  PartRunner runner(command.schedule, plan.cut, plan.layout, in_place, options.rank,
                    options.window);
  SizeResult result;
  for (std::uint32_t i = 0; i <= options.iterations; ++i) {
    data.fill(i);
    meeting.wait_for_all();
    const Clock::time_point begin = Clock::now();
    try {
      runner.run(data, link);
    } catch (const RankError& error) {
      throw RankError(fmt::format("{}; {}", error.what(), runner.waits_for()));
    }
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    if (i > 0) result.mean_us += took.count() / options.iterations;
    // Ranks share processors: a rank that compares its data would slow down those still running.
    meeting.wait_for_all();
    add_wrong(data.check(i), result.data);
  }
  return result;
}

void run_all(const RankCommand& command, Meeting& meeting) {
  const RankOptions& options = command.options;
  std::vector<std::unique_ptr<SizePlan>> plans;
  std::uint64_t staging = 0;
  for (const std::uint64_t bytes : options.bytes) {
    plans.push_back(std::make_unique<SizePlan>(command.schedule, options, bytes));
    staging = std::max(staging, plans.back()->layout.staging_bytes(options.rank));
  }
  const InPlace in_place(command.schedule, options.rank);
  VerbsLink link(staging, peer_traffic(command.schedule, options.rank, options.window));
  link.give_up(options.patience, meeting.descriptor());
  link.connect(meeting.exchange(link.addresses()));
  for (std::uint32_t i = 0; i < plans.size(); ++i) {
    SizeResult result = run_size(command, *plans[i], in_place, meeting, link);
    result.size = i;
    meeting.report(result);
  }
  meeting.wait_for_all();  // no rank ends what another still waits for
}

void run_plan(std::uint32_t rank, Meeting& meeting) {
  const PlanPart part = receive_part(meeting);
  VerbsLink link(PlanMemory::bytes_of(part), plan_traffic(part, rank));
  link.give_up(std::numeric_limits<double>::infinity(), meeting.descriptor());
  link.connect(meeting.exchange(link.addresses()));
  const PlanMemory memory(part, link.staging());
  PlanRunner runner(part, rank, memory, link);
  PlanSession session(runner, link, meeting);
  session.run();
  session.report(part);
  meeting.wait_for_all();
}

int run_rank(const RankCommand& command) {
  const RankOptions& options = command.options;
  // The parent of a plan sees whether any rank makes progress; a single rank cannot tell.
  const double patience = options.plan ? std::numeric_limits<double>::infinity() : options.patience;
  std::optional<Meeting> meeting;
  try {
    meeting.emplace(options.meet, options.rank, patience);
    if (options.plan) {
      run_plan(options.rank, *meeting);
    } else {
      run_all(command, *meeting);
    }
    return 0;
  } catch (const std::exception& error) {
    if (meeting) {
      meeting->report_failure(error.what());
    } else {
      fmt::print(stderr, "paceline-rank: error: rank {}: {}\n", command.options.rank, error.what());
    }
  }
  return kFailed;
}

}  // namespace

}  // namespace paceline::rank

int main(int argc, char** argv) {
  const paceline::rank::RankCommand command = paceline::rank::read_rank_command(argc, argv);
  return command.exit_code ? *command.exit_code : paceline::rank::run_rank(command);
}
