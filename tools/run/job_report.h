// The results of a job: how long it took, what each rank did meanwhile, and how each collective
// compares with what the fabric could do.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cc/interface/decision.h"
#include "control/diagnosis/evidence.h"
#include "dataplane/base/units.h"
#include "dataplane/driver/virtual/virtual_world.h"
#include "tools/run/critical_path.h"
#include "tools/run/first_tokens.h"
#include "tools/run/limiter_shares.h"
#include "tools/workload/job_plans/job_plan.h"

namespace paceline::tools {

// Bytes that a ring puts on its busiest link for each byte of the buffer (nccl-tests).
double bus_factor(const workload::JobPlan::Call& call);

// The time of a rank, in parts that add up to the job's.
struct RankTime {
  Picos computing{0};
  Picos waiting{0};        // in a collective that a rank has not entered yet, not computing
  Picos communicating{0};  // else in communication, and not computing
  Picos idle{0};
};

// One collective, from the first rank that enters it to the last that leaves.
struct CollectiveTime {
  Picos first_entry{-1};
  Picos last_entry{-1};
  Picos end{-1};                // negative: not completed
  Picos ideal{0};               // in a virtual world
  std::uint32_t last_rank = 0;  // enters last

  Picos took() const { return end - last_entry; }
  // Bytes a second of a rank's buffer, and the same as bytes on the busiest link of a ring
  // (nccl-tests).
  double algorithm_bandwidth(const workload::JobPlan::Call& call) const;
  double bus_bandwidth(const workload::JobPlan::Call& call) const;
};

// What all collectives of a kind (operation, name, size, ranks) took.
struct CollectiveKind {
  workload::JobPlan::Call call;
  std::string name;
  std::uint32_t calls = 0;
  std::optional<double> ideal_us;  // means; the ideal one of a virtual world
  double took_us = 0;
  double waited_us = 0;  // for the last rank to enter
  double bus_gbytes = 0;
  // What held back the senders of its messages while these were in flight. Known only in a virtual
  // world.
  std::optional<LimiterShares> limited;
};

// When an op of a rank ran; negative: it did not begin, or end.
struct OpTime {
  Picos begin{-1};
  Picos end{-1};
};

using diagnosis::NicPace;

// A rank or NIC that holds up a job.
struct Straggler {
  // A rank that computes longer than the others, which wait for it; a NIC whose messages take
  // longer than those of its peers, both ways taken together.
  enum class Kind : std::uint8_t { rank, nic };
  Kind kind = Kind::rank;
  std::uint32_t number = 0;
  double computing = 0;  // rank: over the median rank
  double waited_by = 0;  // rank: share of the collectives that it enters last
  NicPace pace;          // NIC: over the median NIC
  // NIC: another that the same messages may be blamed on, as a slow way from one to the other.
  std::uint32_t or_else = kNobody;

  static constexpr std::uint32_t kNobody = 0xFFFF'FFFF;
};

// What storage and ranks exchanged in addition, in messages that ended.
struct BackgroundTime {
  std::uint64_t bytes = 0;
  Picos took{0};  // from its start to the end of the last message that ended
};

struct JobReport {
  Picos took{-1};  // negative: the job did not end
  std::vector<RankTime> ranks;
  std::vector<CollectiveTime> calls;  // as in JobPlan::calls
  std::vector<CollectiveKind> kinds;  // by time taken, the longest first
  CriticalPath path;
  BackgroundTime background;
  FirstTokens first_tokens;
  // What held back senders, over all NICs. Known only in a virtual world.
  std::optional<LimiterShares> limited;
  std::vector<OpTime> ops;    // as in Job::ops
  std::vector<NicPace> nics;  // by NIC; known of a virtual world
  std::vector<Straggler> stragglers;
};

// The mean time of a call of the operation, without the first, which finds cold congestion control.
// With a root, ranks enter a call while others are still in the previous one: the time counts from
// the first entry, else from the last.
double counted_mean_us(const JobReport& report, workload::CollectiveOp op);

JobReport report_job(const workload::Job& job, const workload::JobPlan& plan,
                     const VirtualWorld& world);
// The same for messages that were run elsewhere, without what only a world knows.
JobReport report_job(const workload::Job& job, const workload::JobPlan& plan,
                     const PlanTimes& times);

}  // namespace paceline::tools
