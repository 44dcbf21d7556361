// Assigns an arm to each cluster in each block, drawn from the plan's seed before the first block,
// and registered in a file with the digest of plan and assignment. Later changes of either are
// detected.
//
// Pairs. Blocks 2p and 2p + 1 are a pair, in which every cluster is in both arms once. Which comes
// first is a coin, but balanced within strata of time, so that drift cannot side with an arm.
//   whole pairs    every cluster in the same arm: the effect of replacing one by the other
//   crossed pairs  half of the clusters (drawn anew) in each arm, then the other way round
// A switchback has whole pairs only; with clusters every plan.whole_every-th pair is whole.
//
// Carry-over of order m (plan.carryover_blocks): arms are drawn at blocks 0, 2m, 3m, ..., (n-2)m of
// n m blocks and kept in between (Bojinov, Simchi-Levi and Zhao, "Design and Analysis of Switchback
// Experiments", Management Science 69(7), 2023, theorem 2: minimax for that order).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/experiment/live/plan/plan.h"
#include "dataplane/base/numbers/random.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::experiment::live {

// How assignments are drawn: all that a randomisation test needs to draw others.
struct Mechanism {
  std::uint32_t blocks = 0;
  std::uint32_t clusters = 1;
  std::uint32_t carryover = 0;      // 0: pairs
  std::uint32_t stratum_pairs = 1;  // pairs within which orders are balanced; below 2: coins
  std::uint32_t whole_every = 1;    // 1: all pairs whole; 0: none

  bool whole(std::uint32_t pair) const {
    return clusters == 1 || (whole_every != 0 && pair % whole_every == 0);
  }
  // Blocks at which an arm is drawn, with carry-over.
  std::vector<std::uint32_t> points() const;
};

Mechanism mechanism_of(const Plan& plan);

// Arm of cluster c in block b at [b * clusters + c].
using Assignment = std::vector<std::uint8_t>;
Assignment draw_assignment(const Mechanism& mechanism, Random& random);

struct Schedule {
  std::string name;
  Mechanism mechanism;
  std::uint64_t block_ns = 0;
  std::uint64_t washout_ns = 0;
  std::vector<std::string> clusters;
  Assignment arms;
  std::string plan_digest;  // SHA-256 of plan_text, 64 hexadecimal digits
  std::string digest;       // of that and everything above

  std::uint32_t blocks() const { return mechanism.blocks; }
  std::uint32_t pairs() const { return mechanism.blocks / 2; }
  std::uint8_t arm(std::uint32_t block, std::uint32_t cluster) const {
    return arms[std::size_t{block} * mechanism.clusters + cluster];
  }
  // 1 .. 255, never the same in neighbouring blocks; 0 says "no experiment".
  static std::uint8_t epoch(std::uint32_t block) {
    return static_cast<std::uint8_t>(1 + block % 255);
  }
};

Schedule make_schedule(const Plan& plan);

// schedule.json. The same schedule gives the same text.
std::string schedule_text(const Schedule& schedule);

// Refuses what does not match its digest, and (with a plan) a schedule of another plan.
config::Read<Schedule> read_schedule(std::string_view text, const std::string& source,
                                     const Plan* plan);

}  // namespace paceline::experiment::live
