// The sampler over a segment that a test writes.
#include "control/daemon/telemetry/sampler.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "control/daemon/telemetry/message_series.h"
#include "dataplane/base/numbers/random.h"
#include "tests/unit/daemon/fake_segment.h"

namespace paceline::daemon {

namespace {

using telemetry::NicSeries;

constexpr std::int64_t kTick = 10'000'000;
constexpr std::int64_t kEpoch = 1'700'000'000'000'000'000;

}  // namespace

TEST_CASE("samples, histories and message figures come from the segment", "[sampler]") {
  FakeSegment segment({"h0", "h1"});
  Sampler sampler({});
  REQUIRE(sampler.open(segment.bytes()).empty());
  REQUIRE(sampler.nics().size() == 2);
  const std::size_t sent = *sampler.find_series("tx_data_bytes");
  const std::size_t begun = *sampler.find_series("messages_begun_medium");
  const std::size_t p99 = *sampler.find_series("slowdown_p99_medium");
  for (std::uint64_t i = 0; i <= 200; ++i) {
    segment.values[sent] = i * 100;
    segment.messages[1].begun = i;
    segment.messages[1].completed = i;
    segment.messages[1].slowdown[i % 10 == 0 ? 16 : 0] += 1;
    segment.write(0);
    sampler.sample(kEpoch + static_cast<std::int64_t>(i) * kTick);
  }
  CHECK(sampler.values(0)[sent] == 20'000);
  CHECK(sampler.values(1)[sent] == 0);
  CHECK(sampler.values(0)[begun] == 200);
  // One in ten was in bucket 16: up to 2^(17/8).
  CHECK(sampler.values(0)[p99] ==
        static_cast<std::uint64_t>(std::lround(1000 * std::exp2(17.0 / 8))));
  const std::array<std::size_t, 1> names{sent};
  const HistoryPart part = sampler.history(0).part(kEpoch, kEpoch + 2'000'000'000, names);
  REQUIRE(part.slots == 200);
  CHECK(part.series[0].values[1] == 100U);
}

TEST_CASE("lost, torn and stalled telemetry is told from what is fresh", "[sampler]") {
  FakeSegment segment({"h0"});
  SamplerSettings settings;
  settings.stalled_after = 5;
  Sampler sampler(settings);
  CHECK_FALSE(sampler.fresh());
  REQUIRE(sampler.open(segment.bytes()).empty());
  segment.write(0);
  std::int64_t now = kEpoch;
  const auto after = [&](int samples) {
    for (int i = 0; i < samples; ++i) sampler.sample(now += kTick);
    return sampler.state(0);
  };
  CHECK(after(100) == TelemetryState::fresh);  // idle: nothing to tell
  segment.values[telemetry::series_index(NicSeries::inflight_bytes)] = 4096;
  segment.write(0);
  CHECK(after(5) == TelemetryState::fresh);
  CHECK(after(1) == TelemetryState::stalled);
  segment.write(0);
  CHECK(after(1) == TelemetryState::fresh);

  // A writer that died in the middle.
  telemetry::NicBody* const body =
      reinterpret_cast<telemetry::NicBody*>(reinterpret_cast<std::byte*>(segment.memory.data()) +
                                            sampler.header().nics_at + sampler.header().body_at);
  ++body->sequence;
  CHECK(after(1) == TelemetryState::torn);
  --body->sequence;
  CHECK(after(1) == TelemetryState::fresh);
  sampler.close();
  CHECK(sampler.state(0) == TelemetryState::lost);
  CHECK_FALSE(sampler.fresh());
}

TEST_CASE("changes of parameters, arms and the guard are told once", "[sampler]") {
  FakeSegment segment({"h0", "h1"});
  Sampler sampler({});
  segment.body.generation = 7;
  segment.write(0);
  segment.write(1);
  REQUIRE(sampler.open(segment.bytes()).empty());
  sampler.sample(kEpoch);
  CHECK(sampler.changes().empty());  // the first look is not a change
  segment.body.generation = 8;
  segment.body.arm = 1;
  segment.body.epoch = 3;
  segment.write(1);
  sampler.sample(kEpoch + kTick);
  REQUIRE(sampler.changes().size() == 1);
  CHECK(sampler.changes()[0].nic == 1);
  CHECK(sampler.changes()[0].before.generation == 7);
  CHECK(sampler.changes()[0].after.epoch == 3);
  sampler.sample(kEpoch + 2 * kTick);
  CHECK(sampler.changes().empty());
}

TEST_CASE("history goes on over a service that is started again", "[sampler]") {
  const std::array<std::size_t, 1> names{0};
  const auto sum = [&](const Sampler& sampler, std::string_view nic) {
    std::uint64_t total = 0;
    const auto at = sampler.find_nic(nic);
    const HistoryPart part = sampler.history(*at).part(kEpoch, kEpoch + 60'000'000'000, names);
    for (const auto& value : part.series[0].values) total += value.value_or(0);
    return total;
  };
  std::int64_t now = kEpoch;
  const auto run = [&](Sampler& sampler, FakeSegment& segment, std::uint64_t from) {
    for (std::uint64_t i = 0; i < 10; ++i) {
      segment.values[0] = from + i;
      for (std::size_t nic = 0; nic < segment.setup.nics.size(); ++nic) segment.write(nic);
      sampler.sample(now += kTick);
    }
  };
  FakeSegment first({"h0", "h1"}, 1);
  FakeSegment second({"h1", "h2"}, 2);
  Sampler sampler({});
  REQUIRE(sampler.open(first.bytes()).empty());
  run(sampler, first, 500);
  sampler.close();
  REQUIRE(sampler.open(second.bytes()).empty());
  CHECK(sampler.take_notes().empty());
  run(sampler, second, 0);
  CHECK(sum(sampler, "h1") == 9 + 9 - 1);  // the slot being filled is not told
  CHECK(sum(sampler, "h2") == 9 - 1);
}

TEST_CASE("queue pairs are read, and followed while they live", "[sampler]") {
  FakeSegment segment({"h0"});
  Sampler sampler({});
  REQUIRE(sampler.open(segment.bytes()).empty());
  telemetry::QueuePairRecord record;
  record.number = 17;
  record.tx_bytes = 5;
  segment.writer->write_record(0, 3, record);
  segment.write(0);
  sampler.sample(kEpoch);
  sampler.look_at_queue_pairs(kEpoch);
  sampler.look_at_queue_pairs(kEpoch + 1'000'000'000);
  REQUIRE(sampler.queue_pairs(0).size() == 1);
  CHECK(sampler.queue_pair_history().looks(0, 17).size() == 2);
  record.number = 0;
  segment.writer->write_record(0, 3, record);
  sampler.look_at_queue_pairs(kEpoch + 2'000'000'000);
  CHECK(sampler.queue_pair_history().followed() == 0);
}

TEST_CASE("a segment that is none is refused, and nothing else changes", "[sampler]") {
  Sampler sampler({});
  std::vector<Line> memory(4);
  CHECK_FALSE(sampler.open(std::as_bytes(std::span(memory))).empty());
  CHECK_FALSE(sampler.is_open());
  sampler.sample(kEpoch);
  sampler.look_at_queue_pairs(kEpoch);
  CHECK(sampler.samples() == 0);
}

TEST_CASE("looks that leave distributions out find the same series and histories", "[sampler]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    FakeSegment segment({"h0"});
    Sampler whole({});
    Sampler totals({});
    REQUIRE(whole.open(segment.bytes()).empty());
    REQUIRE(totals.open(segment.bytes()).empty());
    totals.set_detail(telemetry::MessageDetail::totals);
    std::vector<std::size_t> all(whole.series().size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    std::int64_t now = kEpoch;
    for (int i = 0; i < 500; ++i) {
      now += kTick + static_cast<std::int64_t>(random.below(1'000'000));
      if (random.below(3) != 0) {
        segment.values[random.below(segment.values.size())] += random.below(100);
        telemetry::MessageFigures& figures = segment.messages[random.below(3)];
        ++figures.completed;
        ++figures.slowdown[random.below(figures.slowdown.size())];
        segment.write(0);
      }
      whole.sample(now);
      totals.sample(now);
      REQUIRE(std::equal(whole.values(0).begin(), whole.values(0).end(), totals.values(0).begin()));
    }
    const HistoryPart a = whole.history(0).part(0, now, all);
    const HistoryPart b = totals.history(0).part(0, now, all);
    REQUIRE(a.slots == b.slots);
    for (std::size_t i = 0; i < all.size(); ++i) {
      REQUIRE(a.series[i].values == b.series[i].values);
      REQUIRE(a.series[i].highest == b.series[i].highest);
    }
    // As soon as they are asked for they are there, and of the look that the totals are of.
    totals.set_detail(telemetry::MessageDetail::whole);
    totals.sample(now += kTick);
    for (std::size_t size = 0; size < telemetry::kMessageSizes; ++size) {
      CHECK(totals.latest(0).messages[size].slowdown == segment.messages[size].slowdown);
    }
  }
}

TEST_CASE("quantiles of slowdowns are of what was completed in between", "[sampler]") {
  telemetry::MessageFigures before;
  before.slowdown[40] = 1000;
  telemetry::MessageFigures now = before;
  CHECK(slowdown_quantile(before, now, 0.5) == 0);
  now.slowdown[7] += 98;
  now.slowdown[15] += 2;
  CHECK(slowdown_quantile(before, now, 0.5) == Approx(2.0));
  CHECK(slowdown_quantile(before, now, 0.98) == Approx(2.0));
  CHECK(slowdown_quantile(before, now, 0.99) == Approx(4.0));
}

}  // namespace paceline::daemon
