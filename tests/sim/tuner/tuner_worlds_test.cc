// The online tuner on real traffic in virtual time: the code that the daemon drives, on the three
// reference workloads, with the presets that are shipped.
#include <catch2/catch.hpp>

#include "cc/registry.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "tests/sim/sim_support.h"
#include "tools/tuning/tuner_world.h"

namespace paceline::simtest {
namespace {

using tools::FixedRun;
using tools::TunedRun;
using tools::TunerWorldOptions;
using tuner::online::Event;
using tuner::online::JournalEntry;
using tuner::online::kMostBreach_ns;
using tuner::online::Preset;
using tuner::online::PresetLibrary;
using tuner::online::Surroundings;
using tuner::online::TunerOptions;
using tuner::online::Window;

struct Reference {
  std::string name;
  Picos wave{0};
  std::uint32_t block_windows = 0;
  tools::PreparedScenario scenario;
  std::vector<double> champion;
  PresetLibrary presets;

  Reference(const std::string& name_, std::int64_t wave_us, std::uint32_t block)
      : name(name_),
        wave(picos_from_micros(wave_us)),
        block_windows(block),
        scenario(prepared(shipped("online/" + name_))) {
    cc::PortFacts facts;
    facts.link_rate = scenario.scenario.fabric.rate;
    std::string error;
    champion = resolve_cc("dcqcn", "paper", {}, facts, error);
    REQUIRE(error.empty());
    auto read = tuner::online::read_presets_file(
        std::string(PACELINE_SOURCE_DIR) + "/configs/presets/dcqcn.toml", cc::algorithms());
    REQUIRE(read.ok());
    presets = std::move(read.value);
  }
  TunerWorldOptions world() const {
    TunerWorldOptions out;
    out.wave = wave;
    out.block_windows = block_windows;
    return out;
  }
  TunerOptions tuner(std::uint64_t seed) const {
    return tools::tuner_options(world(), scenario, seed);
  }
  const cc::AlgorithmInfo& info() const { return *cc::find("dcqcn"); }
  TunedRun run(std::uint32_t pairs, std::uint64_t seed, const tools::TunedRunHooks& hooks = {}) {
    return tools::run_tuned(scenario, info(), presets, champion, world(), tuner(seed), pairs, seed,
                            hooks);
  }
  // Mean J of a parameter set held fixed, on seeds that nobody has tuned for.
  double value(const std::vector<double>& values, std::uint32_t seeds, std::uint32_t blocks) const {
    double sum = 0;
    std::size_t n = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const FixedRun run =
          tools::run_fixed(scenario, tools::config_of(scenario.scenario.cc, info(), values),
                           world(), blocks, 770'000 + seed);
      for (const double j : run.objective) sum += j;
      n += run.objective.size();
    }
    REQUIRE(n > 0);
    return sum / static_cast<double>(n);
  }
};

std::size_t events(const TunedRun& run, Event event) {
  std::size_t n = 0;
  for (const JournalEntry& entry : run.journal) n += entry.event == event ? 1 : 0;
  return n;
}

std::string story(const TunedRun& run) {
  std::string out;
  for (const JournalEntry& entry : run.journal) out += tuner::online::journal_json(entry) + "\n";
  return out;
}

// Four fifths of what the best preset gains over the default, within 30 pairs; and no constraint
// broken for longer than the guard allows.
void reaches_most_of_the_gain(Reference& reference, std::uint64_t seed, std::uint32_t seeds = 3,
                              std::uint32_t blocks = 6) {
  const TunedRun run = reference.run(30, seed);
  INFO(reference.name << ", seed " << seed << "\n" << story(run));
  REQUIRE(run.finished);
  CHECK(run.status.pairs == 30);
  CHECK(run.longest_breach_ns <= kMostBreach_ns);
  const double before = reference.value(reference.champion, seeds, blocks);
  double best = before;
  double after = before;
  for (const Preset& preset : reference.presets.presets) {
    const auto values = tuner::online::values_of(preset, reference.info(), reference.champion);
    const double found = reference.value(values, seeds, blocks);
    best = std::max(best, found);
    if (values == run.status.incumbent) after = found;
  }
  if (after == before) after = reference.value(run.status.incumbent, seeds, blocks);
  INFO("J " << before << " -> " << after << ", best preset " << best);
  CHECK(best > before + 0.02);  // there is something to gain
  CHECK(after - before >= 0.8 * (best - before));
}

TEST_CASE("tuner in a world: an incast in waves", "[sim][slow]") {
  Reference reference("incast-waves", 1300, 208);
  reaches_most_of_the_gain(reference, 11);
}

TEST_CASE("tuner in a world: a skewed all-to-all, repeated", "[sim][slow]") {
  Reference reference("moe-waves", 2000, 160);
  reaches_most_of_the_gain(reference, 12);
}

TEST_CASE("tuner in a world: web search at 80 %", "[sim][nightly]") {
  Reference reference("websearch", 0, 200);
  reaches_most_of_the_gain(reference, 13, 2, 5);
}

TEST_CASE("tuner in a world: moves that change nothing are not taken", "[sim][slow]") {
  // A byte counter beyond all that is ever sent acts on nothing: every value of it is the same.
  std::size_t judged = 0;
  std::size_t accepted = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Reference reference("incast-waves", 1300, 13);
    const std::size_t p =
        static_cast<std::size_t>(cc::find_param(reference.info().params, "byte_counter"));
    reference.champion[p] = 1e11;
    reference.presets.presets.clear();
    for (int i = 0; i < 6; ++i) {
      Preset same;
      same.name = "same-" + std::to_string(i);
      same.gain = 5;  // promised, so that it is tried before anything else
      same.gain_sd = 0.05;
      same.signature = {};
      same.params = {{"byte_counter", 2e11 + i * 1e11}};
      reference.presets.presets.push_back(same);
    }
    TunerOptions options = reference.tuner(seed);
    options.test.most_pairs = 8;
    options.cool_blocks = 1;
    options.explore_credit = 100;
    const TunedRun run = tools::run_tuned(reference.scenario, reference.info(), reference.presets,
                                          reference.champion, reference.world(), options, 40, seed);
    INFO(story(run));
    REQUIRE(run.finished);
    judged += events(run, Event::dropped) + events(run, Event::accepted);
    accepted += events(run, Event::accepted);
  }
  INFO(accepted << " of " << judged);
  CHECK(judged >= 10);
  CHECK(accepted <= 2);  // two of 20 have a chance of 2 % at a rate of 1 %
}

TEST_CASE("tuner in a world: congestion control all but switched off is thrown out",
          "[sim][slow]") {
  Reference reference("incast-waves", 1300, 26);
  Preset reckless;
  reckless.name = "reckless";
  reckless.gain = 9;
  reckless.signature = reference.presets.presets.front().signature;
  reckless.params = {{"additive_increase_mbps", 25'000},
                     {"increase_timer_us", 1},
                     {"decrease_period_us", 1'000'000},
                     {"fast_recovery_stages", 0}};
  reference.presets.presets = {reckless};
  TunerWorldOptions world = reference.world();
  world.queue_share = 0.1;
  const TunerOptions options = tools::tuner_options(world, reference.scenario, 5);
  const TunedRun run = tools::run_tuned(reference.scenario, reference.info(), reference.presets,
                                        reference.champion, world, options, 3, 5);
  INFO(story(run));
  CHECK(events(run, Event::rejected) >= 1);
  CHECK(run.status.incumbent_name.find("reckless") == std::string::npos);
  CHECK(run.longest_breach_ns <= 20'000'000);  // of 300 ms; windows are 100 times shorter here
}

TEST_CASE("tuner in a world: without telemetry it stands still, then goes on", "[sim][slow]") {
  Reference reference("incast-waves", 1300, 13);
  std::uint64_t windows = 0;
  tools::TunedRunHooks hooks;
  hooks.window = [&](Window& window, Surroundings&) {
    window.fresh = ++windows < 200 || windows > 300;
  };
  const TunedRun run = reference.run(8, 3, hooks);
  INFO(story(run));
  CHECK(run.finished);
  CHECK(run.windows > 300);
  std::int64_t froze = 0;
  std::int64_t resumed = 0;
  for (const JournalEntry& entry : run.journal) {
    if (entry.event == Event::froze && froze == 0) froze = entry.at_ns;
    if (entry.event == Event::resumed && resumed == 0) resumed = entry.at_ns;
    const bool acts = entry.event == Event::tried || entry.event == Event::accepted;
    CHECK_FALSE((acts && froze != 0 && resumed == 0));
  }
  CHECK(froze > 0);
  CHECK(resumed - froze >= 100 * 100'000);
}

}  // namespace
}  // namespace paceline::simtest
