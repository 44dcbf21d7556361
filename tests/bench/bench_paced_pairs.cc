// Cost of one paced packet in the sending half of an engine: find the context that is due, build
// the packet, hand it to a port that throws it away, schedule the next. One queue pair at 400 Gb/s,
// and up to 100,000 of 1 to 100 Mb/s that sum to the same.
#include <benchmark/benchmark.h>

#include "tests/perf/paced_pairs.h"

namespace paceline::perf {
namespace {

constexpr Rate kLink = rate_from_gbps(400);

void paced_pairs(benchmark::State& state) {
  const auto pairs = static_cast<std::uint32_t>(state.range(0));
  // Fewer pairs share a link in proportion, so that the distribution of rates is the same.
  const Rate link{pairs == 1 ? kLink.bps : kLink.bps / 100'000 * pairs};
  const std::vector<Rate> rates =
      pairs == 1 ? std::vector<Rate>{kLink} : skewed_rates(pairs, link, 1);
  PacedPairs sender(link, rates, 2);
  sender.send(2 * std::uint64_t{pairs});
  constexpr std::uint64_t kBatch = 1000;
  for (auto _ : state) sender.send(kBatch);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatch));
  state.counters["ns_per_packet"] = benchmark::Counter(
      static_cast<double>(kBatch) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK(paced_pairs)
    ->Arg(1)
    ->Arg(1'000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace paceline::perf
