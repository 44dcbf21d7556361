#include "control/experiment/live/blocks/block.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "control/experiment/live/plan/schedule.h"
#include "dataplane/base/numbers/distributions.h"
#include "dataplane/telemetry/series.h"

using namespace paceline;
using namespace paceline::experiment::live;

namespace {

using telemetry::MessageFigures;

void complete(MessageFigures& m, double slowdown, std::uint64_t times = 1) {
  const double bits = std::log2(slowdown);
  m.completed += times;
  m.log2_slowdown += times * static_cast<std::uint64_t>(std::llround(bits * telemetry::kLogUnit));
  m.slowdown[static_cast<std::size_t>(bits * 8)] += times;
}

NicSample sample(const char* nic, std::uint64_t at_ns) {
  NicSample s;
  s.nic = nic;
  s.at_ns = at_ns;
  s.epoch = 7;
  s.arm = 1;
  s.rate_bps = 100'000'000'000;
  s.channels = 4;
  return s;
}

constexpr BlockPlace kPlace{6, 0, 1, 7};

// A block of a second on one NIC.
struct OneNic {
  std::vector<NicSample> begin{sample("h0", 1'000'000'000)};
  std::vector<NicSample> end{sample("h0", 2'000'000'000)};
  BlockRecord record() const { return block_between(kPlace, begin, end); }
};

}  // namespace

TEST_CASE("a block's figures are differences of two edges") {
  OneNic nic;
  MessageFigures& before = nic.begin[0].messages[0];
  before.begun = 500;
  complete(before, 2, 480);  // a past that must not show
  nic.end[0].messages = nic.begin[0].messages;
  MessageFigures& after = nic.end[0].messages[0];
  after.begun += 100;
  after.begun_bytes += 2'500'000'000;
  complete(after, 4, 100);
  set_total(nic.begin[0].totals, "tx_data_packets", 10);
  set_total(nic.end[0].totals, "tx_data_packets", 10'010);
  set_total(nic.begin[0].totals, "retransmitted_packets", 1);
  set_total(nic.end[0].totals, "retransmitted_packets", 6);
  CHECK_FALSE(set_total(nic.end[0].totals, "a_later_series", 1));

  const BlockRecord r = nic.record();
  REQUIRE(r.why == "");
  CHECK(r.values[BlockMetric::log_slowdown] == Approx(std::log(4)));
  CHECK(r.values[BlockMetric::p99_short] == Approx(4).epsilon(0.1));
  CHECK(r.values[BlockMetric::completed_share] == 1);
  CHECK(r.values[BlockMetric::offered] == Approx(2e10));
  CHECK(r.load == Approx(0.2));
  CHECK(r.values[BlockMetric::retransmitted_share] == Approx(5e-4));
  CHECK(std::isnan(r.values[BlockMetric::pause_share]));  // not counted is not zero
  CHECK(r.channels == 4);
}

TEST_CASE("cycles per packet, where two NICs tell of one worker") {
  OneNic two;
  for (auto* edge : {&two.begin, &two.end}) edge->push_back(sample("h1", edge->front().at_ns));
  for (NicSample& s : two.begin) {
    set_total(s.totals, "worker_busy_cycles", 5'000);
    set_total(s.totals, "worker_packets", 10);
  }
  for (NicSample& s : two.end) {
    set_total(s.totals, "worker_busy_cycles", 45'000);
    set_total(s.totals, "worker_packets", 30);
  }
  CHECK(two.record().values[BlockMetric::cycles_per_packet] == 2'000);
  two.end[1].totals.worker_packets = kNotCounted;  // of one of them not known
  CHECK(std::isnan(two.record().values[BlockMetric::cycles_per_packet]));
}

TEST_CASE("what makes a block worthless discards it, with the reason") {
  const auto why = [](auto change) {
    OneNic nic;
    nic.end[0].messages[0].begun = 5;
    change(nic);
    const BlockRecord r = nic.record();
    CHECK((r.discarded != Discarded::no) == !r.why.empty());
    return r.why;
  };
  CHECK(why([](OneNic&) {}) == "");
  CHECK(why([](OneNic& n) { n.end[0].guard = 3; }) == "h0: guard trip 3");
  CHECK(why([](OneNic& n) { n.end[0].arm = 0; }) == "h0: arm 0 in force, 1 scheduled");
  CHECK(why([](OneNic& n) { n.begin[0].epoch = 6; }) == "h0: epoch 6 in force, 7 scheduled");
  CHECK(why([](OneNic& n) { n.begin[0].messages[0].begun = 6; }) == "h0: counters ran backwards");
  CHECK(why([](OneNic& n) { n.end[0].at_ns = n.begin[0].at_ns; }) == "h0: no time passed");
  CHECK(why([](OneNic& n) { n.end[0].nic = "h1"; }) == "h0 at the begin, h1 at the end");
  CHECK(why([](OneNic& n) { n.end.clear(); }) == "1 NICs at the begin, 0 at the end");
}

TEST_CASE("an arm that stalls its slow messages does not look faster") {
  // Both arms meet the same messages: slowdown 2, one in ten 30. The healthy arm completes all; the
  // other never completes the slow ones, and those it completes are as fast.
  OneNic healthy, stalling;
  complete(healthy.end[0].messages[0], 2, 900);
  complete(healthy.end[0].messages[0], 30, 100);
  complete(stalling.end[0].messages[0], 2, 900);
  healthy.end[0].messages[0].begun = stalling.end[0].messages[0].begun = 1000;
  const BlockRecord a = healthy.record();
  const BlockRecord b = stalling.record();
  // The mean over completed messages is fooled:
  CHECK(std::log(2) < a.values[BlockMetric::log_slowdown]);
  // the restricted mean is not, nor the quantile.
  CHECK(b.values[BlockMetric::log_slowdown] > a.values[BlockMetric::log_slowdown] + 0.3);
  CHECK(b.values[BlockMetric::p99_short] == kStalledSlowdown);
  CHECK(a.values[BlockMetric::p99_short] < 40);
  CHECK(b.values[BlockMetric::completed_share] == Approx(0.9));
  CHECK(contrast(BlockMetric::completed_share, a.values[BlockMetric::completed_share],
                 b.values[BlockMetric::completed_share]) == Approx(-0.1));

  // Stalled altogether: not "no data", but the worst there is.
  OneNic dead;
  dead.end[0].messages[0].begun = 1000;
  CHECK(dead.record().values[BlockMetric::log_slowdown] == Approx(std::log(4096)));
  CHECK(dead.record().values[BlockMetric::completed_share] == 0);
}

TEST_CASE("messages in flight at either edge of a healthy block cost it nothing") {
  OneNic nic;
  nic.begin[0].messages[0].begun = 1050;
  complete(nic.begin[0].messages[0], 2, 1000);
  nic.end[0].messages = nic.begin[0].messages;
  nic.end[0].messages[0].begun += 2000;
  complete(nic.end[0].messages[0], 2, 2000);  // 50 in flight before and after
  CHECK(nic.record().values[BlockMetric::log_slowdown] == Approx(std::log(2)));
  // Messages of the arm before that end late are `crossed`, and hide nothing of this arm's: 40 of
  // its own are missing.
  nic.end[0].messages[0].begun += 40;
  nic.end[0].messages[0].crossed += 40;
  CHECK(nic.record().messages[0].stalled() == 40);
}

TEST_CASE("quantiles lie within their bucket, for any shape") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    MessageFigures m;
    std::vector<double> all;
    for (int i = 0; i < 500; ++i) {
      all.push_back(1 + exponential(random, 5));
      complete(m, all.back());
    }
    std::sort(all.begin(), all.end());
    for (const double share : {0.1, 0.5, 0.99}) {
      const double exact = all[static_cast<std::size_t>(share * 500) - 1];
      CHECK(slowdown_quantile(m.slowdown, 0, share) == Approx(exact).epsilon(0.0951));
    }
  }
}

TEST_CASE("records survive the file, and a last line that was cut off") {
  OneNic nic;
  nic.end[0].messages[1].begun = 12;
  complete(nic.end[0].messages[1], 3, 11);
  BlockRecord good = nic.record();
  good.values[BlockMetric::temperature] = 51.5;
  BlockRecord bad;
  bad.place = {7, 0, 0, 8};
  bad.discarded = Discarded::itself;
  bad.why = "environment: \"link\" down";
  const std::string text = record_line(good) + record_line(bad);
  const auto read = read_blocks(text, "blocks.jsonl");
  REQUIRE(read.ok());
  REQUIRE(read.value.records.size() == 2);
  CHECK_FALSE(read.value.cut_off);
  CHECK(read.value.whole_bytes == text.size());
  CHECK(record_line(read.value.records[0]) == record_line(good));
  CHECK(read.value.records[1].why == bad.why);
  CHECK(read.value.records[1].discarded == Discarded::itself);
  CHECK(std::isnan(read.value.records[1].values[BlockMetric::goodput]));
  // However short the last line became, what is before it stays.
  const std::string first = record_line(good);
  for (std::size_t cut = first.size(); cut < text.size(); ++cut) {
    const auto short_read = read_blocks(std::string_view(text).substr(0, cut), "b");
    REQUIRE(short_read.ok());
    CHECK(short_read.value.records.size() == 1);
    CHECK(short_read.value.cut_off == (cut > first.size()));
    CHECK(short_read.value.whole_bytes == first.size());
  }
}

TEST_CASE("a damaged line in the middle is an error with its place") {
  const std::string line = record_line(BlockRecord{});
  const auto read = read_blocks(line + "{]\n" + line, "blocks.jsonl");
  REQUIRE(read.errors.size() == 1);
  CHECK(read.errors[0] == "blocks.jsonl:2: not a JSON object");
  const auto wrong = read_blocks("{\"schema\":1,\"block\":-1}\n", "b");
  CHECK_FALSE(wrong.ok());
}

// A total whose name is not a series would silently leave its metrics without a value.
TEST_CASE("every total of a block is a series of the segment") {
  NicTotals totals;
  const auto all = telemetry::nic_series();
  for (const std::string_view name : total_series()) {
    INFO(name);
    CHECK(std::any_of(all.begin(), all.end(), [&](const auto& s) { return s.name == name; }));
    CHECK(set_total(totals, name, 1));
  }
  CHECK_FALSE(set_total(totals, "pause_ns", 1));
  CHECK(totals.paused_ns == 1);
}
