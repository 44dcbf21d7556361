// Executes a schedule on symbols, its events in an order drawn from a seed: a transfer begins,
// arrives, is complete. Some events are delayed until nothing else can happen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tools/workload/schedules/schedule.h"
#include "tools/workload/schedules/symbol_store.h"

namespace paceline::workload {

class SymbolRun {
 public:
  // Numbers in `schedule` must be in range, and its waits point backward.
  SymbolRun(const Schedule& schedule, std::uint64_t seed);

  // What is wrong, or "".
  std::string run();

 private:
  enum class State : std::uint8_t { waits, under_way, arrived, complete };

  void list_waiters();
  void schedule_event(std::uint32_t transfer);
  std::uint32_t draw_event();
  std::string next_event_of(std::uint32_t number);
  void release_waiters(std::uint32_t transfer, State reached);

  const Schedule& schedule_;
  SymbolStore store_;
  Random random_;
  std::uint64_t put_off_;                    // one event in so many
  std::vector<std::uint32_t> waits_left_;    // of each transfer
  std::vector<std::uint32_t> first_waiter_;  // of each transfer, in waiters_
  std::vector<std::uint32_t> waiters_;
  std::vector<State> states_;
  std::vector<SymbolStore::Message> messages_;  // of the transfers in progress
  std::vector<std::uint32_t> events_;           // transfers that have one that can happen
  std::vector<std::uint32_t> late_events_;
};

}  // namespace paceline::workload
