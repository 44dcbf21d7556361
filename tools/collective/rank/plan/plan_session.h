// A rank's part of a plan from its arrival to its report: runs it by the clock, and tells the
// parent its progress. Messages in addition to those of meeting.h:
//
//   parent   {"sends": [...], "arrivals": [...], "last": {...}}, the lines of plan_part.h
//   rank     {"finished": N, "later": whether something will happen by time alone; and if nothing
//            has finished since the last message, "waits_for": ID, "arrival": as in PlanWait}
//   rank     {"records": [[ID, READY, COMPLETED, CAUSE], ...]}, in picoseconds
//   rank     {"totals": {...}}
#pragma once

#include <cstdint>

#include "tools/collective/rank/meeting.h"
#include "tools/collective/rank/plan/plan_part.h"
#include "tools/collective/rank/plan/plan_runner.h"
#include "tools/collective/rank/rank_link.h"

namespace paceline::rank {

PlanPart receive_part(Meeting& meeting);

class PlanSession {
 public:
  PlanSession(PlanRunner& runner, RankLink& link, Meeting& meeting)
      : runner_(runner), link_(link), meeting_(meeting) {}

  // All ranks of the plan are ready. Throws RankError.
  void run();
  // Reports the results.
  void report(const PlanPart& part);

 private:
  void run_to_end();
  Picos since_begin() const;
  LinkTime next_wake() const;
  void tell_progress();

  PlanRunner& runner_;
  RankLink& link_;
  Meeting& meeting_;
  LinkTime begin_;
  LinkTime next_tell_;
  std::uint64_t told_ = 0;  // finished
};

}  // namespace paceline::rank
