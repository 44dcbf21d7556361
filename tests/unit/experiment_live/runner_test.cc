#include "control/experiment/live/runner.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/experiment_live/synthetic.h"

using namespace paceline;
using namespace paceline::experiment::live;
using namespace paceline::experiment::live::test;
using Kind = Action::Kind;

namespace {

// A world that obeys: time passes when asked to wait, messages complete with the arm's slowdown.
class Plant {
 public:
  Plant(Plan plan, double candidate_gain, std::vector<BlockRecord> stored = {})
      : runner(plan, make_schedule(plan), std::move(stored), true), gain_(candidate_gain) {}

  // Until `stop(action)` says so, or the end; returns that action.
  template <class Stop>
  Action run(Stop stop) {
    for (int steps = 0; steps < 100'000; ++steps) {
      const Action a = runner.next(now);
      if (stop(a) || a.kind == Kind::done) return a;
      obey(a);
    }
    FAIL("the runner does not end");
    return {};
  }
  Action run() {
    return run([](const Action&) { return false; });
  }

  void obey(const Action& a) {
    switch (a.kind) {
      case Kind::use_arms:
        arms = a.arms;
        epoch = a.epoch;
        runner.armed(now);
        break;
      case Kind::wait:
        REQUIRE(a.until_ns > now);
        now = a.until_ns;
        break;
      case Kind::sample:
        runner.sampled(samples());
        break;
      case Kind::record:
        for (const BlockRecord& r : a.records) stored.push_back(r);
        runner.recorded();
        break;
      case Kind::pause:
        ++pauses;
        arms = a.arms;
        runner.environment(true, "");
        break;
      case Kind::conclude:
        runner.concluded();
        break;
      case Kind::done:
        break;
    }
  }

  std::vector<Runner::EdgeSample> samples() {
    std::vector<Runner::EdgeSample> out;
    for (std::size_t c = 0; c < arms.size(); ++c) {
      NicSample s;
      s.nic = "n" + std::to_string(c);
      s.at_ns = now;
      s.epoch = epoch;
      s.arm = arms[c];
      s.rate_bps = 100'000'000'000;
      s.channels = 8;
      // 1,000 messages in every period between edges, at this arm's slowdown.
      const double chance = 0.05 * standard_normal(random_);
      const double log2 = 1.5 + chance - (arms[c] != 0 ? gain_ : 0);
      telemetry::MessageFigures& m = totals_[c][0];
      m.begun += 1000;
      m.begun_bytes += 1000 * 250'000;
      m.completed += 1000;
      m.completed_bytes += 1000 * 250'000;
      m.log2_slowdown += static_cast<std::uint64_t>(1000 * log2 * telemetry::kLogUnit);
      m.slowdown[static_cast<std::size_t>(log2 * 8)] += 1000;
      s.messages = totals_[c];
      out.push_back({{s}, 0, {}});
    }
    return out;
  }

  Runner runner;
  std::uint64_t now = 1'000;
  std::vector<std::uint8_t> arms;
  std::uint8_t epoch = 0;
  std::vector<BlockRecord> stored;
  int pauses = 0;

 private:
  double gain_;
  Random random_{1};
  std::array<telemetry::MessagesBySize, 8> totals_{};
};

std::size_t discarded(const std::vector<BlockRecord>& records) {
  return static_cast<std::size_t>(std::count_if(
      records.begin(), records.end(), [](const auto& r) { return r.discarded != Discarded::no; }));
}

}  // namespace

