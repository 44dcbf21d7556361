// A session as its worker knows it: the doorbells that the program rings, the queues behind them,
// and which of these are pending. All calls are on the worker's thread; the owner of the objects
// adds and removes them through its task queue.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dataplane/attach/doorbell.h"
#include "dataplane/service/adapters/completion_adapter.h"
#include "dataplane/service/adapters/pair_adapter.h"
#include "dataplane/service/adapters/receive_adapter.h"
#include "dataplane/service/limits/message_budget.h"
#include "dataplane/service/memory/tenant_memory.h"

namespace paceline::service {

struct WorkerSessionSetup {
  std::size_t nic = 0;  // index in the worker's set
  transport::Engine* engine = nullptr;
  attach::DoorbellPage* bells = nullptr;
  MessageBudget* budget = nullptr;  // of its tenant, for this worker
  TenantMemory* memory = nullptr;
  const PairTable* pairs = nullptr;
  int notices = -1;  // where asynchronous events are written to
};

class WorkerSession {
 public:
  explicit WorkerSession(const WorkerSessionSetup& setup);

  std::size_t nic() const { return s_.nic; }
  // Tells the program of an event of a port: a number of enum ibv_event_type.
  void notify(std::uint32_t event, std::uint32_t port) const;

  // --- between turns: may allocate ---
  void add(PairAdapter& pair, std::uint32_t bell);
  void remove(PairAdapter& pair, std::uint32_t bell);
  void add(SharedReceives& receives, std::uint32_t bell);
  void remove(SharedReceives& receives, std::uint32_t bell);
  void add(CompletionAdapter& queue);
  void remove(CompletionAdapter& queue);
  // Its state has changed: pending work is looked at again.
  void retry(std::uint32_t bell) { mark(bell); }

  // --- in a turn ---
  // Serves the bells that were rung; true if the engine was given anything.
  bool pump(Picos now);
  // Hands over completions. True if there were any.
  bool settle();
  // True once after it has told the engine something that the next poll must act on.
  bool take_disturbed() { return std::exchange(disturbed_, false); }
  // When it needs a turn even if no bell rings.
  Picos next_deadline(Picos now) const;

  // Any thread.
  std::uint64_t messages() const { return messages_.load(std::memory_order_relaxed); }

 private:
  struct Bell {
    PairAdapter* pair = nullptr;
    SharedReceives* receives = nullptr;
  };
  static constexpr std::uint32_t kMessagesPerTurn = 512;
  static constexpr std::uint32_t kMessagesPerQueue = 64;

  void mark(std::uint32_t bell) {
    pending_[bell / 64] |= std::uint64_t{1} << bell % 64;
    pending_words_ |= std::uint64_t{1} << bell / 64;
  }
  bool pump_word(Picos now, std::uint32_t word, std::uint32_t& budget);
  // Returns messages taken; clears its pending bit when nothing is left.
  std::uint32_t pump_bell(Picos now, std::uint32_t bell, std::uint32_t budget, bool& progress);

  WorkerSessionSetup s_;
  std::uint64_t pending_words_ = 0;
  std::uint32_t first_word_ = 0;  // where the next turn begins
  bool disturbed_ = false;
  bool starved_ = false;  // the tenant's budget was used up
  std::array<std::uint64_t, attach::kDoorbellWords> pending_{};
  std::vector<Bell> bells_;
  std::vector<CompletionAdapter*> queues_;
  std::vector<SharedReceives*> shared_;
  std::vector<PairAdapter*> pairs_;
  std::atomic<std::uint64_t> messages_{0};  // given to the engine; only the worker writes
};

}  // namespace paceline::service
