// What the tuner chooses against the best of all settings, and what it pays for that.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/config/toml/quantity.h"
#include "tests/unit/collective/tune_samples.h"
#include "tools/collective/tune/tune_text.h"

namespace paceline::tools::tune_regret_test {
namespace {

using workload::CollectiveOp;

const std::atomic<bool> kRuns{false};

struct Fabric {
  const char* name;
  const char* text;  // of [fabric]
  std::uint64_t seed;
  std::uint64_t largest = 1ULL << 40;  // size that is searched
};

struct Regret {
  Trial best;                  // of all
  Trial chosen;                // by the tuner
  Trial standard;              // the default
  std::size_t points = 0;      // settings
  std::size_t emulations = 0;  // of them, that differ
  std::size_t evaluations = 0;
  double percent() const { return 100 * (chosen.took_us / best.took_us - 1); }
};

std::vector<TuneSetting> all_settings(const std::string& schedule, const TuneSpace& space) {
  std::vector<TuneSetting> settings;
  for (const std::uint32_t chunk : space.chunks) {
    for (const std::uint32_t channels : space.channels) {
      for (const std::uint32_t window : space.windows) {
        for (const std::uint32_t pairs : space.queue_pairs) {
          settings.push_back({schedule, chunk, channels, window, pairs});
          if (!space.ports) continue;
          settings.push_back(settings.back());
          settings.back().planned_ports = true;
        }
      }
    }
  }
  return settings;
}

std::vector<Regret> regrets(const CollectiveTunePlan& plan) {
  const auto tuned = run_collective_tune(plan, kRuns, [](double, const std::string&) {});
  REQUIRE(tuned.errors == std::vector<std::string>{});
  std::vector<Regret> out;
  for (const TuneCell& cell : tuned.value.cells) {
    Regret regret;
    regret.chosen = cell.result.best;
    regret.standard = cell.result.standard;
    regret.evaluations = cell.result.evaluations;
    regret.best.problem = "none";
    TrialRunner every(plan.group, cell.op, cell.bytes, plan.iterations, plan.workers, kRuns);
    for (const Estimate& estimate : cell.estimates) {
      const auto settings = all_settings(estimate.schedule, plan.space);
      regret.points += settings.size();
      for (const Trial& trial : every.run(settings)) {
        if (trial.better_than(regret.best)) regret.best = trial;
      }
    }
    regret.emulations = every.emulations();
    out.push_back(std::move(regret));
  }
  return out;
}

std::string setting_words(const TuneSetting& s) {
  return fmt::format("{} {} x{} w{} q{}{}", s.schedule, config::format_bytes(s.chunk_bytes),
                     s.channels, s.window, s.queue_pairs, s.planned_ports ? " planned" : "");
}

CollectiveTunePlan plan_on(const Fabric& fabric, const std::string& algorithm) {
  CollectiveTunePlan plan;
  plan.group = tune_samples::group_on(fabric.text, fabric.seed, algorithm);
  plan.operations = {CollectiveOp::all_reduce};
  plan.iterations = 1;
  return plan;
}

TEST_CASE("tune: what is chosen is within 3 % of the best, for a tenth of the emulations",
          "[jobs]") {
  const Fabric fabrics[] = {
      {"star", "hosts = 10\nrate = \"200Gb/s\"", 101},
      {"leaf-spine 2:1",
       "topology = \"leaf_spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n"
       "rate = \"100Gb/s\"\noversubscription = 2",
       202}};
  for (const Fabric& fabric : fabrics) {
    CollectiveTunePlan plan = plan_on(fabric, "fixed");
    plan.sizes = {8 << 10, 128 << 10, 1 << 20};
    plan.space.chunks = {64 << 10, 256 << 10, 1 << 20};
    plan.space.channels = {1, 4};
    plan.space.windows = {2, 8};
    plan.space.queue_pairs = {1, 4};
    double emulated = 0;
    double points = 0;
    for (const Regret& regret : regrets(plan)) {
      CAPTURE(fabric.name, fabric.seed, setting_words(regret.best.setting), regret.best.took_us,
              setting_words(regret.chosen.setting), regret.chosen.took_us, regret.evaluations,
              regret.points);
      CHECK(regret.percent() <= 3);
      CHECK(regret.chosen.took_us <= regret.standard.took_us);
      emulated += static_cast<double>(regret.evaluations);
      points += static_cast<double>(regret.points);
    }
    CHECK(emulated <= 0.1 * points);
  }
}

TEST_CASE("tune: neither the number of threads nor a second search changes a choice", "[jobs]") {
  CollectiveTunePlan plan = plan_on({"star", "hosts = 6", 7}, "cadence");
  plan.operations = {CollectiveOp::all_gather, CollectiveOp::broadcast};
  plan.sizes = {16 << 10, 256 << 10};
  plan.space.chunks = {64 << 10, 1 << 20};
  plan.for_nccl = true;
  const auto run = [&](unsigned jobs) {
    plan.workers = jobs;
    double share = 0;
    const auto result = run_collective_tune(plan, kRuns, [&](double now, const std::string&) {
      CHECK(now >= share);
      CHECK(now <= 1);
      share = now;
    });
    REQUIRE(result.ok());
    REQUIRE(result.value.cells.size() == 4);
    return collective_tune_json(plan, result.value);
  };
  const std::string one = run(1);
  CHECK(run(3) == one);
  CHECK(run(1) == one);
}

TEST_CASE("tune: a search keeps to its number of emulations", "[jobs]") {
  CollectiveTunePlan plan = plan_on({"star", "hosts = 8", 3}, "fixed");
  plan.sizes = {1 << 20, 4 << 20};
  for (const std::uint32_t most : {8U, 11U}) {
    plan.limits.evaluations = most;
    const auto result = run_collective_tune(plan, kRuns, [](double, const std::string&) {});
    REQUIRE(result.ok());
    for (const TuneCell& cell : result.value.cells) CHECK(cell.result.evaluations <= most);
  }
}

// A line for each size of each fabric. jobs: emulations at once.
void check_regrets(const std::vector<Fabric>& fabrics, std::uint64_t smallest,
                   const TuneSpace& space, unsigned jobs) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  fmt::print("{:<22} {:>7} {:<42} {:>10} {:<42} {:>10} {:>8} {:>6} {:>6} {:>5}\n", "fabric", "size",
             "best", "us", "chosen", "us", "regret %", "points", "emul.", "tune");
  for (const Fabric& fabric : fabrics) {
    CollectiveTunePlan plan = plan_on(fabric, "dcqcn");
    plan.workers = jobs;
    plan.space = space;
    plan.space.ports = has_ports_to_plan(plan.group.scenario);
    for (std::uint64_t size = smallest; size <= fabric.largest; size *= 4) {
      plan.sizes.push_back(size);
    }
    const auto found = regrets(plan);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Regret& r = found[i];
      fmt::print("{:<22} {:>7} {:<42} {:>10.2f} {:<42} {:>10.2f} {:>8.2f} {:>6} {:>6} {:>5}\n",
                 fabric.name, config::format_bytes(plan.sizes[i]), setting_words(r.best.setting),
                 r.best.took_us, setting_words(r.chosen.setting), r.chosen.took_us, r.percent(),
                 r.points, r.emulations, r.evaluations);
      CHECK(r.chosen.took_us <= r.standard.took_us);
      CHECK(r.percent() <= 3);
    }
  }
}

