// One plug-in, one context, no engine: every decision that comes out is within bounds, and the
// guard counts what was not.

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "cc/plugin/call.h"
#include "cc/plugin/plugin.h"
#include "dataplane/base/numbers/random.h"

namespace paceline::cc::plugin {
namespace {

// What the plug-in under test does. Set before a call, as a table of C has no room for a closure.
std::function<void(const paceline_cc_item&)> act;

void act_on(const paceline_cc_item* items, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) act(items[i]);
}

constexpr std::uint64_t kLink = 100'000'000'000;

class Bench {
 public:
  Bench() {
    table_.size = sizeof table_;
    table_.abi_major = PACELINE_CC_ABI_MAJOR;
    table_.abi_minor = PACELINE_CC_ABI_MINOR;
    table_.name = "tested";
    table_.summary = "";
    table_.state_bytes = 20;
    table_.on_events = act_on;
    auto examined = examine(&table_);
    REQUIRE(std::holds_alternative<std::unique_ptr<Plugin>>(examined));
    plugin_ = std::move(std::get<0>(examined));
    PortFacts facts;
    facts.link_rate = Rate{kLink};
    facts.mtu_bytes = 4096;
    params = make_params(*plugin_, {}, facts);
    put_guard(params, guard);
    guard.news = &news;
    set_guard_word(state.bytes, params);
    decision.rate = Rate{kLink};
  }

  const Decision& call(std::int64_t now, std::function<void(const paceline_cc_item&)> what,
                       std::uint64_t sent = 0) {
    act = std::move(what);
    Event event;
    event.signal = Signal::tick;
    event.now = Nanos{now};
    event.sent_bytes = sent;
    on_event(state, params, event, decision);
    return decision;
  }

  Guard guard;
  bool news = false;
  PluginParams params;
  PluginState state{};
  Decision decision;

