// The program's end of a completion queue.
//
// Every poll looks at the shared tail without a lock. If it finds something, it takes the lock,
// under which entries are read, `head` moves and the queue pairs' requests retire.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "dataplane/attach/queues.h"
#include "dataplane/attach/shared_memory.h"
#include "dataplane/verbs/abi/abi.h"
#include "dataplane/verbs/completion/pair_table.h"
#include "dataplane/verbs/completion/queue_lock.h"

namespace paceline::verbs {

struct Context;

struct CompletionQueue {
  ibv_cq_ex cq{};  // first: programs hold its address, as of an ibv_cq or of an ibv_cq_ex
  Context* context = nullptr;
  std::uint64_t cookie = 0;  // by which its events come
  QueueLock lock;
  // Replaced by a resize; what it pointed to stays mapped, since polls look without the lock.
  std::atomic<attach::CompletionQueueHeader*> header{nullptr};
  std::uint32_t slots = 0;
  std::atomic<std::uint32_t> head{0};
  std::vector<attach::SharedMemory> memory;  // the last is the one in use
  PairTable pairs;                           // whose completions come here; under the lock

  // Waiting (empty_poll.cc): polling threads write these without a lock; they only decide when to
  // nap.
  std::atomic<std::uint32_t> empty_polls{0};
  std::atomic<std::uint32_t> vain_naps{0};

  // Extended polling: the entry between start_poll and end_poll.
  attach::CompletionEntry current{};
  bool single_threaded = false;
  std::uint64_t wc_flags = 0;

  // Under ibv_cq::mutex: handed out, to be acknowledged.
  std::uint32_t events_reported = 0;
  std::uint32_t async_reported = 0;

  static CompletionQueue& of(ibv_cq* cq) { return *reinterpret_cast<CompletionQueue*>(cq); }
  static CompletionQueue& of(ibv_cq_ex* cq) { return *reinterpret_cast<CompletionQueue*>(cq); }
  ibv_cq* handle() { return reinterpret_cast<ibv_cq*>(&cq); }

  attach::CompletionQueueHeader* ring() const { return header.load(std::memory_order_acquire); }
  attach::CompletionEntry& entry(std::uint32_t index) {
    auto* const first = reinterpret_cast<attach::CompletionEntry*>(
        reinterpret_cast<std::byte*>(ring()) + sizeof(attach::CompletionQueueHeader));
    return first[index & (slots - 1)];
  }
  bool empty() const {
    return ring()->tail.value.load(std::memory_order_acquire) ==
           head.load(std::memory_order_relaxed);
  }
};

// Takes the next completion from the queue; its request is retired. False: there is none. The lock
// is held. When the service is gone, requests still outstanding come as flushed.
bool take_entry(CompletionQueue& queue, attach::CompletionEntry& out) noexcept;

// After a poll that found nothing, without a lock: naps until there is something or a short time
// has passed, once polls have found nothing for a while.
void after_empty_poll(CompletionQueue& queue) noexcept;

// Removes a queue pair whose completions came here, and the rest of its completions. The service
// sends no more of them. `forget`: it is destroyed; otherwise it was reset and will be back.
void drop_pair(CompletionQueue& queue, std::uint32_t qp_number, bool forget) noexcept;
// The same in all of its completion queues.
void drop_completions(const ibv_qp& qp, bool forget) noexcept;

ibv_wc_opcode opcode_of(const attach::CompletionEntry& entry) noexcept;
unsigned flags_of(const attach::CompletionEntry& entry) noexcept;

// Fills in the functions of an extended queue (extended_poll.cc).
void set_poll_functions(ibv_cq_ex& cq, std::uint64_t wc_flags, bool single_threaded) noexcept;

}  // namespace paceline::verbs
