// What generators promise: totals, statistics, dependencies, and the same plan for the same seed.

#include "tools/workload/generators.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tools/workload/models/model_shape.h"

namespace paceline::workload {
namespace {

config::WorkloadConfig workload(const char* kind) {
  config::WorkloadConfig w;
  w.kind = kind;
  return w;
}

// A digest of everything a plan says.
std::uint64_t digest(const MessagePlan& plan) {
  std::uint64_t h = 0;
  const auto add = [&](std::uint64_t v) { h = mix64(h ^ v) + 0x9E37'79B9'7F4A'7C15U; };
  for (const PlannedMessage& m : plan.messages) {
    for (const std::uint64_t v : {std::uint64_t{m.src}, std::uint64_t{m.dst}, m.bytes,
                                  static_cast<std::uint64_t>(m.start.count), std::uint64_t{m.after},
                                  std::uint64_t{m.lane}, std::uint64_t{m.hint_kind}}) {
      add(v);
    }
  }
  return h;
}

bool is_sorted(const MessagePlan& plan) {
  return std::is_sorted(plan.messages.begin(), plan.messages.end(),
                        [](const PlannedMessage& a, const PlannedMessage& b) {
                          return std::tie(a.start, a.src, a.dst) < std::tie(b.start, b.src, b.dst);
                        });
}

TEST_CASE("incast: the senders, their bytes, their starts", "[workload]") {
  config::WorkloadConfig w = workload("incast");
  w.fan_in = 32;
  w.receiver = 5;
  w.start_jitter = picos_from_micros(1);
  const MessagePlan plan = incast(w, 33, 1);
  REQUIRE(plan.messages.size() == 32);
  CHECK(is_sorted(plan));
  std::set<std::uint32_t> senders;
  for (const PlannedMessage& m : plan.messages) {
    senders.insert(m.src);
    CHECK(m.dst == 5);
    CHECK(m.bytes == 10'000'000);
    CHECK(m.start >= Picos{0});
    CHECK(m.start <= picos_from_micros(1));
  }
  CHECK(senders.size() == 32);
  CHECK(senders.count(5) == 0);
  CHECK(plan.collectives.at(0).name == "incast");
}

TEST_CASE("all-to-all: every row has the same total, shared by the receivers' weights",
          "[workload]") {
  for (const double skew : {0.0, 1.0, 2.0, 8.0}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      INFO("skew " << skew << " seed " << seed);
      config::WorkloadConfig w = workload("all_to_all");
      w.message_bytes = 1'000'003;
      w.skew = skew;
      constexpr std::uint32_t kHosts = 32;
      const MessagePlan plan = all_to_all(w, kHosts, seed);
      CHECK(is_sorted(plan));
      std::vector<std::uint64_t> rows(kHosts);
      std::vector<std::vector<double>> bytes(kHosts, std::vector<double>(kHosts));
      std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
      for (const PlannedMessage& m : plan.messages) {
        REQUIRE(m.src != m.dst);
        CHECK(m.bytes > 0);
        CHECK(pairs.emplace(m.src, m.dst).second);
        rows[m.src] += m.bytes;
        bytes[m.src][m.dst] = static_cast<double>(m.bytes);
      }
      for (const std::uint64_t total : rows) CHECK(total == w.message_bytes * (kHosts - 1));
      // The ratio of two receivers' shares is the same for every sender: to rounding, one byte
      // each.
      for (std::uint32_t src = 2; src < kHosts; ++src) {
        const double expected = bytes[src][0] * bytes[2][1] / std::max(bytes[2][0], 1.0);
        const double slack = 3 + 3 * std::max(bytes[src][1], expected) /
                                     std::max(1.0, std::min(bytes[2][0], bytes[2][1]));
        CHECK(bytes[src][1] == Approx(expected).margin(slack));
      }
      if (skew == 0.0) {
        for (const PlannedMessage& m : plan.messages) CHECK(m.bytes == w.message_bytes);
      }
    }
  }
}

TEST_CASE("all-to-all: log weights are normal with deviation skew", "[workload]") {
  // From a column of bytes, log shares up to a constant are skew * z: 800 of them.
  config::WorkloadConfig w = workload("all_to_all");
  w.message_bytes = 1'000'000'000'000;
  w.skew = 1.5;
  constexpr std::uint32_t kHosts = 801;
  constexpr std::uint64_t kSeed = 4;
  INFO("seed " << kSeed);
  const MessagePlan plan = all_to_all(w, kHosts, kSeed);
  double sum = 0, squares = 0;
  int n = 0;
  for (const PlannedMessage& m : plan.messages) {
    if (m.src != 0) continue;
    const double x = std::log(static_cast<double>(m.bytes));
    sum += x;
    squares += x * x;
    ++n;
  }
  REQUIRE(n == 800);
  const double sd = std::sqrt(squares / n - (sum / n) * (sum / n));
  CHECK(sd == Approx(1.5).margin(4 * 1.5 / std::sqrt(2.0 * n)));  // 4 standard errors
}

TEST_CASE("permutation: one out, one in, never oneself", "[workload]") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    const MessagePlan plan = permutation(workload("permutation"), 9, seed);
    std::set<std::uint32_t> from, to;
    for (const PlannedMessage& m : plan.messages) {
      CHECK(m.src != m.dst);
      from.insert(m.src);
      to.insert(m.dst);
    }
    CHECK(from.size() == 9);
    CHECK(to.size() == 9);
  }
}

