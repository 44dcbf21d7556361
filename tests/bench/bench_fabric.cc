// What a packet-hop costs in event wheel, links and switch, without a transport: synthetic hosts
// that keep a window of packets in flight and acknowledge each. One hop is one link transmission,
// ACKs included. Beside it the wheel against std::priority_queue on the same load.
//
//   bench_fabric --benchmark_min_time=1
#include <benchmark/benchmark.h>

#include <cstdint>
#include <queue>
#include <vector>

#include "dataplane/base/containers/event_wheel.h"
#include "dataplane/base/numbers/random.h"
#include "dataplane/fabric/network.h"
#include "tests/bench/synthetic_hosts.h"

namespace paceline::fabric {
namespace {

// Half a million hops an iteration; how many in all.
double measure_hops(benchmark::State& state, SyntheticRun& run) {
  constexpr std::uint64_t kStep = 500'000;
  std::uint64_t hops = run.net().stats().hops;
  const std::uint64_t first = hops;
  for (auto _ : state) run.until_hops(hops += kStep);
  const auto done = static_cast<double>(run.net().stats().hops - first);
  state.counters["hops/s"] = benchmark::Counter(done, benchmark::Counter::kIsRate);
  state.counters["ns/hop"] =
      benchmark::Counter(done * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  return done;
}

// range(0): payload; range(1): slot shift.
void incast(benchmark::State& state) {
  constexpr std::uint32_t kHosts = 64;
  FabricSpec spec = star(kHosts, rate_from_gbps(100), picos_from_micros(1));
  const auto payload = static_cast<std::uint16_t>(state.range(0));
  SyntheticRun run(spec, static_cast<unsigned>(state.range(1)));
  run.start(0, 1, payload, 0);
  for (std::uint32_t host = 1; host < kHosts; ++host) run.start(host, 0, payload, 160'000);
  run.until_hops(200'000);
  measure_hops(state, run);
  if (const auto wrong = run.net().check_conservation(); !wrong.empty()) {
    state.SkipWithError(wrong.c_str());
  }
}
BENCHMARK(incast)
    ->ArgsProduct({{4096, 1024}, {12, 13, 14, 15, 16, 17}})
    ->Unit(benchmark::kMillisecond);

// A leaf-spine fabric, permutation traffic. range(0): hosts (16 per leaf, 8 spines), range(1):
// shift.
void permutation(benchmark::State& state) {
  const auto hosts = static_cast<std::uint32_t>(state.range(0));
  constexpr std::uint32_t kPerLeaf = 16, kSpines = 16;
  FabricSpec spec;
  spec.hosts = hosts;
  const std::uint32_t leaves = hosts / kPerLeaf;
  spec.switches = leaves + kSpines;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    spec.links.push_back({h, hosts + h / kPerLeaf, rate_from_gbps(100), picos_from_micros(1)});
  }
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    for (std::uint32_t spine = 0; spine < kSpines; ++spine) {
      spec.links.push_back(
          {hosts + leaf, hosts + leaves + spine, rate_from_gbps(100), picos_from_micros(1)});
    }
  }
  SyntheticRun run(spec, static_cast<unsigned>(state.range(1)));
  for (std::uint32_t h = 0; h < hosts; ++h) {
    run.start(
        h, (h + hosts / 2 + h % 7) % hosts == h ? (h + 1) % hosts : (h + hosts / 2 + h % 7) % hosts,
        4096, 160'000);
  }
  run.until_hops(400'000);
  const double done = measure_hops(state, run);
  state.counters["hops/us"] = done / (static_cast<double>(run.now().count) * 1e-6);
}
BENCHMARK(permutation)->ArgsProduct({{64, 1024}, {8, 10, 12, 14}})->Unit(benchmark::kMillisecond);

constexpr double kMeanDelayUs = 63.4;

// The load of a queue of `actors` entries, each rescheduled when popped by what a link or a host
// would: a small packet, a large one, a propagation delay, and at times half a millisecond.
Picos next_delay(Random& random) {
  const std::uint64_t r = random.next();
  const std::int64_t jitter = static_cast<std::int64_t>(r >> 54);
  switch (r & 7) {
    case 0:
      return Picos{7'000 + jitter};
    case 1:
      return Picos{500'000'000 + jitter};
    case 2:
    case 3:
      return Picos{333'600 + jitter};
    default:
      return Picos{1'340'000 + jitter};
  }
}

void wheel_hold(benchmark::State& state) {
  const auto actors = static_cast<std::uint32_t>(state.range(0));
  EventWheel wheel(actors, EventWheel::slot_shift_for(static_cast<double>(actors) / kMeanDelayUs));
  Random random(1);
  for (std::uint32_t i = 0; i < actors; ++i) wheel.schedule(i, next_delay(random));
  Picos time{};
  std::uint32_t actor = 0;
  for (auto _ : state) {
    wheel.pop(time, actor);
    wheel.schedule(actor, time + next_delay(random));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(wheel_hold)->Arg(192)->Arg(4096)->Arg(65536);

void priority_queue_hold(benchmark::State& state) {
  using Entry = std::pair<std::int64_t, std::uint32_t>;
  const auto actors = static_cast<std::uint32_t>(state.range(0));
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  Random random(1);
  for (std::uint32_t i = 0; i < actors; ++i) queue.emplace(next_delay(random).count, i);
  for (auto _ : state) {
    const auto [time, actor] = queue.top();
    queue.pop();
    queue.emplace(time + next_delay(random).count, actor);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(priority_queue_hold)->Arg(192)->Arg(4096)->Arg(65536);

}  // namespace
}  // namespace paceline::fabric
