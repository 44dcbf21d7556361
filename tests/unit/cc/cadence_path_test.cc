// The delay branch of Cadence's path loop, rule by rule.
#include <catch2/catch.hpp>

#include "cc/cadence/cadence.h"
#include "tests/unit/cc/cadence_params.h"

namespace paceline::cc {
namespace {

// A channel with a grant of 80 of 100 Gb/s and much to send.
struct Granted {
  CadenceParams p = cadence_params_100g();
  Cadence::State s{};
  Decision d{};
  std::int64_t now = 1'000'000;

  explicit Granted(std::uint32_t control_rtt_ns = 2000, std::uint32_t rate_mbps = 80'000) {
    event({.signal = Signal::start});
    event({.message_bytes = 100'000'000, .signal = Signal::message});
    UplinkShare share;
    share.rate_mbps = share.cap_mbps = 100'000;
    share.answers_start = true;
    event({.signal = Signal::share, .share = &share});
    GrantMessage g;
    g.grant_seq = 1;
    g.rate_mbps = rate_mbps;
    g.limit_total = 10'000'000;
    g.lease_us = 10'000;
    g.timestamp_echo_ns = static_cast<std::uint32_t>(now - control_rtt_ns);
    event({.signal = Signal::grant, .grant = &g});
  }
  void event(Event e) {
    e.now = Nanos{now};
    e.backlog_bytes = 100'000'000;
    Cadence::on_event(s, p, e, d);
  }
  void round_trip(std::int64_t ns) {
    event({.acked_bytes = 4096, .rtt_ns = static_cast<std::uint32_t>(ns), .signal = Signal::ack});
  }
  std::uint64_t mbps() const { return d.rate.bps / 1'000'000; }
};

TEST_CASE("cadence path: a round trip beyond the target cuts P once") {
  Granted w;
  const std::int64_t t = w.p.rtt_ns;
  w.round_trip(t);
  CHECK(w.mbps() == 80'000);
  w.round_trip(5 * t);  // four of them waited: the target itself
  CHECK(w.mbps() == 80'000);
  w.now += 10 * t;
  w.round_trip(10 * t);
  CHECK(w.mbps() == 56'000);
  CHECK(w.d.limiter == Limiter::path);
  const std::uint64_t cut = w.s.path_mbps;
  w.now += t / 2;
  w.round_trip(10 * t);  // sent before the cut
  CHECK(w.s.path_mbps == cut);
  w.now += 100 * t;  // P is C again
  w.round_trip(90 * t);
  CHECK(w.mbps() == 56'000);
}

TEST_CASE("cadence path: NAKs and timeouts cut P, once per T") {
  for (const Signal signal : {Signal::nack, Signal::timeout}) {
    Granted w;
    // After T it has grown by a twentieth of 80,000: 0.7 times 60,000.
    for (const std::uint64_t mbps : {56'000U, 56'000U, 42'000U}) {
      w.event({.lost_bytes = 4096, .signal = signal});
      CHECK(w.mbps() == mbps);
      w.now += w.p.rtt_ns / 2;
    }
  }
}

TEST_CASE("cadence path: hosts slower than T says lengthen the control messages' way, too") {
  const std::int64_t t = cadence_params_100g().rtt_ns;
  Granted slow(static_cast<std::uint32_t>(10 * t));
  slow.round_trip(14 * t);
  CHECK(slow.mbps() == 80'000);
  slow.now += 20 * t;
  slow.round_trip(16 * t);
  CHECK(slow.mbps() < 80'000);
}

TEST_CASE("cadence path: bytes under way are bounded by the present rate") {
  Granted w;
  const std::int64_t t = w.p.rtt_ns;
  w.round_trip(t);
  const std::uint64_t whole = bytes_at(80'000, t) + 2 * w.p.packet_bytes;
  CHECK(w.d.window_bytes == Approx(static_cast<double>(whole)).epsilon(0.001));
  w.now += 10 * t;
  w.round_trip(10 * t);
  const std::uint64_t part = bytes_at(56'000, t) + 2 * w.p.packet_bytes;
  CHECK(w.d.window_bytes == Approx(static_cast<double>(part)).epsilon(0.001));
}

// When many channels send to one port, each has one packet in flight, whatever it has to catch up.
TEST_CASE("cadence path: a narrow grant has one packet under way, and half a round trip's slack") {
  Granted w(2000, 3'200);
  w.round_trip(w.p.rtt_ns);
  const std::uint64_t window = bytes_at(3'200, w.p.rtt_ns) + bytes_at(3'200, w.p.rtt_ns / 2);
  CHECK(w.d.window_bytes == Approx(static_cast<double>(window)).epsilon(0.001));
  CHECK(w.d.window_bytes < w.p.packet_bytes);  // after a packet it is full
  Granted slowest(2000, 1);                    // Mb/s: half a byte in a round trip
  slowest.round_trip(slowest.p.rtt_ns);
  CHECK(slowest.d.window_bytes > 0);
}

TEST_CASE("cadence path: delay may be left alone") {
  Granted w;
  w.p.path_target_ns = 0;
  w.event({.signal = Signal::tick});
  w.now += 1'000'000;
  w.round_trip(w.p.rtt_ns);
  w.now += 1'000'000;
  w.round_trip(100 * w.p.rtt_ns);
  CHECK(w.mbps() == 80'000);
}

}  // namespace
}  // namespace paceline::cc