TEST_CASE("open loop: load, destinations and gaps are those of a Poisson process", "[workload]") {
  config::WorkloadConfig w = workload("open_loop");
  w.load = 0.8;
  w.window = picos_from_micros(400'000);
  const std::vector<Rate> rates(8, rate_from_gbps(100));
  constexpr std::uint64_t kSeed = 2;
  INFO("seed " << kSeed);
  const Cdf& cdf = web_search_cdf();
  const MessagePlan plan = open_loop(w, rates, cdf, kSeed);
  CHECK(is_sorted(plan));
  CHECK(plan.collectives.empty());
  // 8 hosts x 10 GB/s x 0.4 s / 1.71 MB.
  const double expected = 8 * 0.8 * 12.5e9 * 0.4 / cdf.mean();
  const auto n = static_cast<double>(plan.messages.size());
  CHECK(n == Approx(expected).margin(4 * std::sqrt(expected)));
  double bytes = 0;
  std::map<std::uint32_t, double> to;
  std::vector<Picos> last(8);
  double gaps = 0, squares = 0;
  for (const PlannedMessage& m : plan.messages) {
    REQUIRE(m.src != m.dst);
    CHECK(m.start < w.window);
    CHECK(m.lane == kNoMessage);
    bytes += static_cast<double>(m.bytes);
    to[m.dst] += 1;
    const auto gap = static_cast<double>((m.start - last[m.src]).count);
    last[m.src] = m.start;
    gaps += gap;
    squares += gap * gap;
  }
  // The total has relative deviation sqrt((1 + cv^2) / n), cv about 2.
  CHECK(bytes == Approx(8 * 0.8 * 12.5e9 * 0.4).epsilon(4 * std::sqrt(5.0 / n)));
  for (const auto& [host, count] : to) CHECK(count == Approx(n / 8).margin(4 * std::sqrt(n / 8)));
  const double mean = gaps / n;
  CHECK(std::sqrt(squares / n - mean * mean) / mean == Approx(1.0).margin(0.06));  // exponential
}

TEST_CASE("open loop: each host loads its own link", "[workload]") {
  config::WorkloadConfig w = workload("open_loop");
  w.window = picos_from_micros(1'000'000);
  const std::vector<Rate> rates{rate_from_gbps(100), rate_from_gbps(25)};
  const MessagePlan plan = open_loop(w, rates, fb_hadoop_cdf(), 1);
  double first = 0, second = 0;
  for (const PlannedMessage& m : plan.messages) (m.src == 0 ? first : second) += 1;
  CHECK(first / second == Approx(4.0).epsilon(0.05));
}

TEST_CASE("open loop: incasts on top leave the rest as it is", "[workload]") {
  config::WorkloadConfig w = workload("open_loop");
  w.load = 0.3;
  w.window = picos_from_micros(400'000);
  w.fan_in = 6;
  w.message_bytes = 500'001;
  const std::vector<Rate> rates(8, rate_from_gbps(100));
  constexpr std::uint64_t kSeed = 3;
  INFO("seed " << kSeed);
  const MessagePlan alone = open_loop(w, rates, fb_hadoop_cdf(), kSeed);
  w.incast_load = 0.1;
  const MessagePlan both = open_loop(w, rates, fb_hadoop_cdf(), kSeed);
  CHECK(is_sorted(both));
  std::map<std::int64_t, std::vector<PlannedMessage>> incasts;  // by their beginning
  std::vector<PlannedMessage> rest;
  for (const PlannedMessage& m : both.messages) {
    if (m.bytes == w.message_bytes) {
      incasts[m.start.count].push_back(m);
    } else {
      rest.push_back(m);
    }
  }
  REQUIRE(rest.size() == alone.messages.size());
  for (std::size_t i = 0; i < rest.size(); ++i) {
    CHECK(rest[i].start == alone.messages[i].start);
    CHECK(rest[i].src == alone.messages[i].src);
    CHECK(rest[i].bytes == alone.messages[i].bytes);
  }
  // 8 hosts x 12.5 GB/s x 0.1 x 0.4 s / 3 MB.
  const double expected = 8 * 12.5e9 * 0.1 * 0.4 / (6 * 500'001.0);
  CHECK(static_cast<double>(incasts.size()) == Approx(expected).margin(4 * std::sqrt(expected)));
  std::map<std::uint32_t, double> to;
  std::map<std::uint32_t, double> from;
  for (const auto& [at, messages] : incasts) {
    CHECK(Picos{at} < w.window);
    REQUIRE(messages.size() == 6);
    std::set<std::uint32_t> senders;
    for (const PlannedMessage& m : messages) {
      CHECK(m.dst == messages.front().dst);
      CHECK(m.src != m.dst);
      CHECK(m.lane == kNoMessage);
      senders.insert(m.src);
      from[m.src] += 1;
    }
    CHECK(senders.size() == 6);
    to[messages.front().dst] += 1;
  }
  const auto n = static_cast<double>(incasts.size());
  CHECK(to.size() == 8);
  for (const auto& [host, count] : to) CHECK(count == Approx(n / 8).margin(4 * std::sqrt(n / 8)));
  for (const auto& [host, count] : from) CHECK(count == Approx(n * 6 / 8).epsilon(0.1));
}

// Runs a plan in steps: a message goes when what it waits for has arrived. Returns how many rounds.
int rounds_to_finish(const MessagePlan& plan) {
  std::vector<bool> done(plan.messages.size());
  std::size_t left = plan.messages.size();
  int rounds = 0;
  while (left > 0) {
    std::vector<std::size_t> now;
    for (std::size_t i = 0; i < plan.messages.size(); ++i) {
      const std::uint32_t after = plan.messages[i].after;
      if (!done[i] && (after == kNoMessage || done[after])) now.push_back(i);
    }
    if (now.empty()) return -1;  // waits for itself
    for (const std::size_t i : now) done[i] = true;
    left -= now.size();
    ++rounds;
  }
  return rounds;
}

TEST_CASE("ring all-reduce: bytes, steps and dependencies", "[workload]") {
  for (const std::uint32_t hosts : {2U, 3U, 5U, 8U}) {
    for (const std::uint64_t bytes : {8ULL, 1'000ULL, 1'000'003ULL}) {
      INFO(hosts << " hosts, " << bytes << " bytes");
      config::WorkloadConfig w = workload("ring_all_reduce");
      w.chunk_bytes = 40'000;
      w.start_jitter = picos_from_micros(3);
      const std::vector<std::uint64_t> buckets{bytes};
      const MessagePlan plan = ring_all_reduce(w, buckets, hosts, 1);
      CHECK(is_sorted(plan));
      CHECK(plan.messages.size() == ring_message_count(w, buckets, hosts));
      // Each rank sends and receives 2(n-1)/n of the bucket, to a byte per step.
      std::vector<std::uint64_t> sent(hosts), received(hosts);
      for (const PlannedMessage& m : plan.messages) {
        CHECK(m.dst == (m.src + 1) % hosts);
        CHECK(m.bytes <= w.chunk_bytes);
        CHECK(m.bytes > 0);
        sent[m.src] += m.bytes;
        received[m.dst] += m.bytes;
        if (m.after != kNoMessage) {
          CHECK(plan.messages[m.after].dst == m.src);
          CHECK(plan.messages[m.after].bytes == m.bytes);  // the same chunk
        }
      }
      const std::uint64_t steps = 2 * (hosts - 1);
      std::uint64_t total = 0;
      for (std::uint32_t r = 0; r < hosts; ++r) {
        CHECK(sent[r] <= steps * (bytes / hosts + 1));
        CHECK(sent[r] >= steps * (bytes / hosts));
        total += sent[r];
      }
      CHECK(total == steps * bytes);
      CHECK(received == [&] {
        std::vector<std::uint64_t> from_left(hosts);
        for (std::uint32_t r = 0; r < hosts; ++r) from_left[(r + 1) % hosts] = sent[r];
        return from_left;
      }());
      CHECK(rounds_to_finish(plan) == static_cast<int>(steps));
    }
  }
}

TEST_CASE("ring all-reduce reduces: every rank ends with every rank's contribution", "[workload]") {
  // Symbolic run: contribution sets per (rank, segment); reduce-scatter adds, all-gather copies,
  // and both are a union of what arrives with what is there.
  constexpr std::uint32_t kHosts = 6;
  config::WorkloadConfig w = workload("ring_all_reduce");
  const std::vector<std::uint64_t> buckets{6'000};
  const MessagePlan plan = ring_all_reduce(w, buckets, kHosts, 1);
  REQUIRE(plan.messages.size() == kHosts * 2 * (kHosts - 1));
  const auto step_of = [&](std::size_t i) {
    int k = 0;
    for (std::uint32_t m = static_cast<std::uint32_t>(i); plan.messages[m].after != kNoMessage;
         ++k) {
      m = plan.messages[m].after;
    }
    return k;
  };
  std::vector<std::vector<std::set<std::uint32_t>>> has(
      kHosts, std::vector<std::set<std::uint32_t>>(kHosts));
  for (std::uint32_t r = 0; r < kHosts; ++r) {
    for (std::uint32_t s = 0; s < kHosts; ++s) has[r][s] = {r};
  }
  std::vector<std::vector<std::size_t>> by_step(2 * (kHosts - 1));
  for (std::size_t i = 0; i < plan.messages.size(); ++i) {
    by_step.at(static_cast<std::size_t>(step_of(i))).push_back(i);
  }
  for (std::size_t k = 0; k < by_step.size(); ++k) {
    const auto before = has;
    for (const std::size_t i : by_step[k]) {
      const PlannedMessage& m = plan.messages[i];
      const std::size_t segment = (m.src + 2 * kHosts - k) % kHosts;
      has[m.dst][segment].insert(before[m.src][segment].begin(), before[m.src][segment].end());
    }
  }
  for (const auto& rank : has) {
    for (const auto& segment : rank) CHECK(segment.size() == kHosts);
  }
}

TEST_CASE("ring all-reduce: at most so many buckets overlap", "[workload]") {
  config::WorkloadConfig w = workload("ring_all_reduce");
  const std::vector<std::uint64_t> buckets(6, 4'000);
  constexpr int kSteps = 6;
  w.buckets_in_flight = 6;
  CHECK(rounds_to_finish(ring_all_reduce(w, buckets, 4, 1)) == kSteps);
  w.buckets_in_flight = 1;
  CHECK(rounds_to_finish(ring_all_reduce(w, buckets, 4, 1)) == 6 * kSteps);
  w.buckets_in_flight = 2;
  CHECK(rounds_to_finish(ring_all_reduce(w, buckets, 4, 1)) == 3 * kSteps);
}

TEST_CASE("the gradients of Llama 3 70B add up to its parameters", "[workload]") {
  const std::vector<std::uint64_t> buckets = gradient_buckets(kLlama3_70b, 1.0);
  REQUIRE(buckets.size() == 82);
  std::uint64_t total = 0;
  for (const std::uint64_t b : buckets) total += b;
  CHECK(total == 2 * 70'553'706'496ULL);
  CHECK(buckets[1] == 2 * 855'654'400ULL);
  CHECK(buckets.front() > buckets.back());  // the output side has the last norm
  const std::vector<std::uint64_t> scaled = gradient_buckets(kLlama3_70b, 2048.0);
  CHECK(scaled[1] == 835'600);
  CHECK(find_model("llama3-70b") == &kLlama3_70b);
  CHECK(find_model("llama3") == nullptr);
}

TEST_CASE("a host's draws do not depend on the other hosts", "[workload]") {
  const std::vector<Picos> few = host_starts(picos_from_micros(20), 4, 9);
  const std::vector<Picos> many = host_starts(picos_from_micros(20), 400, 9);
  CHECK(std::equal(few.begin(), few.end(), many.begin()));
  CHECK(host_starts(Picos{0}, 2, 1) == std::vector<Picos>(2));
}

TEST_CASE("the same seed gives the same plan, everywhere", "[workload]") {
  // A change of these values changes every published result.
  config::WorkloadConfig w = workload("all_to_all");
  w.skew = 1;
  w.message_bytes = 1'000'000;
  w.start_jitter = picos_from_micros(20);
  w.fan_in = 31;
  w.scale = 2048;
  w.window = picos_from_micros(5'000);
  const std::vector<Rate> rates(32, rate_from_gbps(100));
  CHECK(digest(incast(w, 32, 1)) == 0xac3d9f641d9339ed);
  CHECK(digest(all_to_all(w, 32, 1)) == 0x2d170a09442cdcb0);
  CHECK(digest(all_to_all(w, 32, 2)) != digest(all_to_all(w, 32, 1)));
  CHECK(digest(permutation(w, 32, 1)) == 0x59d792d5d8bce3c6);
  CHECK(digest(open_loop(w, rates, web_search_cdf(), 1)) == 0x15354f2f72ccc202);
  CHECK(digest(ring_all_reduce(w, gradient_buckets(kLlama3_70b, 2048), 16, 1)) ==
        0x32b0d37a702571a4);
}

}  // namespace
}  // namespace paceline::workload