TEST_CASE("a run: arms, wash-out, edge, block, edge, record; it ends when enough is shown") {
  Plant plant(switchback_plan(60), 0.3);
  const Schedule& schedule = plant.runner.schedule();
  std::uint64_t armed = 0;
  int samples = 0;
  const Action end = plant.run([&](const Action& a) {
    if (a.kind == Kind::use_arms) {
      CHECK(a.arms[0] == schedule.arm(a.block, 0));
      CHECK(a.epoch == Schedule::epoch(a.block));
      armed = plant.now;
      samples = 0;
    } else if (a.kind == Kind::sample) {
      CHECK(plant.now == armed + (samples == 0 ? schedule.washout_ns : schedule.block_ns));
      ++samples;
    } else if (a.kind == Kind::record) {
      CHECK(samples == 2);
    }
    return a.kind == Kind::conclude;
  });
  CHECK(end.why == "ship");
  CHECK(plant.runner.records().size() == 24);  // a large effect: the least number of pairs
  const LiveAnalysis a = plant.runner.analysis();
  CHECK(a.verdict == Verdict::ship);
  CHECK(a.primary().mean == Approx(-0.3 * std::log(2)).margin(0.03));
  CHECK(plant.run().kind == Kind::done);
  CHECK(plant.runner.over());
  CHECK(plant.runner.next(plant.now).kind == Kind::done);
}

TEST_CASE("nothing to find: the end is futility or the last pair, never an effect") {
  Plan plan = switchback_plan(60);
  plan.minimum_effect = 0.2;
  Plant wide(plan, 0);
  wide.run();
  CHECK(wide.runner.analysis().verdict == Verdict::no_difference);
  plan.minimum_effect = 0.001;
  Plant narrow(plan, 0);
  narrow.run();
  CHECK(narrow.runner.records().size() == 120);
  CHECK(narrow.runner.analysis().verdict == Verdict::inconclusive);
}

TEST_CASE("next() is the same until what it asked for is reported") {
  Plant plant(switchback_plan(20), 0.3);
  const Action a = plant.runner.next(5);
  const Action b = plant.runner.next(9);
  CHECK(a.kind == Kind::use_arms);
  CHECK(b.kind == a.kind);
  CHECK(b.block == a.block);
  plant.runner.recorded();  // not asked for: no effect
  plant.runner.concluded();
  plant.runner.sampled({});
  CHECK(plant.runner.next(10).kind == Kind::use_arms);
}

TEST_CASE("runners with one plan and one beginning switch together, though one had trouble") {
  constexpr std::int64_t kBegin = 5'000'000'000;
  constexpr std::uint64_t kRpc = 400'000;  // until the arms are in force
  Plan plan = switchback_plan(20);
  plan.pairs_min = plan.pairs_max;
  const Schedule schedule = make_schedule(plan);
  // When each block's arms were asked for.
  const auto starts = [&](bool trouble) {
    Plant plant(plan, 0.3);
    plant.runner.align(kBegin);
    std::vector<std::uint64_t> out(schedule.blocks(), 0);
    bool ill = false;
    plant.run([&](const Action& a) {
      if (a.kind == Kind::use_arms) {
        out[a.block] = plant.now;
        plant.now += kRpc;
      }
      if (trouble && !ill && a.kind == Kind::sample && a.block == 4) {
        plant.runner.environment(false, "the link is down");
        plant.now += schedule.block_ns * 3;  // all of its pair, and half of the next
        plant.runner.environment(true, "");
        ill = true;
      }
      return false;
    });
    CHECK(plant.runner.over());
    CHECK(plant.runner.records().size() == schedule.blocks());
    CHECK(discarded(plant.stored) == (trouble ? 4 : 0));
    return out;
  };
  const std::vector<std::uint64_t> well = starts(false);
  const std::vector<std::uint64_t> ill = starts(true);
  const std::uint64_t distance = well[1] - well[0];
  CHECK(distance > schedule.block_ns);
  CHECK(distance <= schedule.block_ns + schedule.block_ns / 20);
  for (std::uint32_t b = 0; b < schedule.blocks(); ++b) {
    INFO("block " << b);
    CHECK(well[b] == static_cast<std::uint64_t>(kBegin) + b * distance);
    if (b < 4 || b >= 8) CHECK(ill[b] == well[b]);
    if (b == 6 || b == 7) CHECK(ill[b] == 0);  // its pair's moment was missed
  }
}

