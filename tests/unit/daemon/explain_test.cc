// What bounded a connection, told from the looks at it: a case for each bound and each trouble.
#include "control/daemon/telemetry/explain.h"

#include <catch2/catch.hpp>
#include <cstring>

namespace paceline::daemon {

namespace {

using telemetry::QueuePairRecord;

constexpr std::int64_t kLookSecond = 1'000'000'000;

// Looks of `count` seconds; change(record, i) says what each second adds.
template <class Change>
std::vector<QueuePairLook> looks_of(int count, Change change) {
  std::vector<QueuePairLook> out;
  QueuePairRecord record;
  record.number = 9;
  record.window_bytes = ~std::uint64_t{0};
  std::strcpy(record.algorithm.data(), "dcqcn");
  for (int i = 0; i < count; ++i) {
    if (i > 0) change(record);
    out.push_back({i * kLookSecond, record});
  }
  return out;
}

std::uint64_t& held(QueuePairRecord& record, cc::Limiter limiter) {
  return record.limiter_ns[static_cast<std::size_t>(limiter)];
}

const Finding* found(const Explanation& e, std::string_view what) {
  for (const Finding& finding : e.findings) {
    if (finding.what == what) return &finding;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("each limiter has its sentence, with its share", "[explain]") {
  for (unsigned i = 0; i < cc::kLimiters; ++i) {
    const auto limiter = static_cast<cc::Limiter>(i);
    const auto other = static_cast<cc::Limiter>((i + 1) % cc::kLimiters);
    const auto looks = looks_of(11, [&](QueuePairRecord& r) {
      held(r, limiter) += 800'000'000;
      held(r, other) += 200'000'000;
      r.tx_bytes += 250'000'000;
      r.rate_bps = 2'000'000'000;
      r.window_bytes = 64'000;
    });
    const Explanation e = explain(looks, 60, 25'000'000'000);
    CAPTURE(limiter_name(limiter));
    REQUIRE(e.findings.size() == 2);
    CHECK(e.findings[0].what == "limited_by_" + std::string(limiter_name(limiter)));
    CHECK(e.findings[0].share == Approx(0.8));
    CHECK(e.findings[0].sentence.find("80 % of the time") != std::string::npos);
    CHECK(e.findings[1].what == "limited_by_" + std::string(limiter_name(other)));
    CHECK(e.gbps == Approx(2.0));
    CHECK(e.verdict.find("2.00 Gb/s") != std::string::npos);
    CHECK(e.verdict.find("80 %") != std::string::npos);
  }
}

TEST_CASE("figures are those of the span asked for", "[explain]") {
  int second = 0;
  const auto looks = looks_of(31, [&](QueuePairRecord& r) {
    ++second;
    held(r, second <= 20 ? cc::Limiter::path : cc::Limiter::application) += 1'000'000'000;
    r.tx_bytes += second <= 20 ? 1'000'000'000 : 0;
  });
  const Explanation last = explain(looks, 10, 0);
  CHECK(last.seconds == Approx(10));
  CHECK(last.gbps == Approx(0));
  REQUIRE(last.findings.size() == 1);
  CHECK(last.findings[0].what == "limited_by_application");
  CHECK(last.findings[0].sentence.find("no backlog was ever seen") != std::string::npos);
  const Explanation all = explain(looks, 60, 0);
  CHECK(all.seconds == Approx(30));
  CHECK(all.shares[static_cast<std::size_t>(cc::Limiter::path)] == Approx(2.0 / 3));
}

TEST_CASE("troubles are told with how many there were, the costly ones first", "[explain]") {
  const auto looks = looks_of(11, [](QueuePairRecord& r) {
    held(r, cc::Limiter::path) += 1'000'000'000;
    r.cnps_received += 30;
    r.retransmitted_packets += 4;
    r.naks_received += 1;
    r.rnr_received += 2;
    r.timeouts += 1;
    r.srtt_ns = 60'000;
    r.min_rtt_ns = 10'000;
    r.on_fallback = 1;
  });
  const Explanation e = explain(looks, 60, 0);
  std::vector<std::string> order;
  for (const Finding& f : e.findings) order.push_back(f.what);
  CHECK(order == std::vector<std::string>{"limited_by_path", "timeouts", "receiver_not_ready",
                                          "retransmissions", "congestion_notifications", "queueing",
                                          "fallback"});
  CHECK(found(e, "timeouts")->sentence.find("10 retransmission time-outs") == 0);
  CHECK(found(e, "retransmissions")->sentence.find("40 packets") == 0);
  CHECK(found(e, "congestion_notifications")->sentence.find("300 congestion") == 0);
  CHECK(found(e, "queueing")->sentence.find("6.0 times the shortest (10.0 us)") !=
        std::string::npos);
  CHECK(found(e, "fallback")->share == Approx(1));
}

TEST_CASE("a quiet connection and one just found are told as what they are", "[explain]") {
  CHECK(explain({}, 10, 0).verdict.find("once only") != std::string::npos);
  CHECK(explain(looks_of(1, [](QueuePairRecord&) {}), 10, 0).findings.empty());
  const Explanation quiet = explain(looks_of(5, [](QueuePairRecord&) {}), 10, 0);
  CHECK(quiet.findings.empty());
  CHECK(quiet.verdict == "It sent nothing, and nothing held it back.");
}

TEST_CASE("a round trip near the shortest is no queueing", "[explain]") {
  const auto looks = looks_of(5, [](QueuePairRecord& r) {
    r.srtt_ns = 14'000;
    r.min_rtt_ns = 10'000;
  });
  CHECK(found(explain(looks, 60, 0), "queueing") == nullptr);
}

TEST_CASE("histories end with their queue pair, and begin anew with its number", "[explain]") {
  QueuePairHistory history;
  QueuePairRecord a;
  a.number = 3;
  a.pid = 100;
  a.tx_bytes = 50;
  QueuePairRecord b = a;
  b.number = 4;
  for (std::int64_t i = 0; i < 100; ++i) {
    history.add(0, i, std::array<QueuePairRecord, 3>{a, QueuePairRecord{}, b});
  }
  CHECK(history.looks(0, 3).size() == QueuePairHistory::kLooks);
  CHECK(history.looks(0, 3).back().unix_ns == 99);
  CHECK(history.numbers(0) == std::vector<std::uint32_t>{3, 4});
  history.add(1, 100, std::array<QueuePairRecord, 1>{a});
  history.add(0, 100, std::array<QueuePairRecord, 1>{a});
  CHECK(history.looks(0, 4).empty());
  CHECK(history.looks(1, 3).size() == 1);
  a.tx_bytes = 10;  // less than before: another one
  history.add(0, 101, std::array<QueuePairRecord, 1>{a});
  CHECK(history.looks(0, 3).size() == 1);
  history.keep_nics(1);
  CHECK(history.looks(1, 3).empty());
  CHECK(history.followed() == 1);
}

TEST_CASE("no more queue pairs are followed than there is room for", "[explain]") {
  QueuePairHistory history;
  std::vector<QueuePairRecord> records(QueuePairHistory::kMost + 10);
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].number = static_cast<std::uint32_t>(i + 1);
  }
  history.add(0, 1, records);
  history.add(0, 2, records);
  CHECK(history.followed() == QueuePairHistory::kMost);
}

}  // namespace paceline::daemon
