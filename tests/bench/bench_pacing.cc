// Cost of one departure: find the due context, take it, schedule its next one. And cost of
// re-arming a retransmission timer. The peer in both is std::priority_queue, which can neither move
// nor remove an entry: a superseded one stays in it and is skipped by a generation number.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/base/units.h"
#include "dataplane/pacing/deadline_queue.h"

namespace paceline {
namespace {

using pacing::DeadlineQueue;

// Gaps between departures of each context, in picoseconds: rates within a factor of four of the
// link's fair share, 4170-byte packets at 400 Gb/s.
std::vector<Picos> departure_gaps(std::uint32_t contexts) {
  Random random(1);
  std::vector<Picos> gaps(contexts);
  for (Picos& gap : gaps) {
    const double share = 83'400.0 * contexts;
    gap.count = static_cast<std::int64_t>(share * (0.5 + 1.5 * random.uniform()));
  }
  return gaps;
}

struct Superseding {  // std::priority_queue with generations
  struct Entry {
    Picos at;
    std::uint32_t index;
    std::uint32_t generation;
    bool operator<(const Entry& other) const {  // std::priority_queue serves the largest first
      return at != other.at ? other.at < at : other.index < index;
    }
  };
  explicit Superseding(std::uint32_t indices) : generation(indices) {}
  void schedule(std::uint32_t index, Picos at) { queue.push({at, index, ++generation[index]}); }
  Picos next_deadline() {
    while (!queue.empty() && queue.top().generation != generation[queue.top().index]) queue.pop();
    return queue.empty() ? kNever : queue.top().at;
  }
  std::uint32_t pop_due(Picos now) {
    if (next_deadline() > now) return DeadlineQueue::kNone;
    const std::uint32_t index = queue.top().index;
    queue.pop();
    ++generation[index];
    return index;
  }
  std::priority_queue<Entry> queue;
  std::vector<std::uint32_t> generation;
};

template <class Queue>
void departures(benchmark::State& state) {
  const auto contexts = static_cast<std::uint32_t>(state.range(0));
  const std::vector<Picos> gaps = departure_gaps(contexts);
  Queue queue(contexts);
  Random random(2);
  for (std::uint32_t i = 0; i < contexts; ++i) {
    queue.schedule(
        i, {static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(gaps[i].count)))});
  }
  for (auto _ : state) {
    const Picos now = queue.next_deadline();
    const std::uint32_t index = queue.pop_due(now);
    queue.schedule(index, now + gaps[index]);
    benchmark::DoNotOptimize(index);
  }
  state.SetItemsProcessed(state.iterations());
}

// Each acknowledgement re-arms the timer of a random queue pair, ten times per timeout on average;
// a fired timer is armed again.
template <class Queue>
void rearm(benchmark::State& state) {
  const auto timers = static_cast<std::uint32_t>(state.range(0));
  constexpr Picos kTimeout = picos_from_micros(1000);
  const Picos ack_gap = kTimeout / (std::int64_t{10} * timers);
  Queue queue(timers);
  Random random(3);
  Picos now{0};
  for (std::uint32_t i = 0; i < timers; ++i) queue.schedule(i, now + kTimeout + ack_gap * i);
  for (auto _ : state) {
    now += ack_gap;
    queue.schedule(static_cast<std::uint32_t>(random.below(timers)), now + kTimeout);
    for (;;) {
      const std::uint32_t fired = queue.pop_due(now);
      if (fired == DeadlineQueue::kNone) break;
      queue.schedule(fired, now + kTimeout);
    }
    benchmark::DoNotOptimize(queue.next_deadline());
  }
  state.SetItemsProcessed(state.iterations());
}

void sizes(benchmark::internal::Benchmark* b) {
  for (const int n : {1, 32, 1000, 100'000}) b->Arg(n);
}

BENCHMARK(departures<DeadlineQueue>)->Apply(sizes)->Name("departure/DeadlineQueue");
BENCHMARK(departures<Superseding>)->Apply(sizes)->Name("departure/std_priority_queue");
BENCHMARK(rearm<DeadlineQueue>)->Apply(sizes)->Name("rearm/DeadlineQueue");
BENCHMARK(rearm<Superseding>)->Apply(sizes)->Name("rearm/std_priority_queue");

}  // namespace
}  // namespace paceline
