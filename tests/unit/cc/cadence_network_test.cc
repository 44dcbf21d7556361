// Cadence as a whole, on the small network of cadence_world.h: what it promises for incast, joins,
// two-sided bottlenecks, losses and deaths. Bounds have reasons; exact traces are not asserted.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "dataplane/base/numbers/distributions.h"
#include "dataplane/base/numbers/jain.h"
#include "dataplane/base/numbers/math.h"
#include "tests/unit/cc/cadence_world.h"

namespace paceline::cc::test {
namespace {

std::int64_t last_finish(const World& w) {
  std::int64_t last = 0;
  for (const Flow& f : w.flows()) last = std::max(last, f.finish_ns);
  return last;
}

double efficiency(const World& w) { return w.ideal_ns() / static_cast<double>(last_finish(w)); }

void post_incast(World& w, std::uint32_t senders, std::uint64_t bytes) {
  for (std::uint32_t i = 0; i < senders; ++i) w.post(i, senders, bytes, 0);
}

// Mean bytes per pair, destination weights exp(skew * z), row totals equal, 20 us start jitter.
void post_all_to_all(World& w, std::uint32_t hosts, double skew, double mean, std::uint64_t seed) {
  Random random(seed, 7);
  std::vector<double> weight;
  for (std::uint32_t i = 0; i < hosts; ++i)
    weight.push_back(det_exp(skew * standard_normal(random)));
  for (std::uint32_t s = 0; s < hosts; ++s) {
    double sum = 0;
    for (std::uint32_t d = 0; d < hosts; ++d) sum += d == s ? 0 : weight[d];
    const auto start = static_cast<std::int64_t>(random.below(20'000));
    for (std::uint32_t d = 0; d < hosts; ++d) {
      if (d == s) continue;
      const double bytes = mean * (hosts - 1) * weight[d] / sum;
      w.post(s, d, std::max<std::uint64_t>(1, static_cast<std::uint64_t>(bytes)), start);
    }
  }
}

TEST_CASE("cadence network: 32 to 1 incast of 10 MB each") {
  WorldOptions o;
  World w(o);
  post_incast(w, 32, 10'000'000);
  w.watch(32, 200'000, 20'000'000);
  const bool done = w.run(60'000'000);
  INFO(w.violation());
  REQUIRE(done);
  // eta 0.98, less the control messages on the downlink.
  CHECK(efficiency(w) >= 0.96);
  // The starts, one packet each, and nothing on top of them.
  CHECK(w.peak_queue(32) <= 32 * w.params().packet_bytes + w.params().bdp_bytes / 2);
  CHECK(w.watched_average() < 60'000);
  CHECK(static_cast<double>(w.control_bytes()) < 0.01 * static_cast<double>(w.data_bytes()));
  std::vector<double> times;
  for (const Flow& f : w.flows()) times.push_back(static_cast<double>(f.finish_ns));
  CHECK(*std::min_element(times.begin(), times.end()) >
        0.93 * *std::max_element(times.begin(), times.end()));
}

TEST_CASE("cadence network: joins cause no transient overload") {
  WorldOptions o;
  o.hosts = 9;
  World w(o);
  for (std::uint32_t i = 0; i < 8; ++i) w.post(i, 8, 6'000'000, 200'000 * i);
  const bool done = w.run(20'000'000);
  INFO(w.violation());
  REQUIRE(done);
  // Each join brings one start packet; packets of 8 paced senders can coincide.
  CHECK(w.peak_queue(8) <= (8 + 8) * w.params().packet_bytes);
  CHECK(w.ideal_ns() / static_cast<double>(last_finish(w)) > 0.93);
}

TEST_CASE("cadence network: two-sided bottlenecks reach max-min shares") {
  // Host 0 sends to 4, 5 and 6; hosts 1, 2 and 3 send to 4. Port 4 has four senders and gives each
  // a quarter; host 0 has three quarters left for 5 and 6.
  WorldOptions o;
  o.hosts = 7;
  World w(o);
  w.post(0, 4, 100'000'000, 0);
  w.post(0, 5, 100'000'000, 0);
  w.post(0, 6, 100'000'000, 0);
  for (std::uint32_t s = 1; s <= 3; ++s) w.post(s, 4, 100'000'000, 0);
  w.run_to(1'000'000);
  const std::uint64_t before4 = w.delivered(0, 4), before5 = w.delivered(0, 5);
  const std::uint64_t before1 = w.delivered(1, 4);
  w.run_to(2'000'000);
  REQUIRE(w.violation() == "");
  const double payload = 4096.0 / 4170 * 12'500'000;  // bytes per ms at link rate
  CHECK(static_cast<double>(w.delivered(0, 4) - before4) == Approx(payload / 4).epsilon(0.06));
  CHECK(static_cast<double>(w.delivered(1, 4) - before1) == Approx(payload / 4).epsilon(0.06));
  CHECK(static_cast<double>(w.delivered(0, 5) - before5) == Approx(payload * 3 / 8).epsilon(0.06));
}

TEST_CASE("cadence network: a channel limited by its sender leaves the port to others") {
  // Host 0 sends to 2..5 (a quarter of its uplink each); host 1 sends to 2 and gets the rest.
  WorldOptions o;
  o.hosts = 6;
  World w(o);
  for (std::uint32_t d = 2; d <= 5; ++d) w.post(0, d, 100'000'000, 0);
  w.post(1, 2, 100'000'000, 0);
  w.run_to(1'000'000);
  const std::uint64_t before = w.delivered(1, 2);
  w.run_to(2'000'000);
  REQUIRE(w.violation() == "");
  const double payload = 4096.0 / 4170 * 12'500'000;
  CHECK(static_cast<double>(w.delivered(1, 2) - before) > 0.68 * payload);
}

TEST_CASE("cadence network: skewed all-to-all on 32 hosts", "[slow]") {
  for (const double skew : {0.0, 1.0, 2.0}) {
    for (const std::uint64_t seed : {1U, 2U}) {
      CAPTURE(skew, seed);
      WorldOptions o;
      o.hosts = 32;
      World w(o);
      post_all_to_all(w, 32, skew, 500'000, seed);
      const bool done = w.run(100'000'000);
      INFO(w.violation());
      REQUIRE(done);
      // eta 0.995, ACKs 2 %, control 0.8 %, and 20 us of jitter on at least 1.3 ms.
      CHECK(efficiency(w) >= (skew == 0 ? 0.93 : 0.965));
      CHECK(w.peak_queue() < 400'000);
      // control_share, and a 32nd of the 8 % that idle.
      CHECK(static_cast<double>(w.control_bytes()) < 0.0125 * static_cast<double>(w.data_bytes()));
    }
  }
}

TEST_CASE("cadence network: short messages leave at line rate at once") {
  WorldOptions o;
  o.hosts = 4;
  World w(o);
  const std::size_t small = w.post(0, 3, 2'000, 0);
  const std::size_t most = w.post(1, 3, 40'000, 100'000);
  const bool done = w.run(1'000'000);
  REQUIRE(done);
  for (const std::size_t id : {small, most}) {
    const Flow& f = w.flows()[id];
    CHECK(static_cast<double>(f.finish_ns - f.start_ns) < 1.02 * w.base_ns(f.bytes) + 100);
  }
}

TEST_CASE("cadence network: short messages keep their slowdown beside bulk transfers") {
  WorldOptions o;
  o.hosts = 10;
  World w(o);
  for (std::uint32_t s = 0; s < 4; ++s) w.post(s, 9, 20'000'000, 0);
  std::vector<std::size_t> shorts;
  for (int i = 0; i < 200; ++i) {
    shorts.push_back(
        w.post(4 + static_cast<std::uint32_t>(i) % 5, 9, 20'000, 200'000 + i * 20'000));
  }
  const bool done = w.run(40'000'000);
  INFO(w.violation());
  REQUIRE(done);
  double worst = 0;
  for (const std::size_t id : shorts) {
    const Flow& f = w.flows()[id];
    worst = std::max(worst, static_cast<double>(f.finish_ns - f.start_ns) / w.base_ns(f.bytes));
  }
  CHECK(worst < 5);
  CHECK(w.peak_queue(9) < 200'000);
}

TEST_CASE("cadence network: 30 % of control messages lost, and reordered") {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    INFO("seed " << seed);
    WorldOptions o;
    o.hosts = 17;
    o.control_loss = 0.3;
    o.control_jitter_ns = 3000;
    o.seed = seed;
    World w(o);
    post_incast(w, 16, 3'000'000);
    for (std::uint32_t s = 0; s < 16; ++s) {
      w.post(s, (s + 5) % 16, 700'000, 400'000);
      w.post(s, (s + 3) % 16, 30'000, 500'000);
    }
    const bool done = w.run(60'000'000);
    INFO(w.violation());
    REQUIRE(done);
    // A lost control message costs capacity, never order: no more queue than starts and phases.
    CHECK(w.peak_queue() < 300'000);
    CHECK(efficiency(w) > 0.7);
  }
}

TEST_CASE("cadence network: the receiver dies, the senders decay to the fallback") {
  WorldOptions o;
  o.hosts = 5;
  World w(o);
  post_incast(w, 4, 50'000'000);
  w.kill(4, 500'000);
  w.run_to(500'000);
  REQUIRE(w.context(0, 4).phase == Cadence::Phase::granted);
  std::uint64_t previous = w.decision(0, 4).rate.bps;
  for (std::int64_t t = 500'000; t < 1'600'000; t += 1'000) {
    w.run_to(t);
    const std::uint64_t rate = w.decision(0, 4).rate.bps;
    REQUIRE(rate <= previous);
    previous = rate;
  }
  for (std::uint32_t s = 0; s < 4; ++s) {
    CHECK(w.decision(s, 4).fallback);
    CHECK(w.decision(s, 4).rate == rate_from_mbps(w.params().fallback_mbps));
  }
}

TEST_CASE("cadence network: a sender dies, its share comes back after its lease") {
  WorldOptions o;
  o.hosts = 3;
  World w(o);
  w.post(0, 2, 50'000'000, 0);
  w.post(1, 2, 50'000'000, 0);
  w.kill(0, 300'000);
  w.run_to(300'000);
  CHECK(w.receiver(2).snapshot().active == 2);
  w.run_to(1'500'000);
  REQUIRE(w.violation() == "");
  const std::uint64_t before = w.delivered(1, 2);
  w.run_to(2'500'000);
  CHECK(w.receiver(2).snapshot().active == 1);
  CHECK(static_cast<double>(w.delivered(1, 2) - before) > 0.94 * 4096 / 4170 * 12'500'000);
}

TEST_CASE("cadence network: more channels than the active set all finish, in rotation") {
  WorldOptions o;
  o.hosts = 41;
  std::vector<double> values;
  for (const ParamSpec& spec : cadence_param_specs()) {
    values.push_back(spec.name == "a_max" ? 8 : spec.default_value);
  }
  o.params = values;
  World w(o);
  post_incast(w, 40, 2'000'000);
  const bool done = w.run(40'000'000);
  INFO(w.violation());
  REQUIRE(done);
  CHECK(efficiency(w) > 0.85);
  CHECK(w.peak_queue(40) <= 41 * w.params().packet_bytes + w.params().bdp_bytes / 2);
}

TEST_CASE("cadence network: random traffic with losses breaks no invariant", "[property]") {
  for (const std::uint64_t seed : {11U, 12U, 13U, 14U}) {
    INFO("seed " << seed);
    Random random(seed);
    WorldOptions o;
    o.hosts = 8;
    o.seed = seed;
    o.control_loss = static_cast<double>(random.below(40)) / 100;
    o.control_jitter_ns = static_cast<std::int64_t>(random.below(10'000));
    World w(o);
    for (int i = 0; i < 300; ++i) {
      const auto s = static_cast<std::uint32_t>(random.below(8));
      const auto d = static_cast<std::uint32_t>((s + 1 + random.below(7)) % 8);
      const std::uint64_t bytes = 1 + random.below(std::uint64_t{1} << (4 + random.below(18)));
      w.post(s, d, bytes, static_cast<std::int64_t>(random.below(3'000'000)));
    }
    const bool done = w.run(100'000'000);
    INFO(w.violation());
    CHECK(done);
  }
}

TEST_CASE("cadence network: the same seed gives the same run") {
  std::vector<std::int64_t> first;
  for (int round = 0; round < 2; ++round) {
    WorldOptions o;
    o.hosts = 9;
    o.control_loss = 0.2;
    World w(o);
    post_all_to_all(w, 9, 1, 200'000, 5);
    REQUIRE(w.run(50'000'000));
    std::vector<std::int64_t> times;
    for (const Flow& f : w.flows()) times.push_back(f.finish_ns);
    if (round == 0) first = times;
    if (round == 1) CHECK(first == times);
  }
}

}  // namespace
}  // namespace paceline::cc::test
