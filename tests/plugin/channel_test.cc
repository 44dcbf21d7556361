// The sending half of a plug-in with a receiving one: the host's channel holds it to what was
// granted, and it decides how fast that leaves. One context, no engine.

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "cc/dispatch.h"
#include "cc/plugin/plugin.h"
#include "tests/unit/cc/grant_support.h"

namespace paceline::cc::plugin {
namespace {

std::function<void(const paceline_cc_item&)> act_in_channel;

void act_on_channel(const paceline_cc_item* items, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) act_in_channel(items[i]);
}

void grant_nothing(paceline_cc_round* /*round*/) {}

constexpr std::uint64_t kLinkBps = 100'000'000'000;

class ChannelBench {
 public:
  explicit ChannelBench(bool with_sender = true) {
    half_.size = sizeof half_;
    half_.on_round = grant_nothing;
    table_.size = sizeof table_;
    table_.abi_major = PACELINE_CC_ABI_MAJOR;
    table_.abi_minor = PACELINE_CC_ABI_MINOR;
    table_.name = "tested";
    table_.summary = "";
    table_.context = PACELINE_CC_PER_PEER_CLASS;
    table_.wants = PACELINE_CC_WANT(PACELINE_CC_NACK);
    table_.state_bytes = PACELINE_CC_CHANNEL_STATE_BYTES;
    table_.receiver = &half_;
    if (with_sender) table_.on_events = act_on_channel;
    auto examined = examine(&table_);
    REQUIRE(std::holds_alternative<std::unique_ptr<Plugin>>(examined));
    plugin_ = std::move(std::get<0>(examined));
    params_ = make_params(*plugin_, {}, test::grant_facts());
    put_guard(params_, guard);
    set_guard_word(state_.bytes, params_);
    act_in_channel = [](const paceline_cc_item& item) { item.decision->rate_bps = kLinkBps; };
    call(Signal::start, 0);
  }

  const Decision& call(Signal signal, std::int64_t now, const GrantMessage* grant = nullptr) {
    Event event = event_of(signal, now);
    event.grant = grant;
    event.message_bytes = signal == Signal::message ? backlog_bytes : 0;
    on_event(state_, params_, event, decision);
    return decision;
  }
  const Decision& grant(std::int64_t now, std::uint64_t limit) {
    GrantMessage message;
    message.grant_seq = ++sequence_;
    message.limit_total = limit;
    message.timestamp_echo_ns = static_cast<std::uint32_t>(now);
    return call(Signal::grant, now, &message);
  }
  RequestMessage request(std::int64_t now) {
    RequestMessage message;
    fill_request(state_, params_, event_of(Signal::tick, now), decision, message);
    return message;
  }

  Guard guard;
  Decision decision;
  std::uint64_t backlog_bytes = 0;
  std::uint64_t sent_total = 0;

 private:
  Event event_of(Signal signal, std::int64_t now) const {
    Event event;
    event.signal = signal;
    event.now = Nanos{now};
    event.backlog_bytes = backlog_bytes;
    event.sent_total = sent_total;
    return event;
  }

