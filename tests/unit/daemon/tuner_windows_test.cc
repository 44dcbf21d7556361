// Windows of the tuner are what telemetry says between two looks, of all NICs.
#include "control/daemon/tuner/tuner_windows.h"

#include <catch2/catch.hpp>

#include "tests/unit/daemon/fake_segment.h"

namespace paceline::daemon {

namespace {

using tuner::online::Window;

constexpr std::int64_t kWindowNs = 10'000'000;
constexpr std::int64_t kBeginNs = 1'700'000'000'000'000'000;

struct WindowsRig {
  explicit WindowsRig(FakeSegment& s) : segment(s) { open(); }
  void open() {
    REQUIRE(sampler.open(segment.bytes()).empty());
    for (std::size_t nic = 0; nic < segment.setup.nics.size(); ++nic) segment.write(nic);
  }
  std::uint64_t& value(std::string_view series) {
    return segment.values.at(*sampler.find_series(series));
  }
  Window look(std::int64_t after = kWindowNs) {
    now += after;
    sampler.sample(now);
    return windows.look(sampler, now);
  }
  FakeSegment& segment;
  Sampler sampler{{}};
  TunerWindows windows;
  std::int64_t now = kBeginNs;
};

}  // namespace

TEST_CASE("a window is the difference of two looks: sums of messages, the busiest receiver",
          "[live_tuner]") {
  FakeSegment segment({"h0", "h1"});
  WindowsRig rig(segment);
  CHECK_FALSE(rig.look().fresh);  // nothing to compare with
  segment.messages[1].begun = 10;
  segment.messages[1].completed = 8;
  segment.messages[1].slowdown[12] = 8;
  rig.value("rx_data_bytes") = 1000;
  rig.value("rx_data_packets") = 10;
  rig.value("rx_ce_packets") = 3;
  rig.value("retransmitted_packets") = 2;
  rig.value("limited_path_ns") = 700;
  rig.value("worker_busy_cycles") = 6'000;  // of one worker, that both NICs tell of
  rig.value("worker_packets") = 30;
  segment.write(0);
  rig.value("rx_data_bytes") = 5000;
  rig.value("rx_ce_packets") = 1;
  rig.value("paused_ns") = 40;
  segment.write(1);
  const Window w = rig.look();
  REQUIRE(w.fresh);
  CHECK(w.end_ns - w.begin_ns == kWindowNs);
  CHECK(w.messages[1].begun == 20);
  CHECK(w.messages[1].completed == 16);
  CHECK(w.messages[1].slowdown[12] == 16);
  CHECK(w.rx_bytes == 5000);
  CHECK(w.ce_packets == 1);  // of the one that received most
  CHECK(w.retransmitted == 4);
  CHECK(w.paused_ns == 40);
  CHECK(w.line_bps == 25'000'000'000);
  CHECK(w.limiter_ns[3] == 1400);
  CHECK(w.cycles == 12'000);
  CHECK(w.cycle_packets == 60);
  CHECK(w.jain < 0);
  const Window idle = rig.look();
  CHECK(idle.fresh);
  CHECK(idle.rx_bytes == 0);
  CHECK(idle.cycles == 0);
  CHECK(idle.messages[1].begun == 0);
}

TEST_CASE("the queue is as deep as it became, and not measured where it is not emulated",
          "[live_tuner]") {
  FakeSegment segment({"h0"});
  WindowsRig rig(segment);
  rig.look();
  CHECK(rig.look().queue_p99_bytes < 0);
  rig.value("last_hop_queue_bytes") = 100;
  rig.value("last_hop_queue_max_bytes") = 900;
  segment.write(0);
  CHECK(rig.look().queue_p99_bytes == 900);
  CHECK(rig.look().queue_p99_bytes == 100);  // it was not as deep again
}

TEST_CASE("senders and delay are of queue pairs that move something", "[live_tuner]") {
  FakeSegment segment({"h0"});
  WindowsRig rig(segment);
  const auto put = [&](std::uint64_t bytes) {
    for (std::uint32_t i = 0; i < 5; ++i) {
      telemetry::QueuePairRecord record;
      record.number = i + 1;
      record.peer[0] = static_cast<std::uint8_t>(i / 2);  // 0, 0, 1, 1, 2
      record.rx_bytes = i == 4 ? 7 : bytes;
      record.tx_bytes = bytes;
      record.min_rtt_ns = 5'000;
      record.srtt_ns = 6'000 + 1000 * i;
      segment.writer->write_record(0, i, record);
    }
  };
  put(10);
  rig.look();
  CHECK(rig.look().senders == 0);  // the first glance compares with nothing
  put(20);
  const Window w = rig.look(200'000'000);
  CHECK(w.senders == 2);
  CHECK(w.delay_p99_ns == 4'000);
  CHECK(rig.look(200'000'000).senders == 0);
}

TEST_CASE("windows are not fresh without telemetry, after another service, or when time goes back",
          "[live_tuner]") {
  FakeSegment segment({"h0"});
  FakeSegment other({"h0"}, 2);
  WindowsRig rig(segment);
  rig.value("tx_data_bytes") = 5000;
  segment.write(0);
  rig.look();
  REQUIRE(rig.look().fresh);
  const Window back = rig.look(-50'000'000);
  CHECK_FALSE(back.fresh);
  CHECK(back.end_ns > back.begin_ns);
  CHECK(rig.look().fresh);
  rig.sampler.close();
  CHECK_FALSE(rig.look().fresh);
  rig.open();
  CHECK_FALSE(rig.look().fresh);
  CHECK(rig.look().fresh);
  REQUIRE(rig.sampler.open(other.bytes()).empty());
  CHECK_FALSE(rig.look().fresh);
  CHECK(rig.look().fresh);
  rig.value("tx_data_bytes") = 10;  // less than before: the count has restarted
  segment.write(0);
  REQUIRE(rig.sampler.open(segment.bytes()).empty());
  rig.look();
  rig.value("tx_data_bytes") = 4;
  segment.write(0);
  CHECK_FALSE(rig.look().fresh);
}

}  // namespace paceline::daemon
