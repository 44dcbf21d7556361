// Polls that find nothing. Most of them do nothing. A program that spins keeps a processor from the
// worker and from its peer, so after some polls it yields, if that pays (base/adaptive_yield.h).
// After a while it sleeps, until the worker wakes it (completion_wanted::sleeper) or until a short
// timeout, which grows while nothing comes: a program may have other things to poll, and should not
// wait long on the wrong one.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "dataplane/base/adaptive_yield.h"
#include "dataplane/verbs/completion/completion_queue.h"
#include "dataplane/verbs/device/context.h"

namespace paceline::verbs {

namespace {

constexpr long kShortNapNs = 50'000;
constexpr std::uint32_t kDoublings = 4;  // to 0.8 ms
constexpr std::uint32_t kWays = 200;     // given in a row, before a nap

std::int64_t clock_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

// Per thread: several threads may poll the queues of a context.
thread_local AdaptiveYield adaptive_yield;

// False: it is not worth it now.
bool give_way() {
  const std::int64_t from = clock_ns();
  if (!adaptive_yield.worthwhile(from)) return false;
  ::sched_yield();
  adaptive_yield.yielded(from, clock_ns());
  return true;
}

// Until the tail moves on, or for as long as is given. The futex is shared between processes.
void nap(CompletionQueue& queue, long nanoseconds) {
  attach::CompletionQueueHeader& ring = *queue.ring();
  ring.wanted.value.fetch_or(attach::completion_wanted::sleeper, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint32_t head = queue.head.load(std::memory_order_relaxed);
  if (ring.tail.value.load(std::memory_order_seq_cst) != head) return;
  const timespec limit{0, nanoseconds};
  ::syscall(SYS_futex, &ring.tail.value, FUTEX_WAIT, head, &limit, nullptr, 0);
}

}  // namespace

void after_empty_poll(CompletionQueue& queue) noexcept {
  Context& context = *queue.context;
  const std::uint32_t polls = queue.empty_polls.load(std::memory_order_relaxed) + 1;
  queue.empty_polls.store(polls, std::memory_order_relaxed);
  if (polls < context.spins) {
    if (polls == 1) queue.context->last_polled.store(&queue, std::memory_order_relaxed);
    return;
  }
  if (polls < context.spins + kWays && give_way()) return;
  queue.empty_polls.store(0, std::memory_order_relaxed);
  const std::uint32_t before = queue.vain_naps.load(std::memory_order_relaxed);
  if (context.last_polled.exchange(&queue, std::memory_order_relaxed) == &queue) {
    nap(queue, kShortNapNs << (before < kDoublings ? before : kDoublings));
  } else {
    // A program that takes turns between queues waits for whichever is first.
    ::sched_yield();
  }
  if (!queue.empty()) {
    queue.vain_naps.store(0, std::memory_order_relaxed);
    return;
  }
  queue.vain_naps.store(before + 1, std::memory_order_relaxed);
  if (before >= kDoublings) context.session.look();
}

}  // namespace paceline::verbs
