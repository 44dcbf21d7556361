// Guardrails of the tuner, and its state across a restart.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "control/tuner/online/tuner.h"
#include "tests/unit/tuner_online/synthetic_plant.h"

namespace paceline::tuner::online {
namespace {

using test::Loop;
using test::param;
using test::quick;
using test::SyntheticPlant;

Preset reckless() {
  Preset out;
  out.name = "reckless";
  out.gain = 3;
  out.gain_sd = 0.1;
  out.signature.load = 6;
  out.signature.degree = 4;
  out.signature.bytes = {0.6, 0.3, 0.1};
  out.params = {{"additive_increase_mbps", 100'000}};
  return out;
}

PresetLibrary reckless_library() {
  PresetLibrary out;
  out.algorithm = "dcqcn";
  out.emulator = "0.1.0";
  out.presets = {reckless()};
  return out;
}

// Windows during which `broken` held in a row, at most, and how often in all.
template <class Broken>
std::uint32_t longest_breach(Loop& loop, std::uint32_t windows, Broken broken) {
  std::uint32_t longest = 0;
  std::uint32_t now = 0;
  for (std::uint32_t i = 0; i < windows; ++i) {
    loop.window();
    now = broken() ? now + 1 : 0;
    longest = std::max(longest, now);
  }
  return longest;
}

TEST_CASE("guard: whatever it gains, a candidate that breaks a constraint goes within 300 ms",
          "[tuner_online]") {
  struct Case {
    const char* name;
    void (*make)(Window&);
  };
  const Case cases[] = {
      {"loss", [](Window& w) { w.dropped = 1; }},
      {"retransmissions",
       [](Window& w) {
         w.retransmitted = 20;
         w.ce_packets = 5;
       }},
      {"pause", [](Window& w) { w.paused_ns = 50'000; }},
      {"delay", [](Window& w) { w.delay_p99_ns = 1e6; }},
      {"queue", [](Window& w) { w.queue_p99_bytes = 20e6; }},
      {"fairness", [](Window& w) { w.jain = 0.5; }},
      {"cpu", [](Window& w) { w.cpu_share = 0.99; }},
  };
  const PresetLibrary presets = reckless_library();
  for (const Case& one : cases) {
    INFO(one.name);
    SyntheticPlant plant(1);
    const std::size_t p = param("additive_increase_mbps");
    const auto bad = [p](const std::vector<double>& v) { return v[p] > 10'000; };
    plant.response = [&](const auto& v) { return bad(v) ? 5.0 : 0.0; };  // tempting
    plant.breach = [&](const auto& v, Window& w) {
      if (bad(v)) one.make(w);
    };
    TunerOptions options = quick();
    options.constraints.delay_p99_ns = 50'000;
    options.constraints.queue_p99_bytes = 16e6;
    options.block_windows = 50;
    options.wash_windows = 10;
    REQUIRE(problems_of(options, SyntheticPlant::kWindow_ns).empty());
    Loop loop(plant, presets, options);
    const auto longest = longest_breach(loop, 3000, [&] { return bad(loop.in_force()); });
    CHECK(longest > 0);
    CHECK(longest * SyntheticPlant::kWindow_ns <= kMostBreach_ns);
    CHECK(loop.count(Event::rejected) >= 1);
    std::size_t recklessly = 0;
    for (const JournalEntry& entry : loop.journal) {
      CHECK_FALSE((entry.event == Event::accepted && entry.name == "reckless"));
      if (entry.event == Event::tried && entry.name == "reckless") ++recklessly;
    }
    CHECK(recklessly == 1);  // and never again
  }
}

TEST_CASE("guard: options under which a breach would last longer are refused", "[tuner_online]") {
  TunerOptions options;
  CHECK(problems_of(options, 10'000'000).empty());
  options.wash_windows = 25;
  CHECK(problems_of(options, 10'000'000).size() == 1);
  options = {};
  options.guard_ns = 290'000'000;
  CHECK(problems_of(options, 10'000'000).size() == 1);
  options = {};
  options.block_windows = 1;
  options.test.most_pairs = 3;
  CHECK(problems_of(options, 10'000'000).size() == 2);
}

TEST_CASE("guard: an incumbent that comes to break a constraint gives way to the champion",
          "[tuner_online]") {
  PresetLibrary presets = reckless_library();
  SyntheticPlant plant(2);
  const std::size_t p = param("additive_increase_mbps");
  bool later = false;
  plant.response = [p](const auto& v) { return v[p] > 10'000 ? 1.0 : 0.0; };
  plant.breach = [&](const auto& v, Window& w) {
    if (later && v[p] > 10'000) w.dropped = 3;
  };
  Loop loop(plant, presets, quick(2));
  loop.pairs(10);
  REQUIRE(loop.count(Event::accepted) >= 1);
  REQUIRE(loop.tuner().status().incumbent[p] > 10'000);
  later = true;
  const auto longest = longest_breach(loop, 100, [&] { return loop.in_force()[p] > 10'000; });
  CHECK(longest * SyntheticPlant::kWindow_ns <= kMostBreach_ns);
  CHECK(loop.count(Event::reverted) + loop.count(Event::rejected) >= 1);
  CHECK(loop.tuner().status().incumbent == test::paper());
}

TEST_CASE("guard: a champion that breaks one is complained of once, and may be relieved",
          "[tuner_online]") {
  PresetLibrary presets = reckless_library();
  SyntheticPlant plant(3);
  const std::size_t p = param("additive_increase_mbps");
  plant.breach = [p](const auto& v, Window& w) {
    if (v[p] < 1000) w.paused_ns = 100'000;  // `paper` pauses its peers; the preset does not
  };
  Loop loop(plant, presets, quick(3));
  loop.pairs(30);
  CHECK(loop.count(Event::complained) == 1);
  CHECK(loop.tuner().status().incumbent[p] == 100'000);
}

TEST_CASE("guard: lost telemetry ends the trial at once, and it goes on afterwards",
          "[tuner_online]") {
  PresetLibrary presets = reckless_library();
  SyntheticPlant plant(4);
  Loop loop(plant, presets, quick(4));
  while (loop.role() != Role::candidate) loop.window();
  loop.fresh = false;
  loop.window();
  loop.windows(loop.delay + 1);
  CHECK(loop.role() == Role::champion);
  CHECK(loop.tuner().status().freeze == Freeze::telemetry);
  const std::size_t orders = loop.orders.size();
  const std::uint64_t pairs = loop.tuner().status().pairs;
  loop.windows(200);
  CHECK(loop.orders.size() == orders);
  CHECK(loop.count(Event::froze) == 1);
  loop.fresh = true;
  loop.windows(2);
  CHECK(loop.tuner().status().freeze == Freeze::telemetry);  // three in a row are asked for
  loop.fresh = false;
  loop.window();
  loop.fresh = true;
  loop.windows(4);
  CHECK(loop.tuner().status().freeze == Freeze::none);
  CHECK(loop.count(Event::resumed) == 1);
  loop.windows(300);
  CHECK(loop.tuner().status().pairs > pairs);
}

TEST_CASE("guard: a failure or another experiment holds it, the incumbent stays",
          "[tuner_online]") {
  PresetLibrary presets = reckless_library();
  SyntheticPlant plant(5);
  Loop loop(plant, presets, quick(5));
  loop.windows(100);
  loop.around.other_experiment = true;
  loop.windows(5);
  CHECK(loop.tuner().status().freeze == Freeze::other_experiment);
  loop.around.trouble = "link 3 is down";
  loop.windows(5);
  CHECK(loop.tuner().status().freeze == Freeze::trouble);
  CHECK_THAT(loop.journal.back().reason, Catch::Contains("link 3 is down"));
  const std::size_t orders = loop.orders.size();
  loop.windows(300);
  CHECK(loop.orders.size() == orders);
  CHECK(loop.role() == Role::champion);
  loop.around = {};
  loop.windows(200);
  CHECK(loop.orders.size() > orders);
}

TEST_CASE("guard: the kill switch brings the champion back and forgets the rest",
          "[tuner_online]") {
  PresetLibrary presets = reckless_library();
  SyntheticPlant plant(6);
  const std::size_t p = param("additive_increase_mbps");
  plant.response = [p](const auto& v) { return v[p] > 10'000 ? 1.0 : 0.0; };
  Loop loop(plant, presets, quick(6));
  loop.pairs(10);
  REQUIRE(loop.tuner().status().incumbent[p] > 10'000);
  loop.around.kill_switch = true;
  loop.windows(loop.delay + 2);
  CHECK(loop.in_force() == test::paper());
  CHECK(loop.tuner().status().freeze == Freeze::killed);
  loop.windows(300);
  CHECK(loop.in_force() == test::paper());
  loop.around.kill_switch = false;
  loop.windows(40);
  CHECK(loop.tuner().status().incumbent == test::paper());
}

TEST_CASE("guard: an order that does not come into force is a refusal", "[tuner_online]") {
  PresetLibrary presets = reckless_library();
  SyntheticPlant plant(7);
  TunerOptions options = quick(7);
  options.apply_windows = 20;
  Loop loop(plant, presets, options);
  loop.delay = 100'000;  // nobody obeys
  loop.windows(200);
  CHECK(loop.count(Event::rejected) == 1);
  CHECK_THAT(loop.journal.back().reason, Catch::Contains("could not be put in force"));
  // Afterwards it asks for the champion again and again, without filling the journal.
  const std::size_t entries = loop.journal.size();
  const std::size_t orders = loop.orders.size();
  loop.windows(200);
  CHECK(loop.journal.size() == entries);
  CHECK(loop.orders.size() > orders);
  CHECK(loop.orders.back().role == Role::champion);
}

TEST_CASE("guard: a candidate that is refused is not tried again", "[tuner_online]") {
  PresetLibrary presets = reckless_library();
  SyntheticPlant plant(8);
  Loop loop(plant, presets, quick(8));
  while (loop.orders.empty() || loop.orders.back().role != Role::candidate) loop.window();
  loop.take(loop.tuner().refused(loop.orders.back().number, "above the link rate"));
  CHECK(loop.journal.back().event == Event::rejected);
  loop.windows(1000);
  std::size_t tried = 0;
  for (const JournalEntry& entry : loop.journal) {
    if (entry.event == Event::tried && entry.name == "reckless") ++tried;
  }
  CHECK(tried == 1);
  CHECK_FALSE(loop.tuner().refused(1, "late"));  // of an order long superseded
}

TEST_CASE("guard: somebody else's parameters are the champion from then on", "[tuner_online]") {
  PresetLibrary presets = reckless_library();
  SyntheticPlant plant(9);
  Loop loop(plant, presets, quick(9));
  loop.windows(100);
  auto values = test::paper();
  values[param("additive_increase_mbps")] = 77;
  loop.tuner().replace_champion(values, "paceline params set");
  CHECK(loop.tuner().status().incumbent == values);
  CHECK_THROWS_AS(loop.tuner().replace_champion({1, 2}, ""), std::invalid_argument);
}

// Drives two tuners with the same windows.
TEST_CASE("state: a tuner restored at any time decides as if it had never stopped",
          "[tuner_online]") {
  PresetLibrary presets = reckless_library();
  const std::size_t p = param("additive_increase_mbps");
  SyntheticPlant plant(10);
  plant.response = [p](const auto& v) { return 0.1 * std::log(v[p]); };
  const TunerOptions options = quick(10);
  std::vector<std::string> first;
  std::vector<std::string> second;
  Tuner original(test::dcqcn(), presets, test::paper(), options,
                 [&](const JournalEntry& e) { first.push_back(journal_json(e)); });
  auto copy =
      std::make_unique<Tuner>(test::dcqcn(), presets, test::paper(), options,
                              [&](const JournalEntry& e) { second.push_back(journal_json(e)); });
  std::vector<double> in_force = test::paper();
  std::uint64_t order = 0;
  for (int i = 0; i < 3000; ++i) {
    if (i % 37 == 0) {  // a new process
      const std::string text = copy->state_text();
      copy = std::make_unique<Tuner>(
          test::dcqcn(), presets, test::paper(), options,
          [&](const JournalEntry& e) { second.push_back(journal_json(e)); });
      const auto errors = copy->restore(text);
      INFO((errors.empty() ? std::string() : errors.front()));
      REQUIRE(errors.empty());
      REQUIRE(copy->state_text() == text);
    }
    Window w = plant.window(in_force, order);
    w.fresh = i % 500 < 495;
    const auto a = original.step(w, {});
    const auto b = copy->step(w, {});
    REQUIRE(a.has_value() == b.has_value());
    if (!a) continue;
    REQUIRE(a->number == b->number);
    REQUIRE(a->values == b->values);
    in_force = a->values;
    order = a->number;
  }
  CHECK(first == second);
  CHECK(first.size() > 10);
  CHECK(original.status().pairs > 30);
}

TEST_CASE("state: what is damaged or another's is refused and changes nothing", "[tuner_online]") {
  PresetLibrary presets = reckless_library();
  SyntheticPlant plant(11);
  Loop loop(plant, presets, quick(11));
  loop.pairs(3);
  const std::string good = loop.tuner().state_text();
  const auto refused = [&](const std::string& text, const std::string& words) {
    const auto errors = loop.tuner().restore(text);
    REQUIRE(errors.size() == 1);
    CHECK_THAT(errors.front(), Catch::Contains(words));
    CHECK(loop.tuner().state_text() == good);
  };
  refused("", "tuner state");
  refused(good.substr(0, good.size() / 2), "tuner state");
  auto json = nlohmann::json::parse(good);
  const auto with = [&](const char* path, nlohmann::json value) {
    auto changed = json;
    changed[nlohmann::json::json_pointer(path)] = std::move(value);
    return changed.dump();
  };
  refused(with("/schema", 2), "schema 2");
  refused(with("/algorithm", "swift"), "swift");
  refused(with("/state/champion", {1, 2}), "parameters are missing");
  refused(with("/state/context", "nowhere"), "context");
  refused(with("/state/mode", 9), "stands for nothing");
  refused(with("/state/blocks", "many"), "type");
  json["state"].erase("credit");
  refused(json.dump(), "credit");
}

}  // namespace
}  // namespace paceline::tuner::online
