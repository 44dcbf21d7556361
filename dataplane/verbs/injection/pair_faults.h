// The injected faults of one queue pair (attach/injection/fault_plan.h): changes requests on their
// way into the send queue, holds slow ones back, and says afterwards how a request fails.
//
// A request that is to fail without a packet gets an opcode that the service does not know. So it
// completes in order with an error and puts the queue pair into error, and the requests behind it
// are flushed; its status is corrected when the program polls it. A wrong key fails by itself, and
// the peer is told as on hardware.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "dataplane/attach/injection/fault_plan.h"
#include "dataplane/attach/queues.h"

namespace paceline::verbs {

// A fault that was applied to a request.
struct Injected {
  attach::FaultRule rule;
  std::uint64_t request = 0;  // of the queue pair, from 1
  std::uint64_t wr_id = 0;
};

class PairFaults {
 public:
  // `place`: the queue pair's position among those of its device, from 1. The rules outlive this.
  PairFaults(std::span<const attach::FaultRule> rules, std::uint64_t seed, std::uint32_t place,
             bool reliable)
      : rules_(rules), counts_(rules.size()), seed_(seed), place_(place), reliable_(reliable) {}

  // --- under the lock of the send queue ---
  // Injects into the request in that slot, which the service does not see yet. Adds the applied
  // faults.
  void inject(attach::SendSlot& slot, std::uint32_t index, std::vector<Injected>& out);
  // In place of WorkQueue::publish: shows the service the slots before `tail`, except for held
  // ones. Returns for how many us the first of these is held from now on; 0: none is, or it was
  // held before.
  std::uint64_t publish(std::uint32_t tail, attach::SharedIndex& seen);

  // --- any thread ---
  // The time of the first held slot is over. Returns as publish() does.
  std::uint64_t release(attach::SharedIndex& seen);
  // Releases all held slots.
  void release_all(attach::SharedIndex& seen);
  // Puts the status of an error right.
  void correct(attach::CompletionEntry& entry);

 private:
  struct Held {
    std::uint32_t index = 0;
    std::uint64_t micros = 0;
  };
  struct Failing {
    std::uint32_t index = 0;
    attach::EntryStatus status = attach::EntryStatus::success;
  };
  bool can_befall(attach::FaultKind kind, const attach::SendSlot& slot) const;
  void break_request(const attach::FaultRule& rule, attach::SendSlot& slot, std::uint32_t index);

  std::span<const attach::FaultRule> rules_;
  std::vector<std::uint64_t> counts_;  // by rule: requests that it could have been applied to
  std::uint64_t seed_;
  std::uint64_t requests_ = 0;
  std::uint32_t place_;
  bool reliable_;
  std::mutex mutex_;  // of what follows
  std::uint32_t tail_ = 0;
  std::deque<Held> held_;
  bool waiting_ = false;  // for the time of the first of them
  std::deque<Failing> failing_;
};

}  // namespace paceline::verbs
