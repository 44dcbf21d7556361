#include "dataplane/telemetry/message_meter.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "dataplane/base/numbers/random.h"

namespace paceline::telemetry {
namespace {

constexpr MessageIdeal kIdeal{100'000'000'000, 5'000, 4096, 4178};

TEST_CASE("logarithms are right to a few millionths", "[messages]") {
  CHECK(log2_units(1) == 0);
  CHECK(log2_units(2) == kLogUnit);
  CHECK(log2_units(std::uint64_t{1} << 63) == 63 * std::uint64_t{kLogUnit});
  const std::uint64_t seed = 5;
  INFO("seed " << seed);
  Random random(seed);
  std::uint64_t worst = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t value = (random.next() >> random.below(63)) | 1;
    const double exact = std::log2(static_cast<double>(value)) * kLogUnit;
    const double off = std::abs(exact - static_cast<double>(log2_units(value)));
    worst = std::max(worst, static_cast<std::uint64_t>(std::ceil(off)));
  }
  CHECK(worst <= 5);
  CHECK(worst >= 1);  // else this compares a thing with itself
}

TEST_CASE("the ideal is the round trip, and what lies beyond the first packet at link rate",
          "[messages]") {
  const MessageMeter meter(kIdeal);
  CHECK(meter.ideal_ns(0) == 5'000);
  CHECK(meter.ideal_ns(4096) == 5'000);
  // One more packet of 4178 bytes at 100 Gb/s: 334.24 ns.
  CHECK(meter.ideal_ns(8192) == 5'334);
  // 256 packets, 255 beyond the first.
  CHECK(meter.ideal_ns(1 << 20) == 5'000 + 255 * 33424 / 100);
  // The longest there is, at a slow and a fast link, without overflow: to 0.1 %.
  for (const double gbps : {0.1, 800.0}) {
    MessageIdeal ideal = kIdeal;
    ideal.rate_bps = static_cast<std::uint64_t>(gbps * 1e9);
    const double bytes = 4178.0 * (std::pow(2.0, 31) / 4096 - 1);
    const double expected = 5'000 + bytes * 8 / gbps;
    CHECK(static_cast<double>(MessageMeter(ideal).ideal_ns(1U << 31U)) ==
          Approx(expected).epsilon(1e-3));
  }
}

TEST_CASE("a message is counted by its size, and how slow it was", "[messages]") {
  MessageMeter meter(kIdeal);
  MessageBegun small = meter.begin(1'000, 100);
  MessageBegun middle = meter.begin(1'000, 64 * 1024 + 1);
  MessageBegun large = meter.begin(1'000, (1 << 20) + 1);
  CHECK(meter.outstanding() == 3);
  CHECK(meter.take_changed() == 0b111);
  CHECK(meter.take_changed() == 0);
  meter.end(small, 1'000 + 20'000, MessageEnd::completed);  // four times the ideal
  CHECK(meter.take_changed() == 0b001);
  meter.end(middle, 1'000 + meter.ideal_ns(64 * 1024 + 1) / 2, MessageEnd::completed);
  meter.end(large, 9'000, MessageEnd::failed);
  CHECK(meter.outstanding() == 0);
  const MessagesBySize& f = meter.figures();
  CHECK(f[0].begun == 1);
  CHECK(f[0].completed == 1);
  CHECK(f[0].completed_bytes == 100);
  CHECK(f[0].fct_ns == 20'000);
  CHECK(static_cast<double>(f[0].log2_slowdown) == Approx(2.0 * kLogUnit).margin(10));
  CHECK(f[0].slowdown[15] + f[0].slowdown[16] == 1);
  CHECK(f[1].completed == 1);
  CHECK(f[1].slowdown[0] == 1);  // faster than ideal is ideal
  CHECK(f[1].log2_slowdown == 0);
  CHECK(f[2].failed == 1);
  CHECK(f[2].completed == 0);
  CHECK(f[2].begun_bytes == (1 << 20) + 1);
  CHECK(f[2].fct_ns == 0);
  // A second end of one and the same message is none.
  meter.end(small, 50'000, MessageEnd::completed);
  CHECK(meter.figures()[0].completed == 1);
}

TEST_CASE("what ends in another epoch has crossed, and nothing else is said of it", "[messages]") {
  MessageMeter meter(kIdeal);
  MessageBegun before = meter.begin(0, 10);
  meter.set_epoch(3);
  MessageBegun in = meter.begin(0, 10);
  MessageBegun over = meter.begin(0, 10);
  meter.end(before, 10'000, MessageEnd::completed);
  meter.end(in, 10'000, MessageEnd::completed);
  meter.set_epoch(4);
  meter.end(over, 10'000, MessageEnd::failed);
  const MessageFigures& f = meter.figures()[0];
  CHECK(f.begun == 3);
  CHECK(f.completed == 1);
  CHECK(f.failed == 0);
  CHECK(f.crossed == 2);
  CHECK(f.fct_ns == 10'000);
}

TEST_CASE("figures add up, whatever happens", "[messages]") {
  const std::uint64_t seed = 77;
  INFO("seed " << seed);
  Random random(seed);
  MessageMeter meter(kIdeal);
  std::vector<MessageBegun> open;
  std::uint64_t now = 0;
  for (int i = 0; i < 50'000; ++i) {
    now += random.below(2'000);
    if (random.below(100) == 0) meter.set_epoch(static_cast<std::uint8_t>(random.below(5)));
    if (open.size() < 50 && random.below(2) == 0) {
      open.push_back(meter.begin(now, random.next() >> (33 + random.below(31))));
    } else if (!open.empty()) {
      const std::size_t which = random.below(open.size());
      meter.end(open[which], now,
                random.below(10) == 0 ? MessageEnd::failed : MessageEnd::completed);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
    }
    CHECK(meter.outstanding() == open.size());
  }
  std::uint64_t left = 0;
  for (const MessageFigures& f : meter.figures()) {
    left += f.begun - f.completed - f.failed - f.crossed;
    CHECK(std::accumulate(f.slowdown.begin(), f.slowdown.end(), std::uint64_t{0}) == f.completed);
    CHECK(f.crossed > 0);
    CHECK(f.failed > 0);
    CHECK(f.completed > 0);
  }
  CHECK(left == open.size());
}

}  // namespace
}  // namespace paceline::telemetry
