// The uplink arbiter.
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "cc/cadence/cadence.h"
#include "cc/cadence/sender.h"
#include "dataplane/base/numbers/random.h"
#include "tests/unit/cc/cadence_params.h"

namespace paceline::cc {
namespace {

struct Arbiter {
  CadenceParams p = cadence_params_100g();
  CadenceSender g{p};
  std::int64_t now = 1'000'000;
  std::map<std::uint32_t, UplinkShare> newest;
  std::map<std::uint32_t, std::uint32_t> starts;
  unsigned announced = 0;

  void want(std::uint32_t context, UplinkWant w) { g.update(Nanos{now}, context, w); }
  void granted(std::uint32_t context, std::uint64_t mbps, std::uint8_t weight = 1) {
    const auto limit = static_cast<std::uint32_t>(mbps);
    want(context, {.limit_mbps = limit, .active = true, .weight = weight});
  }
  void poll() {
    std::array<ShareOutput, 3> out;  // small on purpose: poll must be called again
    for (;;) {
      const std::size_t n = g.poll(Nanos{now}, out);
      for (std::size_t i = 0; i < n; ++i) {
        newest[out[i].context] = out[i].share;
        if (out[i].share.answers_start) starts[out[i].context] += out[i].share.start_bytes;
        if (out[i].share.announce) ++announced;
      }
      if (n < out.size()) break;
    }
    CHECK(g.check_invariants(Nanos{now}).empty());
  }
  std::uint64_t share(std::uint32_t c) { return newest[c].rate_mbps; }
  std::uint64_t cap(std::uint32_t c) { return newest[c].cap_mbps; }
};

TEST_CASE("cadence arbiter: nothing is short, nobody is told") {
  Arbiter w;
  for (std::uint32_t c = 0; c < 4; ++c) w.granted(c, 20'000);
  w.poll();
  for (std::uint32_t c = 0; c < 4; ++c) CHECK(w.share(c) == 100'000);
}

TEST_CASE("cadence arbiter: max-min when grants exceed the uplink") {
  Arbiter w;
  w.granted(0, 10'000);
  for (std::uint32_t c = 1; c < 4; ++c) w.granted(c, 90'000);
  w.poll();
  const std::uint64_t level = (uplink_mbps(w.p) - 10'000) / 3;
  for (std::uint32_t c = 1; c < 4; ++c) CHECK(w.share(c) == Approx(double(level)).margin(2));
  CHECK(w.cap(1) == Approx(double(level)).margin(2));
  // Were context 0 unlimited, all four would share alike.
  CHECK(w.cap(0) == Approx(uplink_mbps(w.p) / 4.0).margin(2));
}

TEST_CASE("cadence arbiter: weights, where one has much left") {
  for (const bool bulk : {false, true}) {
    Arbiter w;
    w.want(0, {.limit_mbps = 100'000, .active = true, .bulk = bulk});
    w.granted(1, 100'000, 3);
    w.poll();
    CHECK(w.share(1) == Approx((bulk ? 3.0 : 1.0) * double(w.share(0))).epsilon(0.001));
  }
}

TEST_CASE("cadence arbiter: a class shares what higher ones leave, and a 64th at least") {
  Arbiter w;
  const auto of_class = [&w](std::uint32_t context, std::uint32_t mbps,
                             std::uint8_t traffic_class) {
    w.want(context, {.limit_mbps = mbps, .active = true, .traffic_class = traffic_class});
  };
  const double uplink = uplink_mbps(w.p);
  of_class(0, 60'000, 3);
  of_class(1, 90'000, 1);
  of_class(2, 90'000, 1);
  w.poll();
  CHECK(w.share(0) == 100'000);  // as much as it is granted
  CHECK(w.share(1) == Approx((uplink - 60'000) / 2).margin(2));
  CHECK(w.share(2) == w.share(1));
  CHECK(w.cap(0) == Approx(uplink).margin(2));  // others of its class alone would bound it
  w.now += 10 * std::int64_t{w.p.alloc_ns};
  of_class(3, 90'000, 3);
  w.poll();
  CHECK(w.share(0) == Approx(uplink / 2).margin(2));
  CHECK(w.share(3) == Approx(uplink / 2).margin(2));
  CHECK(w.share(1) == Approx(uplink / 128).margin(2));
  // A higher class than all: it alone has the uplink.
  w.now += 10 * std::int64_t{w.p.alloc_ns};
  of_class(4, 100'000, 6);
  w.poll();
  CHECK(w.share(4) == Approx(uplink).margin(2));
  CHECK(w.share(0) == Approx(uplink / 128).margin(2));
  CHECK(w.share(1) == Approx(uplink / 128).margin(2));
}

TEST_CASE("cadence arbiter: the cap of a limited context is its exact share were it unlimited") {
  Arbiter w;
  w.granted(0, 10'000);
  w.granted(1, 88'000);
  w.poll();
  CHECK(w.cap(0) == Approx(uplink_mbps(w.p) / 2.0).margin(2));  // 1 would be squeezed
  CHECK(w.cap(1) == Approx(uplink_mbps(w.p) - 10'000.0).margin(2));
}

TEST_CASE("cadence arbiter: announcements only where the cap matters, and spaced") {
  Arbiter w;
  w.want(0, {.start_bytes = 4170, .asks_start = true, .active = true, .awaits_grant = true});
  w.poll();
  w.granted(0, 20'000);  // far below the cap it announced
  w.now += 10 * w.p.rtt_ns;
  w.poll();
  w.newest.clear();
  w.granted(1, 30'000);
  w.now += 10 * w.p.rtt_ns;
  w.poll();
  CHECK_FALSE(w.newest[0].announce);  // its cap fell from 98 to 68 Gb/s, no matter
  // Now the cap falls below the grant.
  for (std::uint32_t c = 2; c < 12; ++c) w.granted(c, 90'000);
  w.now += 10 * w.p.rtt_ns;
  w.poll();
  CHECK(w.newest[0].announce);
  const unsigned after = w.announced;
  w.poll();
  CHECK(w.announced == after);
}

TEST_CASE("cadence arbiter: one start gets what it asks, up to one BDP per round trip") {
  Arbiter w;
  w.want(0, {.start_bytes = 50'000, .asks_start = true});
  w.poll();
  CHECK(w.starts[0] == 50'000);
  w.want(0, {});
  w.want(1, {.start_bytes = 50'000, .asks_start = true});
  w.poll();
  CHECK(w.starts[1] <= w.p.bdp_bytes - 50'000);
  w.want(1, {});
  w.now += w.p.rtt_ns;
  w.want(2, {.start_bytes = 50'000, .asks_start = true});
  w.poll();
  CHECK(w.starts[2] == 50'000);
}

TEST_CASE("cadence arbiter: starts of one poll share the room in whole packets, and take turns") {
  Arbiter w;
  for (std::uint32_t c = 0; c < 31; ++c) {
    w.want(c, {.start_bytes = 40'000, .asks_start = true, .active = true, .awaits_grant = true});
  }
  w.poll();
  std::uint64_t total = 0;
  unsigned served = 0;
  for (std::uint32_t c = 0; c < 31; ++c) {
    REQUIRE(w.newest.count(c) == 1);  // zero is an answer, too
    CHECK(w.starts[c] <= w.p.packet_bytes);
    total += w.starts[c];
    served += w.starts[c] > 0 ? 1 : 0;
  }
  CHECK(total <= w.p.bdp_bytes);
  CHECK(total > w.p.bdp_bytes - w.p.packet_bytes);
  CHECK(served == w.p.bdp_bytes / w.p.packet_bytes);
  // Next time the others come first.
  std::map<std::uint32_t, std::uint32_t> first = w.starts;
  w.now += 10 * w.p.rtt_ns;
  for (std::uint32_t c = 0; c < 31; ++c) w.want(c, {});
  for (std::uint32_t c = 0; c < 31; ++c) {
    w.want(c, {.start_bytes = 40'000, .asks_start = true, .active = true, .awaits_grant = true});
  }
  w.poll();
  unsigned twice = 0;
  for (std::uint32_t c = 0; c < 31; ++c) twice += first[c] > 0 && w.starts[c] > first[c] ? 1 : 0;
  CHECK(twice == 0);
  CHECK(w.cap(0) == Approx(uplink_mbps(w.p) / 31.0).margin(2));  // they count as unlimited
}

TEST_CASE("cadence arbiter: a cap that drifts is announced at every eighth") {
  Arbiter w;
  w.granted(0, 90'000);
  w.granted(1, 20'000);
  w.poll();
  const unsigned before = w.announced;
  // The other one takes 20 to 49 Gb/s, a little more each time: the cap falls from 78 to 49 Gb/s.
  for (std::uint32_t other = 20'000; other <= 49'000; other += 500) {
    w.now += 2 * w.p.rtt_ns;
    w.granted(1, other);
    w.poll();
  }
  CHECK(w.announced - before == 3);
}

TEST_CASE("cadence arbiter: shares stay max-min and feasible under random changes", "[property]") {
  const std::uint64_t seed = 20240731;
  INFO("seed " << seed);
  Random random(seed);
  Arbiter w;
  std::vector<std::uint64_t> limit(40, 0);
  for (int round = 0; round < 2000; ++round) {
    const auto c = static_cast<std::uint32_t>(random.below(limit.size()));
    limit[c] = random.below(3) == 0 ? 0 : 1 + random.below(100'000);
    if (limit[c] == 0) {
      w.want(c, {});
    } else {
      w.granted(c, limit[c]);
    }
    if (random.below(50) == 0) w.g.forget(Nanos{w.now}, c), limit[c] = 0;
    w.now += static_cast<std::int64_t>(random.below(4000));
    w.poll();
    if (w.g.next_wake().count > w.now) {
      w.now = std::max(w.now, w.g.next_wake() == kNeverNanos ? w.now : w.g.next_wake().count);
      w.poll();
    }
  }
}

// Whatever came before: a context that is alone with the uplink gets its receiver to grant what it
// has room for. The receiver here gives what was asked up to the cap it heard last, and hears it
// with every REQUEST, of which some have nothing to do with caps.
TEST_CASE("cadence arbiter: no context is left with a cap of the past", "[property]") {
  constexpr std::uint64_t kAsked = 60'000;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Arbiter w;
    std::map<std::uint32_t, std::uint64_t> told, limit;
    const auto poll = [&] {
      w.newest.clear();
      w.poll();
      for (const auto& [context, share] : w.newest) {
        told[context] = share.cap_mbps;
      }
      for (auto& [context, mbps] : limit) {
        const std::uint64_t granted = std::min(mbps, told[context]);
        if (granted > 0) w.granted(context, granted);
      }
    };
    for (int round = 0; round < 60; ++round) {
      const auto c = static_cast<std::uint32_t>(random.below(8));
      if (limit[c] == 0) {
        w.want(c, {.asks_start = true, .active = true, .awaits_grant = true});
        poll();
        limit[c] = random.below(4) == 0 ? kAsked : 1 + random.below(20'000);
      } else if (random.below(3) == 0) {
        limit[c] = 1 + random.below(60'000);
      } else {
        limit[c] = 0;
        w.want(c, {});
      }
      w.now += static_cast<std::int64_t>(random.below(2 * static_cast<std::uint64_t>(w.p.rtt_ns)));
      poll();
    }
    for (std::uint32_t c = 1; c < 8; ++c) {
      limit[c] = 0;
      w.want(c, {});
    }
    if (limit[0] == 0) w.want(0, {.asks_start = true, .active = true, .awaits_grant = true});
    poll();
    limit[0] = kAsked;
    for (int round = 0; round < 20; ++round) {
      w.now += 2 * w.p.rtt_ns;
      poll();
    }
    CHECK(std::min(limit[0], told[0]) == kAsked);
  }
}

}  // namespace
}  // namespace paceline::cc
