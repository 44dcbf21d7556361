#include "tools/workload/generators.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

#include "dataplane/base/numbers/distributions.h"
#include "tools/workload/draws/exchange_matrix.h"
#include "tools/workload/draws/streams.h"

namespace paceline::workload {

namespace {

constexpr double kPicosPerSecond = 1e12;

// Payload bytes per second of what hosts could send, times `load`.
double offered(double load, std::span<const Rate> host_rates) {
  double bits = 0;
  for (const Rate rate : host_rates) bits += static_cast<double>(rate.bps);
  return load * bits / 8;
}

// Incasts at random times; the hosts of each are drawn anew.
void add_incasts(const config::WorkloadConfig& workload, std::span<const Rate> host_rates,
                 std::uint64_t seed, MessagePlan& plan) {
  const auto hosts = static_cast<std::uint32_t>(host_rates.size());
  assert(workload.fan_in < hosts);
  const double bytes =
      static_cast<double>(workload.fan_in) * static_cast<double>(workload.message_bytes);
  const double mean_gap = bytes / offered(workload.incast_load, host_rates) * kPicosPerSecond;
  const auto window = static_cast<double>(workload.window.count);
  Random random = stream(seed, Purpose::incast, 0);
  std::vector<std::uint32_t> drawn(hosts);
  std::iota(drawn.begin(), drawn.end(), 0U);
  for (double t = exponential(random, mean_gap); t < window; t += exponential(random, mean_gap)) {
    // The first of a shuffle, as far as it is needed: the receiver, then the senders.
    for (std::uint32_t i = 0; i <= workload.fan_in; ++i) {
      std::swap(drawn[i], drawn[i + random.below(hosts - i)]);
      if (i == 0) continue;
      plan.messages.push_back({.src = drawn[i],
                               .dst = drawn[0],
                               .bytes = workload.message_bytes,
                               .start = Picos{static_cast<std::int64_t>(t)},
                               .lane = kNoMessage});
    }
  }
}

}  // namespace

std::vector<Picos> host_starts(Picos jitter, std::uint32_t hosts, std::uint64_t seed) {
  std::vector<Picos> starts(hosts);
  for (std::uint32_t h = 0; h < hosts; ++h) {
    Random random = stream(seed, Purpose::start, h);
    starts[h].count =
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(jitter.count) + 1));
  }
  return starts;
}

void sort_plan(MessagePlan& plan) {
  auto& messages = plan.messages;
  const auto before = [](const PlannedMessage& x, const PlannedMessage& y) {
    return std::tie(x.start, x.src, x.dst) < std::tie(y.start, y.src, y.dst);
  };
  if (std::is_sorted(messages.begin(), messages.end(), before)) return;
  std::vector<std::uint32_t> order(messages.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return before(messages[a], messages[b]);
  });
  std::vector<std::uint32_t> place(messages.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<PlannedMessage> sorted;
  sorted.reserve(messages.size());
  for (const std::uint32_t i : order) {
    sorted.push_back(messages[i]);
    if (sorted.back().after != kNoMessage) sorted.back().after = place[sorted.back().after];
  }
  messages = std::move(sorted);
  for (Join& join : plan.joins) join = {place[join.message], place[join.after]};
}

MessagePlan incast(const config::WorkloadConfig& workload, std::uint32_t hosts,
                   std::uint64_t seed) {
  assert(workload.receiver < hosts && workload.fan_in < hosts);
  MessagePlan plan;
  plan.collectives.push_back({"incast", Picos{0}});
  const std::vector<Picos> starts = host_starts(workload.start_jitter, hosts, seed);
  for (std::uint32_t h = 0; plan.messages.size() < workload.fan_in; ++h) {
    if (h == workload.receiver) continue;
    plan.messages.push_back(
        {.src = h, .dst = workload.receiver, .bytes = workload.message_bytes, .start = starts[h]});
  }
  sort_plan(plan);
  return plan;
}

MessagePlan all_to_all(const config::WorkloadConfig& workload, std::uint32_t hosts,
                       std::uint64_t seed) {
  assert(hosts >= 2);
  MessagePlan plan;
  plan.collectives.push_back({"all_to_all", Picos{0}});
  const std::vector<Picos> starts = host_starts(workload.start_jitter, hosts, seed);
  const std::vector<std::uint64_t> row_totals(hosts, workload.message_bytes * (hosts - 1));
  const std::vector<std::uint64_t> bytes =
      exchange_matrix(row_totals, {.skew = workload.skew, .seed = seed});
  for (std::uint32_t src = 0; src < hosts; ++src) {
    for (std::uint32_t dst = 0; dst < hosts; ++dst) {
      const std::uint64_t cell = bytes[std::size_t{src} * hosts + dst];
      if (cell == 0) continue;
      plan.messages.push_back(
          {.src = src,
           .dst = dst,
           .bytes = cell,
           .start = starts[src],
           .hint_kind = kHintAllToAll,
           .hint_degree = static_cast<std::uint16_t>(std::min<std::uint32_t>(hosts - 1, 0xFFFF))});
    }
  }
  sort_plan(plan);
  return plan;
}

MessagePlan permutation(const config::WorkloadConfig& workload, std::uint32_t hosts,
                        std::uint64_t seed) {
  assert(hosts >= 2);
  MessagePlan plan;
  plan.collectives.push_back({"permutation", Picos{0}});
  std::vector<std::uint32_t> to(hosts);
  if (workload.shift != 0) {
    for (std::uint32_t h = 0; h < hosts; ++h) to[h] = (h + workload.shift) % hosts;
  } else {
    std::iota(to.begin(), to.end(), 0U);
    Random random = stream(seed, Purpose::shuffle, 0);
    for (std::uint32_t i = hosts - 1; i > 0; --i) std::swap(to[i], to[random.below(i)]);
  }
  const std::vector<Picos> starts = host_starts(workload.start_jitter, hosts, seed);
  for (std::uint32_t h = 0; h < hosts; ++h) {
    plan.messages.push_back(
        {.src = h, .dst = to[h], .bytes = workload.message_bytes, .start = starts[h]});
  }
  sort_plan(plan);
  return plan;
}

MessagePlan open_loop(const config::WorkloadConfig& workload, std::span<const Rate> host_rates,
                      const Cdf& sizes, std::uint64_t seed) {
  const auto hosts = static_cast<std::uint32_t>(host_rates.size());
  assert(hosts >= 2);
  MessagePlan plan;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    Random random = stream(seed, Purpose::arrival, h);
    const double bytes_per_second = workload.load * static_cast<double>(host_rates[h].bps) / 8;
    const double mean_gap = sizes.mean() / bytes_per_second * kPicosPerSecond;
    const auto window = static_cast<double>(workload.window.count);
    for (double t = exponential(random, mean_gap); t < window; t += exponential(random, mean_gap)) {
      const auto other = static_cast<std::uint32_t>(random.below(hosts - 1));
      plan.messages.push_back({.src = h,
                               .dst = other < h ? other : other + 1,
                               .bytes = sizes.quantile(random.uniform()),
                               .start = Picos{static_cast<std::int64_t>(t)},
                               .lane = kNoMessage});
    }
  }
  if (workload.incast_load > 0) add_incasts(workload, host_rates, seed, plan);
  sort_plan(plan);
  return plan;
}

}  // namespace paceline::workload