TEST_CASE("a guard's trip ends the experiment at once, wherever it stands") {
  for (const Kind when : {Kind::use_arms, Kind::wait, Kind::sample, Kind::record}) {
    INFO("during " << to_text(when));
    Plant plant(switchback_plan(60), 0.3);
    int seen = 0;
    plant.run([&](const Action& a) { return a.kind == when && a.block >= 5 && ++seen > 0; });
    plant.runner.guard_tripped("h3: retransmitted_share 0.02, limit 1e-06");
    int more_arms = 0;
    const Action end = plant.run([&](const Action& a) {
      more_arms += a.kind == Kind::use_arms;
      return a.kind == Kind::conclude;
    });
    CHECK(end.kind == Kind::conclude);
    CHECK(end.why.starts_with("guard: h3"));
    CHECK(more_arms == 0);
    CHECK(plant.runner.analysis().verdict == Verdict::harmful);
  }
}

TEST_CASE("a sample with a latched guard is a trip, though nobody reported it") {
  Plant plant(switchback_plan(60), 0.3);
  plant.run([](const Action& a) { return a.kind == Kind::sample && a.block == 4; });
  auto samples = plant.samples();
  plant.runner.sampled(samples);  // first edge
  plant.run([](const Action& a) { return a.kind == Kind::sample; });
  samples = plant.samples();
  samples[0].nics[0].guard = 2;
  plant.runner.sampled(samples);
  const Action end = plant.run([](const Action& a) { return a.kind == Kind::conclude; });
  CHECK(end.why == "guard: n0: trip 2");
  CHECK(discarded(plant.stored) == 2);  // the pair, in both arms
}

TEST_CASE("telemetry that is missing, or not of this arm, discards the pair in both arms") {
  Plant plant(switchback_plan(30), 0.0);
  plant.run([](const Action& a) { return a.kind == Kind::sample && a.block == 6; });
  auto samples = plant.samples();
  samples[0].missing = 0.2;
  plant.runner.sampled(samples);
  const Action record = plant.runner.next(plant.now);
  REQUIRE(record.kind == Kind::record);
  REQUIRE(record.records.size() == 2);
  CHECK(record.records[0].why == "telemetry: 20 % of the samples missing");
  CHECK(record.records[1].why == "pair: telemetry: 20 % of the samples missing");
  CHECK(record.records[0].discarded == Discarded::itself);
  CHECK(record.records[1].discarded == Discarded::with_partner);
  CHECK(record.records[1].place.arm == 1 - record.records[0].place.arm);
  plant.obey(record);
  CHECK(plant.runner.next(plant.now).block == 8);  // not repeated
  plant.run([](const Action& a) { return a.kind == Kind::sample && a.block == 9; });
  plant.arms[0] ^= 1;  // another client changed the arm
  plant.run([](const Action& a) { return a.kind == Kind::use_arms; });
  const PairTable table = pair_up(plant.runner.schedule(), plant.runner.records(), true);
  CHECK(table.discarded == 2);
  CHECK(table.usable.size() == 3);
  CHECK(plant.runner.analysis().verdict == Verdict::running);
}