 private:
  paceline_cc_algorithm table_{};
  std::unique_ptr<Plugin> plugin_;
};

TEST_CASE("a decision within bounds passes as it is") {
  Bench bench;
  const Decision& d = bench.call(1000, [](const paceline_cc_item& item) {
    item.decision->rate_bps = kLink;
    item.decision->window_bytes = 4096;
    item.decision->wake_at_ns = 1100;
    item.decision->wake_bytes = 1;
    item.decision->path = 65'535;
    item.decision->limiter = PACELINE_CC_LIMIT_WINDOW;
    item.decision->timed = 1;
    item.decision->urgent = 1;
  });
  CHECK(d.rate.bps == kLink);
  CHECK(d.window_bytes == 4096);
  CHECK(d.wake_at.count == 1100);
  CHECK(d.wake_bytes == 1);
  CHECK(d.path == 65'535);
  CHECK(d.limiter == Limiter::window);
  CHECK(d.timed);
  CHECK(d.urgent);
  CHECK_FALSE(bench.news);
}

TEST_CASE("a wake-up is good once: what has come due is cleared before the call") {
  Bench bench;
  bench.decision.wake_at = Nanos{1000};
  bench.decision.wake_bytes = 5000;
  std::int64_t seen = 0;
  const Decision& d = bench.call(
      1000, [&](const paceline_cc_item& item) { seen = item.decision->wake_at_ns; }, 5000);
  CHECK(seen == PACELINE_CC_NEVER);
  CHECK(d.wake_at == kNeverNanos);
  CHECK(d.wake_bytes == kUnlimited);
  CHECK_FALSE(bench.news);
}

TEST_CASE("what is out of bounds is clamped and counted") {
  Bench bench;
  CHECK(bench.call(0, [](auto& item) { item.decision->rate_bps = kLink + 1; }).rate.bps == kLink);
  CHECK(bench.guard.clamped == 1);
  CHECK(bench.call(0, [](auto& item) { item.decision->window_bytes = 4095; }).window_bytes == 4096);
  CHECK(bench.call(0, [](auto& item) { item.decision->window_bytes = 0; }).window_bytes == 4096);
  CHECK(bench.guard.clamped == 3);
  CHECK(bench.call(5000, [](auto& item) { item.decision->wake_at_ns = 5099; }).wake_at.count ==
        5100);
  CHECK(bench.call(9000, [](auto& item) { item.decision->wake_at_ns = -1; }).wake_at.count == 9100);
  CHECK(bench.call(9999, [](auto& item) { item.decision->wake_bytes = 0; }).wake_bytes == 1);
  CHECK(bench.guard.clamped == 6);
  CHECK(bench.guard.nonsense == 0);
  CHECK(bench.news);
  CHECK(bench.guard.quarantined == Offence::none);
}

TEST_CASE("nonsense is mended, counted, and ends in quarantine") {
  using Act = std::function<void(const paceline_cc_item&)>;
  // What a NaN becomes on x86, what an infinity becomes elsewhere, and so on.
  const std::vector<Act> kinds{
      [](auto& item) { item.decision->rate_bps = std::uint64_t{1} << 63; },
      [](auto& item) { item.decision->rate_bps = ~std::uint64_t{0}; },
      [](auto& item) { item.decision->rate_bps = 0; },
      [](auto& item) { item.decision->window_bytes = std::uint64_t{1} << 60; },
      [](auto& item) { item.decision->window_bytes = std::uint64_t{1} << 48; },
      [](auto& item) { item.decision->ceiling = 5; },
      [](auto& item) { item.decision->limiter = 7; },
      [](auto& item) { item.decision->limiter = 200; },
      [](auto& item) { item.decision->timed = 2; },
      [](auto& item) { item.decision->urgent = 255; },
      [](auto& item) { item.decision->fallback = 1; },
      [](auto& item) { item.decision->request = 1; },
  };
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    INFO("kind " << i);
    Bench bench;
    for (std::uint32_t n = 1; n < bench.guard.limits.nonsense; ++n) {
      const Decision& d = bench.call(n, kinds[i]);
      CHECK(d.rate.bps >= 1);
      CHECK(d.rate.bps <= kLink);
      CHECK(d.window_bytes == kUnlimited);
      CHECK(d.ceiling == kUnlimited);
      CHECK(static_cast<unsigned>(d.limiter) < kLimiters);
      CHECK_FALSE(d.fallback);
      CHECK_FALSE(d.request);
      REQUIRE(bench.guard.nonsense == n);
    }
    CHECK(bench.guard.quarantined == Offence::none);
    CHECK(bench.call(100, kinds[i]).fallback);
    CHECK(bench.guard.quarantined == Offence::nonsense);
    // Not called any more.
    bool called = false;
    CHECK(bench.call(101, [&](auto&) { called = true; }).fallback);
    CHECK_FALSE(called);
  }
}

TEST_CASE("a rate of nothing is good while a timer will ask again") {
  Bench bench;
  const Decision& d = bench.call(0, [](auto& item) {
    item.decision->rate_bps = 0;
    item.decision->timed = 1;
    item.decision->wake_at_ns = 100;
  });
  CHECK(d.rate.bps == 0);
  CHECK(bench.guard.nonsense == 0);
}

TEST_CASE("writing beyond the state is quarantine at once") {
  Bench bench;
  CHECK_FALSE(bench.call(0, [](auto& item) { std::memset(item.state, 0xFF, 24); }).fallback);
  CHECK(bench.guard.quarantined == Offence::none);  // 20 bytes, rounded up to words
  CHECK(bench.call(1, [](auto& item) { std::memset(item.state, 0xFF, 25); }).fallback);
  CHECK(bench.guard.quarantined == Offence::overrun);
}

TEST_CASE("a plug-in that is slow again and again is found by the clock it is given") {
  struct Ticks {
    std::uint64_t now = 0;
  } ticks;
  Bench bench;
  bench.guard.clock.context = &ticks;
  bench.guard.clock.read = [](const void* context) {
    return static_cast<const Ticks*>(context)->now;
  };
  put_guard(bench.params, bench.guard);
  const std::uint64_t budget = bench.guard.limits.budget_ns;
  const auto lasts = [&](std::uint64_t ns) {
    return [&ticks, ns](const paceline_cc_item&) { ticks.now += ns; };
  };
  const std::uint32_t one_of = bench.guard.limits.timed_one_of;
  std::int64_t now = 0;

  // At the budget is within it. One slow call now and then is the machine's doing.
  for (std::uint32_t i = 0; i < 100 * one_of; ++i) bench.call(++now, lasts(budget));
  CHECK(bench.guard.slow == 0);
  for (std::uint32_t i = 1; i <= 300 * one_of; ++i) {
    bench.call(++now, lasts(i % (3 * one_of) == 0 ? 50 * budget : 100));
  }
  CHECK(bench.guard.slow == 100);
  CHECK(bench.guard.quarantined == Offence::none);

  for (std::uint32_t i = 0; i < 8 * one_of; ++i) bench.call(++now, lasts(budget + 1));
  CHECK(bench.guard.quarantined == Offence::slow);
  CHECK(bench.decision.fallback);
}

TEST_CASE("whatever bytes a plug-in leaves, the decision is within bounds") {
  for (const std::uint64_t seed : {1ULL, 2ULL, 3ULL}) {
    INFO("seed " << seed);
    Random random(seed);
    Bench bench;
    bench.guard.limits.nonsense = ~std::uint32_t{0};
    std::int64_t now = 0;
    for (int i = 0; i < 20'000; ++i) {
      now += static_cast<std::int64_t>(random.below(1'000));
      const Decision& d = bench.call(now, [&](const paceline_cc_item& item) {
        auto* words = reinterpret_cast<unsigned char*>(item.decision);
        for (std::size_t at = 0; at < sizeof(paceline_cc_decision); ++at) {
          if (random.below(4) == 0) words[at] = static_cast<unsigned char>(random.below(256));
        }
      });
      REQUIRE(d.rate.bps <= kLink);
      REQUIRE((d.rate.bps != 0 || (d.timed && d.wake_at != kNeverNanos)));
      REQUIRE(d.window_bytes >= 4096);
      REQUIRE((d.window_bytes >> 48 == 0 || d.window_bytes >> 48 == 0xFFFF));
      REQUIRE(d.wake_at.count >= now + 100);
      REQUIRE(d.wake_bytes != 0);
      REQUIRE(d.ceiling == kUnlimited);
      REQUIRE(static_cast<unsigned>(d.limiter) < kLimiters);
      unsigned char flags[4];
      std::memcpy(flags, reinterpret_cast<const unsigned char*>(&d) + 43, 4);
      for (const unsigned char flag : flags) REQUIRE(flag <= 1);
    }
    CHECK(bench.guard.nonsense > 10'000);
  }
}

}  // namespace
}  // namespace paceline::cc::plugin