  paceline_cc_receiver half_{};
  paceline_cc_algorithm table_{};
  std::unique_ptr<Plugin> plugin_;
  PluginParams params_;
  PluginState state_{};
  std::uint16_t sequence_ = 0;
};

TEST_CASE("what is granted leaves at the plug-in's rate, and nothing beyond it") {
  ChannelBench bench;
  bench.backlog_bytes = 1'000'000;
  act_in_channel = [](const paceline_cc_item& item) {
    item.decision->rate_bps = kLinkBps / 4;
    item.decision->window_bytes = 50'000;
    item.decision->wake_at_ns = item.event->now_ns + 500;
    item.decision->timed = 1;
    item.decision->path = 9;
  };
  const Decision& d = bench.call(Signal::message, 1'000);
  CHECK(d.request);
  CHECK(d.ceiling > 0);  // the start of the message, a round trip's worth
  CHECK(d.ceiling < 100'000);
  CHECK(bench.request(1'000).demand_bytes > 1'000'000);
  bench.grant(2'000, 300'000);
  CHECK(d.ceiling == 300'000);
  CHECK(d.rate.bps == kLinkBps / 4);
  CHECK(d.window_bytes == 50'000);
  CHECK(d.wake_at.count == 2'500);
  CHECK(d.timed);
  CHECK(d.path == 9);
  // Used up: whatever the plug-in says, nothing leaves.
  bench.sent_total = 300'000;
  bench.call(Signal::tick, 3'000);
  CHECK(d.ceiling == 300'000);
  CHECK(d.rate.bps == 0);
  CHECK(bench.guard.clamped + bench.guard.nonsense == 0);
}

TEST_CASE("events that the plug-in does not want come as ticks") {
  ChannelBench bench;
  bench.backlog_bytes = 1'000'000;
  std::vector<unsigned> seen;
  act_in_channel = [&](const paceline_cc_item& item) { seen.push_back(item.event->signal); };
  bench.call(Signal::message, 1'000);
  bench.grant(2'000, 300'000);
  bench.call(Signal::nack, 3'000);
  bench.call(Signal::tick, 4'000);
  CHECK(seen == std::vector<unsigned>{PACELINE_CC_TICK, PACELINE_CC_TICK, PACELINE_CC_NACK,
                                      PACELINE_CC_TICK});
}

TEST_CASE("without a sending half of its own what is granted leaves at line rate") {
  ChannelBench bench(false);
  bench.backlog_bytes = 1'000'000;
  bench.call(Signal::message, 1'000);
  const Decision& d = bench.grant(2'000, 300'000);
  CHECK(d.ceiling == 300'000);
  CHECK(d.rate.bps == kLinkBps);
  CHECK(d.window_bytes == kUnlimited);
}

TEST_CASE("a sending half may write all of its bytes, and none behind them") {
  ChannelBench bench;
  bench.backlog_bytes = 1'000'000;
  act_in_channel = [](const paceline_cc_item& item) {
    std::memset(item.state, 0xFF, PACELINE_CC_CHANNEL_STATE_BYTES);
  };
  const Decision& d = bench.call(Signal::message, 1'000);
  bench.grant(2'000, 300'000);
  CHECK(bench.guard.quarantined == Offence::none);
  CHECK(d.ceiling == 300'000);

  act_in_channel = [](const paceline_cc_item& item) {
    std::memset(item.state, 0xFF, PACELINE_CC_CHANNEL_STATE_BYTES + 1);
  };
  bench.sent_total = 100'000;
  bench.call(Signal::tick, 3'000);
  CHECK(bench.guard.quarantined == Offence::overrun);
  CHECK_FALSE(bench.guard.by_receiver);
  // The receiver hears once that nothing is wanted any more; the fallback sends what there is.
  CHECK(d.fallback);
  CHECK(d.ceiling == kUnlimited);
  CHECK(d.rate.bps > 0);
  REQUIRE(d.request);
  const RequestMessage request = bench.request(3'000);
  CHECK(request.demand_bytes == 0);
  CHECK(request.sent_total == 100'000);
  CHECK(request.round == 1);
  unsigned calls = 0;
  act_in_channel = [&](const paceline_cc_item&) { ++calls; };
  bench.grant(4'000, 400'000);
  bench.call(Signal::message, 5'000);
  CHECK(d.fallback);
  CHECK_FALSE(d.request);
  CHECK(calls == 0);
}

TEST_CASE("where no receiver answers, the fallback takes over, and the plug-in is not to blame") {
  ChannelBench bench;
  bench.backlog_bytes = 1'000'000;
  bench.call(Signal::message, 0);
  const Decision& d = bench.decision;
  // Eight REQUESTs, two round trips apart at first, each twice as far from the next: within 10 ms.
  while (!d.fallback && d.wake_at.count < 10'000'000) bench.call(Signal::tick, d.wake_at.count);
  CHECK(d.fallback);
  CHECK(bench.guard.quarantined == Offence::none);
  // Back at the first GRANT.
  bench.grant(d.wake_at.count, 300'000);
  CHECK_FALSE(d.fallback);
  CHECK(d.ceiling == 300'000);
}

}  // namespace
}  // namespace paceline::cc::plugin
