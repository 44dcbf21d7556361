#include "control/tuner/online/tuner.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/unit/tuner_online/synthetic_plant.h"

namespace paceline::tuner::online {
namespace {

using test::Loop;
using test::param;
using test::quick;
using test::SyntheticPlant;

// A ridge in two parameters with its top at a timer of 20 us and steps of 200 Mb/s; 0 at `paper`.
double ridge(const std::vector<double>& values) {
  const auto off = [&](const char* name, double best) {
    const double away = std::log(values[param(name)] / best);
    return away * away;
  };
  const double top = 0.15 * std::pow(std::log(55.0 / 20), 2) + 0.1 * std::pow(std::log(5.0), 2);
  return top - 0.15 * off("increase_timer_us", 20) - 0.1 * off("additive_increase_mbps", 200);
}

Preset preset(const char* name, double gain, double timer, double additive) {
  Preset out;
  out.name = name;
  out.gain = gain;
  out.gain_sd = 0.1;
  out.signature.load = 6;
  out.signature.degree = 4;
  out.signature.bytes = {0.6, 0.3, 0.1};
  out.params = {{"increase_timer_us", timer}, {"additive_increase_mbps", additive}};
  return out;
}

PresetLibrary library() {
  PresetLibrary out;
  out.algorithm = "dcqcn";
  out.emulator = "0.1.0";
  out.presets = {preset("good", 0.3, 22, 190), preset("wrong", 0.4, 400, 5),
                 preset("middling", 0.1, 40, 80)};
  return out;
}

const PresetLibrary kNone{};

TEST_CASE("tuner: finds four fifths of the gain within 30 pairs, whatever was promised",
          "[tuner_online]") {
  const PresetLibrary presets = library();
  std::vector<double> best = test::paper();
  best[param("increase_timer_us")] = 22;
  best[param("additive_increase_mbps")] = 190;
  const double offline = ridge(best);
  std::size_t reached = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SyntheticPlant plant(seed);
    plant.response = ridge;
    Loop loop(plant, presets, quick(seed));
    loop.pairs(30);
    const double found = ridge(loop.tuner().status().incumbent);
    INFO("seed " << seed << ": " << found << " of " << offline);
    CHECK(found > 0);
    if (found >= 0.8 * offline) ++reached;
  }
  CHECK(reached >= 19);
}

TEST_CASE("tuner: climbs where no preset helps", "[tuner_online]") {
  SyntheticPlant plant(1);
  plant.noise_sd = 0.02;
  plant.response = ridge;
  TunerOptions options = quick();
  options.climb.trust_ns = 100'000'000'000;
  Loop loop(plant, kNone, options);
  loop.pairs(400);
  CHECK(ridge(loop.tuner().status().incumbent) > 0.2);  // of .41
  CHECK(loop.count(Event::accepted) >= 4);
}

TEST_CASE("tuner: a flat response moves it less than 6.5 times of 100", "[tuner_online]") {
  std::size_t tried = 0;
  std::size_t accepted = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SyntheticPlant plant(seed);
    TunerOptions options = quick(seed);
    options.block_windows = 2;
    options.wash_windows = 1;
    options.test.most_pairs = 16;
    options.rest_blocks = 5;
    options.cool_blocks = 2;
    plant.mix = {12, 6, 2};
    Loop loop(plant, kNone, options);
    loop.windows(3000);
    tried += loop.count(Event::dropped) + loop.count(Event::accepted);
    accepted += loop.count(Event::accepted);
  }
  INFO(accepted << " of " << tried);
  CHECK(tried > 200);
  CHECK(static_cast<double>(accepted) < 0.065 * static_cast<double>(tried));
}

TEST_CASE("tuner: blocks go ABBA, each washed out first", "[tuner_online]") {
  SyntheticPlant plant(2);
  const PresetLibrary presets = library();
  Loop loop(plant, presets, quick(2));
  std::string roles;
  for (int i = 0; i < 400; ++i) {
    loop.window();
    roles += loop.role() == Role::candidate ? 'B' : 'A';
  }
  // One candidate block is 10 counted windows, 2 washed out and 2 until it is in force; two in a
  // row are longer by 10 when the candidate stays the same.
  std::size_t longest = 0;
  std::size_t shortest = 1000;
  for (std::size_t at = roles.find('B'); at != std::string::npos && at < 380;) {
    const std::size_t end = roles.find('A', at);
    if (end == std::string::npos) break;
    longest = std::max(longest, end - at);
    shortest = std::min(shortest, end - at);
    at = roles.find('B', end);
  }
  CHECK(shortest >= 12);
  CHECK(longest <= 40);
  CHECK(roles.find('B') > 30);
}

TEST_CASE("tuner: drift of the load does not pass for a gain", "[tuner_online]") {
  std::size_t tried = 0;
  std::size_t accepted = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SyntheticPlant plant(seed);
    plant.drift = 0.02;  // slower by 2 % a second, for as long as the test lasts
    TunerOptions options = quick(seed);
    options.test.most_pairs = 12;
    Loop loop(plant, kNone, options);
    loop.windows(4000);
    tried += loop.count(Event::dropped) + loop.count(Event::accepted);
    accepted += loop.count(Event::accepted);
  }
  INFO(accepted << " of " << tried);
  CHECK(tried >= 20);
  CHECK(accepted <= tried / 10);
}

