// Worlds under a clock, with clocks that do as they are told: nothing here depends on the machine.
#include <catch2/catch.hpp>
#include <vector>

#include "dataplane/port/capture/capture.h"
#include "tests/unit/driver/driver_support.h"
#include "tests/unit/driver/scripted_clock.h"

namespace paceline {
namespace {

// Four to one at 1 Gb/s and 100 us a link, all marked and paused about as real switches do.
config::Scenario slow_star(const char* algorithm) {
  config::Scenario s = quiet_star(5);
  s.fabric.rate = rate_from_gbps(1);
  s.fabric.delay = picos_from_micros(100);
  s.fabric.ecn.kmin_bytes = 20'000;
  s.fabric.ecn.kmax_bytes = 80'000;
  s.transport.payload_bytes = 1024;
  s.cc.algorithm = algorithm;
  return s;
}

MessagePlan four_to_one(std::uint64_t bytes) {
  MessagePlan plan;
  for (std::uint32_t src = 1; src <= 4; ++src) {
    plan.messages.push_back({.src = src, .dst = 0, .bytes = bytes, .start = Picos{src * 1000}});
  }
  return plan;
}

WorldOptions under(WallClock& clock, OnStop on_stop = OnStop::run_on) {
  WorldOptions options = checked();
  options.real_time.clock = &clock;
  options.real_time.on_stop = on_stop;
  return options;
}

TEST_CASE("real time: with a machine that is never late, the results are those of virtual time",
          "[real_time]") {
  for (const char* algorithm : {"fixed", "dcqcn", "cadence"}) {
    INFO(algorithm);
    config::Scenario s = slow_star(algorithm);
    s.fabric.loss = 0.002;
    VirtualWorld virtual_world(s, four_to_one(400'000), checked());
    REQUIRE(virtual_world.run() == RunEnd::completed);
    ExactClock clock;
    WorldOptions options = under(clock);
    options.real_time.transmit_ahead = Picos{0};
    VirtualWorld world(s, four_to_one(400'000), options);
    CHECK(world.run() == RunEnd::completed);
    CHECK(world.trace_hash() == virtual_world.trace_hash());
    CHECK(world.now() == virtual_world.now());
    CHECK(world.real_time().lateness_ns.max() == 0);
    CHECK(world.real_time().late.count == 0);
    CHECK(world.real_time().stop_count == 0);
    CHECK(world.real_time().credible());
    CHECK(virtual_world.real_time().turns == 0);
  }
}

TEST_CASE("real time: a restless machine breaks no law", "[real_time]") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    const char* const algorithms[] = {"fixed", "dcqcn", "cadence"};
    config::Scenario s = slow_star(algorithms[seed % 3]);
    s.seed = seed;
    s.fabric.loss = 0.001;
    s.fabric.reorder = 0.01;
    s.fabric.duplicate = 0.01;
    s.fabric.corrupt = 0.001;
    s.fabric.buffer_bytes = 240'000;  // little: pauses
    s.fabric.queued_when_down = seed % 2 == 0 ? "keep" : "drop";
    const auto event = [&s](std::int64_t at_us, const char* action) {
      config::EventConfig e;
      e.at = picos_from_micros(at_us);
      e.links = {1 + static_cast<std::uint32_t>(at_us / 1000) % 4};
      e.action = action;
      e.rate = rate_from_mbps(400);
      e.delay = picos_from_micros(50);
      s.events.push_back(e);
    };
    event(3000, "down");
    event(5000, "delay");
    event(7000, "up");
    event(9000, "rate");
    RestlessClock::Habits habits;
    habits.stops = 0.01;
    if (seed % 4 == 0) habits.oversleep = picos_from_micros(300);
    RestlessClock clock(seed, habits);
    VirtualWorld world(s, four_to_one(300'000),
                       under(clock, seed % 2 == 0 ? OnStop::run_on : OnStop::hold));
    CHECK(world.run() == RunEnd::completed);
    INFO(world.problem());
    CHECK(world.messages_failed() == 0);
    CHECK(world.real_time().lateness_ns.max() > 0);
    CHECK(world.real_time().stop_count > 0);
  }
}

// When the last bit of each packet arrives at the far end of a link, outbound or inbound.
class ArrivalTimes final : public LinkTap {
 public:
  void show(Picos now, bool forward, const Packet& packet) override {
    if (!forward && packet.payload_bytes != 0) at.push_back({now, packet.wire_bytes});
  }
  void settle(Fate, const char*) override {}
  struct Arrival {
    Picos at;
    std::uint32_t bytes;
  };
  std::vector<Arrival> at;
};

TEST_CASE("real time: a switch that is worked off late has sent at its own time", "[real_time]") {
  config::Scenario s = slow_star("fixed");
  s.fabric.pfc.enabled = false;
  s.fabric.ecn.enabled = false;
  RestlessClock::Habits habits;
  habits.oversleep = picos_from_micros(60);
  habits.stops = 0;
  RestlessClock clock(7, habits);
  WorldOptions options = under(clock);
  ArrivalTimes tap;
  options.taps = {{0, &tap}};  // of the receiver
  VirtualWorld world(s, four_to_one(500'000), options);
  REQUIRE(world.run() == RunEnd::completed);
  // Twice as much comes in as goes out: until the last sender is done the wire is never free.
  REQUIRE(tap.at.size() > 1900);
  std::size_t off = 0;
  for (std::size_t i = 101; i < 1600; ++i) {
    if (tap.at[i].at - tap.at[i - 1].at != Picos{tap.at[i].bytes * 8000}) ++off;
  }
  CHECK(off == 0);
}

TEST_CASE("real time: stops are counted, and held ones are not part of time", "[real_time]") {
  RestlessClock::Habits habits;
  habits.work = Picos{2};
  habits.oversleep = Picos{2};
  habits.stops = 0.01;
  for (const OnStop on_stop : {OnStop::run_on, OnStop::hold}) {
    RestlessClock clock(3, habits);
    VirtualWorld world(slow_star("dcqcn"), four_to_one(500'000), under(clock, on_stop));
    REQUIRE(world.run() == RunEnd::completed);
    const RealTimeReport& report = world.real_time();
    INFO("stops " << report.stop_count << " of " << clock.stops());
    // Stops shorter than the threshold, a fortieth of the longest, do not count.
    CHECK(report.stop_count > clock.stops() * 9 / 10);
    CHECK(report.stop_count <= clock.stops());
    CHECK(report.stops.size() == report.stop_count);
    CHECK(report.longest_stop <= habits.stop + Picos{10});
    for (const HostStop& stop : report.stops) {
      CHECK(report.stopped_within(stop.begin, stop.end + Picos{1}));
      CHECK(stop.end <= world.now());
    }
    const std::int64_t rest = (report.elapsed - world.now()).count;
    if (on_stop == OnStop::hold) {
      // The world's time is what the clock showed, less the stops.
      CHECK(std::abs(rest - report.stopped.count) < 1'000'000);
      CHECK(report.lateness_ns.max() <= 100'000);
    } else {
      CHECK(std::abs(rest) < 1'000'000);
      CHECK(report.lateness_ns.max() > 1'000'000);
      CHECK_FALSE(report.credible());
      CHECK(report.late <= report.stopped);
    }
  }
}

TEST_CASE("real time: which stretches a stop touches", "[real_time]") {
  RealTimeReport report;
  CHECK_FALSE(report.stopped_within(Picos{0}, kNever));
  report.stops = {{Picos{100}, Picos{200}}, {Picos{500}, Picos{500}}};
  CHECK_FALSE(report.stopped_within(Picos{0}, Picos{100}));
  CHECK(report.stopped_within(Picos{0}, Picos{101}));
  CHECK(report.stopped_within(Picos{150}, Picos{160}));
  CHECK(report.stopped_within(Picos{200}, Picos{300}));
  CHECK_FALSE(report.stopped_within(Picos{201}, Picos{500}));
  CHECK(report.stopped_within(Picos{201}, Picos{501}));
  CHECK_FALSE(report.stopped_within(Picos{501}, Picos{900}));
}

TEST_CASE("real time: looks come at their time, with the fabric as it stood then", "[real_time]") {
  RestlessClock::Habits habits;
  habits.oversleep = picos_from_micros(40);
  RestlessClock clock(5, habits);
  WorldOptions options = under(clock);
  std::vector<Picos> looks;
  options.sample_interval = picos_from_micros(10);
  VirtualWorld* running = nullptr;
  options.sample = [&](const VirtualWorld& world, Picos at) {
    CHECK(world.now() == at);
    looks.push_back(at);
    CHECK(running->network().queue_bytes(1, at) < 10'000'000);
  };
  VirtualWorld world(slow_star("dcqcn"), four_to_one(100'000), options);
  running = &world;
  REQUIRE(world.run() == RunEnd::completed);
  REQUIRE(looks.size() > 100);
  for (std::size_t i = 0; i < looks.size(); ++i) {
    CHECK(looks[i] == picos_from_micros(10) * static_cast<std::int64_t>(i + 1));
  }
}

TEST_CASE("real time: ends at the stated duration, on a stop from outside, and by max_hops",
          "[real_time]") {
  config::Scenario s = slow_star("fixed");
  s.duration = picos_from_micros(5'000);
  RestlessClock clock(1, {});
  VirtualWorld timed(s, four_to_one(100'000'000), under(clock));
  CHECK(timed.run() == RunEnd::duration);
  CHECK(timed.now() == picos_from_micros(5'000));

  const std::atomic<bool> stop = true;
  WorldOptions options = under(clock);
  options.stop = &stop;
  VirtualWorld stopped(slow_star("fixed"), four_to_one(1000), options);
  CHECK(stopped.run() == RunEnd::stopped);

  s.max_hops = 100;
  VirtualWorld limited(s, four_to_one(100'000'000), under(clock));
  CHECK(limited.run() == RunEnd::hop_limit);

  VirtualWorld stalled(slow_star("fixed"),
                       plan_of({{.src = 0, .dst = 1, .bytes = 10, .after = 1},
                                {.src = 1, .dst = 0, .bytes = 10, .after = 0}}),
                       under(clock));
  CHECK(stalled.run() == RunEnd::stalled);

  options = under(clock);
  options.threads = 2;
  VirtualWorld shared(slow_star("fixed"), four_to_one(1000), options);
  CHECK(shared.threads() == 1);
  CHECK(shared.one_thread_because() == "the clock is read by one thread");
}

}  // namespace
}  // namespace paceline
