// Runs a rank's part of a plan over a link, in real time: begins what is due, and handles events. A
// message begins when its start time has come, and `gap` after the last of its dependencies:
// arrivals here, and own messages and computations that are complete.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "dataplane/base/units.h"
#include "tools/collective/rank/plan/plan_memory.h"
#include "tools/collective/rank/plan/plan_part.h"
#include "tools/collective/rank/rank_link.h"

namespace paceline::rank {

// The result of a message or computation of the rank. Times count from the beginning.
struct PlanRecord {
  Picos ready{-1};
  Picos completed{-1};                   // last acknowledgement, or the end of computing
  std::uint32_t cause = kNoPlanMessage;  // the last that it waited for
};

struct PlanTotals {
  std::uint64_t sent = 0;      // messages
  std::uint64_t received = 0;  // messages
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t wrong_messages = 0;
  std::uint64_t wrong_bytes = 0;
  std::uint32_t wrong_message = kNoPlanMessage;  // the first
  WrongBytes first_wrong;                        // of it
};

// What a rank waits for to continue: an arrival, or the acknowledgement of a sent message.
struct PlanWait {
  std::uint32_t message = 0;
  bool arrival = false;
};

class PlanRunner {
 public:
  // All arguments must outlive this.
  PlanRunner(const PlanPart& part, std::uint32_t rank, const PlanMemory& memory, RankLink& link);

  void begin_due(Picos now);
  // Throws RankError at an arrival that is not in the plan.
  void take(Picos now, const LinkEvent& event);
  // When the next begins or ends by time alone; kNever: nothing does.
  Picos next_deadline() const { return due_.empty() ? kNever : due_.top().at; }

  bool done() const { return finished_ == part_.sends.size() + part_.arrivals.size(); }
  std::uint64_t finished() const { return finished_; }  // of both
  std::optional<PlanWait> waits_for() const;

  const std::vector<PlanRecord>& records() const { return records_; }  // as in PlanPart::sends
  const PlanTotals& totals() const { return totals_; }

 private:
  // Messages that go the same way, in order.
  struct Lane {
    std::uint32_t peer = 0;
    std::uint32_t most = 0;                // in flight on a connection
    std::vector<std::uint64_t> channels;   // connections
    std::vector<std::uint32_t> under_way;  // by connection
    std::deque<std::uint32_t> waiting;     // indices into sends
  };
  struct Due {
    Picos at{0};
    std::uint32_t send = 0;  // index
    friend bool operator>(const Due& a, const Due& b) {
      return a.at != b.at ? a.at > b.at : a.send > b.send;
    }
  };

  void list_lanes(std::uint32_t rank);
  void list_waits();
  void begin(Picos now, std::uint32_t send);
  void feed(std::uint32_t number);
  void complete(Picos now, std::uint32_t send);
  void release(Picos now, std::uint32_t id);
  void take_arrival(Picos now, const LinkEvent& event);
  void take_acknowledgement(Picos now, const LinkEvent& event);
  bool somebody_waits(std::uint32_t id) const;

  const PlanPart& part_;
  const PlanMemory& memory_;
  RankLink& link_;
  std::vector<PlanRecord> records_;   // by send
  std::vector<std::uint32_t> waits_;  // by send: what it still waits for
  std::vector<std::pair<std::uint32_t, std::uint32_t>> waiters_;  // id, send that waits; sorted
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> lane_of_;                              // by send
  std::vector<std::uint32_t> connection_of_;                        // by send, of its lane
  std::vector<bool> posted_;                                        // by send
  std::vector<bool> arrived_;                                       // by arrival
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;  // begins, ends of computing
  std::uint64_t finished_ = 0;
  PlanTotals totals_;
};

}  // namespace paceline::rank