TuneSpace searched_space() {
  TuneSpace space;
  space.chunks = {64 << 10, 256 << 10, 1 << 20};
  space.windows = {2, 8, 32};
  space.channels = {1, 4};
  space.queue_pairs = {1, 4};
  return space;
}

// Some minutes.
TEST_CASE("tune: regret on five fabrics", "[.regret]") {
  const std::vector<Fabric> fabrics = {
      {"rack of 20", "hosts = 20\nrate = \"100Gb/s\"", 511, 4 << 20},
      {"leaf-spine 1:1, 24",
       "topology = \"leaf_spine\"\nleaves = 4\nspines = 6\nhosts_per_leaf = 6\nrate = \"200Gb/s\"",
       512, 1 << 20},
      {"leaf-spine 4:1, 32",
       "topology = \"leaf_spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 16\nrate = "
       "\"100Gb/s\"\n"
       "oversubscription = 4",
       513, 1 << 20},
      {"rails 8 x 2",
       "topology = \"rail\"\nnics = 8\nservers = 2\nhosts_per_leaf = 2\nrate = \"400Gb/s\"", 514,
       4 << 20},
      {"fat tree, 4 pods of 4",
       "topology = \"fat_tree\"\npods = 4\nleaves = 2\nspines = 2\ncores = 4\nhosts_per_leaf = 2\n"
       "rate = \"200Gb/s\"",
       515, 1 << 20},
  };
  check_regrets(fabrics, 1 << 10, searched_space(),
                std::max(1U, std::thread::hardware_concurrency()));
}

// An hour of one core.
TEST_CASE("tune: regret at 64 to 1,024 ranks", "[.regret_large]") {
  const std::vector<Fabric> fabrics = {
      {"rack of 64", "hosts = 64\nrate = \"100Gb/s\"", 611, 4 << 20},
      {"leaf-spine 1:1, 64",
       "topology = \"leaf_spine\"\nleaves = 8\nspines = 8\nhosts_per_leaf = 8\nrate = \"200Gb/s\"",
       612, 1 << 20},
      {"leaf-spine 4:1, 64",
       "topology = \"leaf_spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 16\nrate = "
       "\"100Gb/s\"\noversubscription = 4",
       613, 1 << 20},
      {"rails 8 x 16",
       "topology = \"rail\"\nnics = 8\nservers = 16\nhosts_per_leaf = 16\nrate = \"400Gb/s\"", 614,
       1 << 20},
      {"fat tree, 128",
       "topology = \"fat_tree\"\npods = 8\nleaves = 4\nspines = 4\ncores = 16\nhosts_per_leaf = 4\n"
       "rate = \"200Gb/s\"",
       615, 1 << 20},
      {"leaf-spine 2:1, 96",
       "topology = \"leaf_spine\"\nleaves = 6\nspines = 8\nhosts_per_leaf = 16\nrate = "
       "\"100Gb/s\"\noversubscription = 2",
       616, 1 << 20},
      {"leaf-spine 1:1, 16 x 4",
       "topology = \"leaf_spine\"\nleaves = 16\nspines = 4\nhosts_per_leaf = 4\nrate = \"400Gb/s\"",
       617, 1 << 20},
      {"leaf-spine 1:1, 1,024",
       "topology = \"leaf_spine\"\nleaves = 32\nspines = 32\nhosts_per_leaf = 32\nrate = "
       "\"400Gb/s\"",
       618, 16 << 10},
  };
  TuneSpace space = searched_space();
  space.windows = {2, 8};
  check_regrets(fabrics, 16 << 10, space, 1);
}

}  // namespace
}  // namespace paceline::tools::tune_regret_test