TEST_CASE(
    "tuner: a step of the load in mid-search is a new workload, and an old one is known again",
    "[tuner_online]") {
  SyntheticPlant plant(3);
  plant.response = ridge;
  const PresetLibrary presets = library();
  Loop loop(plant, presets, quick(3));
  loop.pairs(20);
  REQUIRE(loop.count(Event::accepted) >= 1);
  const std::string first = loop.tuner().status().signature;
  const auto tuned = loop.tuner().status().incumbent;
  plant.load = 0.1;
  plant.senders = 2;
  loop.windows(100);
  CHECK(loop.tuner().status().signature != first);
  CHECK(loop.count(Event::froze) == 1);
  CHECK(loop.in_force() == test::paper());  // accepted under one workload, not under another
  plant.load = 0.6;
  plant.senders = 8;
  loop.windows(120);
  CHECK(loop.tuner().status().signature == first);
  CHECK(loop.tuner().status().incumbent == tuned);
}

TEST_CASE("tuner: exploration stays within its budget", "[tuner_online]") {
  SyntheticPlant plant(4);
  TunerOptions options = quick(4);
  options.explore_credit = 3;
  options.test.least_pairs = 40;  // so many preset pairs the budget does not pay for
  options.test.most_pairs = 40;
  const PresetLibrary presets = library();
  Loop loop(plant, presets, options);
  std::size_t presets_in_force = 0;
  for (int i = 0; i < 20'000; ++i) {
    loop.window();
    const auto& values = loop.in_force();
    for (const Preset& p : presets.presets) {
      if (values == values_of(p, test::dcqcn(), test::paper())) ++presets_in_force;
    }
  }
  CHECK(presets_in_force > 300);
  CHECK(presets_in_force < 1450 + 3 * 14);  // windows washed out come on top
}

TEST_CASE("tuner: where policy forbids exploration it keeps to single notches", "[tuner_online]") {
  SyntheticPlant plant(5);
  const PresetLibrary presets = library();
  Loop loop(plant, presets, quick(5));
  loop.around.may_explore = false;
  loop.windows(2000);
  for (const JournalEntry& entry : loop.journal) {
    if (entry.event == Event::tried) CHECK(entry.changes.size() == 1);
  }
  CHECK(loop.count(Event::tried) > 0);
}

TEST_CASE("tuner: advise gives no orders and says why, once", "[tuner_online]") {
  SyntheticPlant plant(6);
  plant.response = ridge;
  const PresetLibrary presets = library();
  TunerOptions options = quick();
  options.mode = Mode::advise;
  Loop loop(plant, presets, options);
  loop.windows(500);
  CHECK(loop.orders.empty());
  REQUIRE(loop.count(Event::advised) == 1);
  const JournalEntry& advice = loop.journal.back();
  CHECK_THAT(advice.reason, Catch::Contains("would try preset") && Catch::Contains("emulator") &&
                                Catch::Contains("increase_timer_us 55 -> "));
  Loop off(plant, presets, [&] {
    TunerOptions o = quick();
    o.mode = Mode::off;
    return o;
  }());
  off.windows(500);
  CHECK(off.orders.empty());
  CHECK(off.journal.empty());
}

TEST_CASE("tuner: leaving auto goes back to the champion, coming back finds what was tuned",
          "[tuner_online]") {
  SyntheticPlant plant(7);
  plant.response = ridge;
  const PresetLibrary presets = library();
  Loop loop(plant, presets, quick(7));
  loop.pairs(20);
  const auto tuned = loop.tuner().status().incumbent;
  REQUIRE(tuned != test::paper());
  loop.take(loop.tuner().set_mode(Mode::advise));
  loop.windows(100);
  CHECK(loop.in_force() == test::paper());
  const std::size_t before = loop.orders.size();
  loop.windows(200);
  CHECK(loop.orders.size() == before);
  loop.take(loop.tuner().set_mode(Mode::automatic));
  loop.windows(60);
  CHECK(loop.tuner().status().incumbent == tuned);
}

TEST_CASE("tuner: journal entries are lines of JSON that say what, why and on what evidence",
          "[tuner_online]") {
  SyntheticPlant plant(8);
  plant.response = ridge;
  const PresetLibrary presets = library();
  Loop loop(plant, presets, quick(8));
  loop.pairs(20);
  bool accepted = false;
  for (const JournalEntry& entry : loop.journal) {
    const std::string text = journal_json(entry);
    CHECK(text.find('\n') == std::string::npos);
    const auto json = nlohmann::json::parse(text);
    CHECK_FALSE(json.at("reason").get<std::string>().empty());
    if (entry.event != Event::accepted) continue;
    accepted = true;
    CHECK(json.at("evidence").at("pairs").get<int>() >= 6);
    CHECK(json.at("evidence").at("low").get<double>() > 0);
    CHECK(json.at("changes").size() >= 1);
    CHECK(json.at("signature").get<std::string>() == loop.tuner().status().signature);
  }
  CHECK(accepted);
}

}  // namespace
}  // namespace paceline::tuner::online