TEST_CASE("an environment in trouble: the pair is discarded, the champion holds, then on") {
  Plant plant(switchback_plan(30), 0.0);
  plant.run([](const Action& a) { return a.kind == Kind::wait && a.block == 5; });
  plant.runner.environment(false, "link h3 down");
  plant.obey(plant.runner.next(plant.now));  // record
  const Action pause = plant.runner.next(plant.now);
  REQUIRE(pause.kind == Kind::pause);
  CHECK(pause.arms == std::vector<std::uint8_t>{0});
  CHECK(pause.why == "link h3 down");
  CHECK(pause.epoch != Schedule::epoch(5));
  CHECK(pause.epoch != Schedule::epoch(6));
  CHECK(plant.runner.next(plant.now + 1'000'000'000).kind == Kind::pause);  // until told
  plant.runner.environment(true, "");
  CHECK(plant.runner.next(plant.now).kind == Kind::use_arms);
  CHECK(plant.runner.next(plant.now).block == 6);
  plant.run();
  const PairTable table = pair_up(plant.runner.schedule(), plant.runner.records(), false);
  CHECK(table.discarded == 1);
  CHECK(table.why[0] == "pair 2: environment: link h3 down");
}

TEST_CASE("a stop is obeyed at once and is inconclusive") {
  Plant plant(switchback_plan(30), 0.0);
  plant.run([](const Action& a) { return a.kind == Kind::wait && a.block == 3; });
  plant.runner.stop("by the operator");
  CHECK(plant.runner.next(plant.now).kind == Kind::conclude);
  plant.run();
  const LiveAnalysis a = plant.runner.analysis();
  CHECK(a.verdict == Verdict::inconclusive);
  CHECK(a.reasons[0] == "stopped: by the operator");
}

TEST_CASE("a driver that crashes anywhere goes on from what was stored") {
  for (const std::uint32_t crash_at : {0U, 1U, 6U, 7U, 8U}) {
    INFO("in block " << crash_at);
    Plan plan = switchback_plan(20, 9);
    plan.minimum_effect = 1e-4;  // to the last pair
    Plant first(plan, 0.0);
    first.run([&](const Action& a) { return a.kind == Kind::sample && a.block == crash_at; });
    Plant second(plan, 0.0, first.stored);
    std::uint32_t begun = ~0U;
    second.run([&](const Action& a) {
      if (a.kind == Kind::use_arms && begun == ~0U) begun = a.block;
      return false;
    });
    CHECK(begun == crash_at + crash_at % 2);  // whole pairs
    const PairTable table = pair_up(second.runner.schedule(), second.runner.records(), false);
    CHECK(table.errors.empty());
    CHECK(table.attempted == 20);
    CHECK(table.discarded == crash_at % 2);
    if (crash_at % 2 != 0) CHECK(table.why[0].find("interrupted") != std::string::npos);
  }
}

TEST_CASE("clusters are crossed over, and recorded each for itself") {
  Plan plan = cluster_plan(40, 4, 2);
  Plant plant(plan, 0.3);
  plant.run();
  const LiveAnalysis a = plant.runner.analysis();
  CHECK(a.verdict == Verdict::ship);
  CHECK(plant.stored.size() % 8 == 0);
  CHECK(a.interference.known);
  CHECK(a.interference.total == Approx(a.interference.naive).margin(0.05));
}

TEST_CASE("without a calibrated A/A nothing ships, and the verdict says so") {
  Plan plan = switchback_plan(40);
  plan.no_calibration = "a test";
  Runner runner(plan, make_schedule(plan), {}, false);
  Random random(1);
  const auto records =
      draw_blocks(runner.schedule(), random, [](const BlockPlace& place, Random& r) {
        return 1 - 0.3 * place.arm + 0.02 * standard_normal(r);
      });
  Circumstances now;
  now.finished = true;
  const LiveAnalysis a = analyse_live(plan, runner.schedule(), records, now);
  CHECK(a.verdict == Verdict::inconclusive);
  CHECK(std::any_of(a.reasons.begin(), a.reasons.end(), [](const std::string& r) {
    return r == "no A/A run of the same design, because: a test";
  }));
  // The A/A itself is what calibrates.
  Plan null = switchback_plan(40);
  null.arms[1].cc = null.arms[0].cc;
  const Schedule schedule = make_schedule(null);
  const auto flat = draw_blocks(
      schedule, random, [](const BlockPlace&, Random& r) { return 1 + 0.02 * standard_normal(r); });
  CHECK(analyse_live(null, schedule, flat, now).verdict == Verdict::calibrated);
  const auto off = draw_blocks(schedule, random, [](const BlockPlace& place, Random& r) {
    return 1 + 0.02 * place.arm + 0.02 * standard_normal(r);
  });
  CHECK(analyse_live(null, schedule, off, now).verdict == Verdict::miscalibrated);
}

TEST_CASE("on a host that was too slow nothing is believed but that it was") {
  Plan plan = switchback_plan(40);
  const Schedule schedule = make_schedule(plan);
  Random random(3);
  const auto records = draw_blocks(schedule, random, [](const BlockPlace& place, Random& r) {
    return 1 - 0.3 * place.arm + 0.02 * standard_normal(r);
  });
  Circumstances now;
  now.finished = true;
  now.calibrated = true;
  now.host_late = 0.09;
  const auto says = [](const LiveAnalysis& a, const std::string& begin) {
    return std::any_of(a.reasons.begin(), a.reasons.end(),
                       [&](const std::string& r) { return r.starts_with(begin); });
  };
  LiveAnalysis a = analyse_live(plan, schedule, records, now);
  CHECK(a.verdict == Verdict::ship);
  CHECK_FALSE(says(a, "the host was too slow"));
  now.host_late = 0.42;
  a = analyse_live(plan, schedule, records, now);
  CHECK(a.verdict == Verdict::inconclusive);
  CHECK(says(a, "the host was too slow: its workers were kept from their turns 42 % of the time"));
  // A soft guard is such a figure, too.
  plan.soft = default_soft_limits();
  std::vector<BlockRecord> slower = records;
  for (BlockRecord& r : slower) {
    r.values[BlockMetric::goodput] =
        5e10 * (r.place.arm == 1 ? 0.5 : 1) * (1 + 0.02 * standard_normal(random));
  }
  CHECK(analyse_live(plan, schedule, slower, now).verdict == Verdict::inconclusive);
  now.host_late = 0;
  CHECK(analyse_live(plan, schedule, slower, now).verdict == Verdict::harmful);
  now.host_late = 0.42;
  // A trip of the guard stays one, and is told with it.
  now.hard_guard = "stall";
  a = analyse_live(plan, schedule, records, now);
  CHECK(a.verdict == Verdict::harmful);
  CHECK(says(a, "the host was too slow"));
  // Two equal arms calibrate nothing on such a host.
  now.hard_guard.clear();
  plan.arms[1].cc = plan.arms[0].cc;
  const Schedule equal = make_schedule(plan);
  const auto flat = draw_blocks(
      equal, random, [](const BlockPlace&, Random& r) { return 1 + 0.02 * standard_normal(r); });
  a = analyse_live(plan, equal, flat, now);
  CHECK(a.verdict == Verdict::inconclusive);
  CHECK(says(a, "the host was too slow"));
}

TEST_CASE("soft guards: what is shown to be worse than allowed ends it; what is not does not") {
  Plan plan = switchback_plan(60);
  plan.soft = default_soft_limits();
  const Schedule schedule = make_schedule(plan);
  const auto with_goodput = [&](double factor, std::uint64_t seed) {
    Random random(seed);
    auto records = draw_blocks(schedule, random, [](const BlockPlace& place, Random& r) {
      return 1 - 0.3 * place.arm + 0.05 * standard_normal(r);
    });
    for (BlockRecord& r : records) {
      r.values[BlockMetric::goodput] =
          5e10 * (r.place.arm == 1 ? factor : 1) * (1 + 0.02 * standard_normal(random));
    }
    Circumstances now;
    now.finished = true;
    now.calibrated = true;
    return analyse_live(plan, schedule, records, now);
  };
  CHECK(with_goodput(0.88, 1).verdict == Verdict::harmful);  // -12 %, -5 % allowed
  CHECK(with_goodput(1.0, 2).verdict == Verdict::ship);
  const LiveAnalysis small = with_goodput(0.99, 3);
  CHECK(small.verdict == Verdict::ship);
  CHECK(std::any_of(small.metrics.begin(), small.metrics.end(), [](const MetricResult& m) {
    return m.role == MetricRole::guardrail && m.cleared;
  }));
}
