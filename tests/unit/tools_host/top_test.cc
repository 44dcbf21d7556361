#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tools/host/top_rows.h"
#include "tools/host/top_screen.h"

namespace paceline::tools {

namespace {

NicLook nic_look(std::uint64_t at_ns, std::uint64_t bytes) {
  NicLook nic;
  nic.name = "h0";
  nic.rate_bps = 25'000'000'000;
  nic.algorithm = "dcqcn";
  nic.at_ns = at_ns;
  nic.values = {{"tx_data_bytes", bytes},        {"rx_data_packets", bytes / 1000},
                {"tx_lent_bytes", bytes / 2},    {"port_loans_overdue", 3},
                {"rx_ce_packets", bytes / 4000}, {"queue_pairs", 2},
                {"limited_path_ns", 3 * bytes},  {"limited_application_ns", bytes}};
  return nic;
}

telemetry::QueuePairRecord pair_record(std::uint32_t number, std::uint8_t peer, std::uint64_t at_ns,
                                       std::uint64_t bytes) {
  telemetry::QueuePairRecord record;
  record.number = number;
  record.at_ns = at_ns;
  record.peer = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, peer};
  record.state = 3;
  record.tx_bytes = bytes;
  record.srtt_ns = 12'500;
  record.rate_bps = 1'000'000'000;
  record.limiter_ns[3] = bytes;
  return record;
}

constexpr std::uint64_t kSecond = 1'000'000'000;

HostSample sample(std::uint64_t at_ns, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  HostSample host;
  host.nics.push_back(nic_look(at_ns, a + b + c));
  host.nics[0].queue_pairs = {pair_record(17, 2, at_ns, a), pair_record(18, 2, at_ns, b),
                              pair_record(19, 3, at_ns, c)};
  return host;
}

}  // namespace

TEST_CASE("top: rates are differences over the time between the looks", "[tools]") {
  const HostSample before = sample(kSecond, 1000, 1000, 1000);
  // Two seconds later by the clock of the worker, whatever the reader's clock says.
  const TopRows rows = top_rows(before, sample(3 * kSecond, 2'001'000, 1000, 501'000), 1.0);
  REQUIRE(rows.nics.size() == 1);
  CHECK(rows.nics[0].tx_bps == Approx(2'500'000 * 8 / 2.0));
  CHECK(rows.nics[0].marked_share == Approx(0.25));
  CHECK(rows.nics[0].lent_share == Approx(0.5));
  CHECK(rows.nics[0].loans_overdue == 3);
  CHECK(rows.nics[0].limited[static_cast<std::size_t>(cc::Limiter::path)] == Approx(0.75));
  CHECK(main_limiter(rows.nics[0].limited) == "path 75 %");
  REQUIRE(rows.queue_pairs.size() == 3);
  CHECK(rows.queue_pairs[0].number == 17);  // the busiest first
  CHECK(rows.queue_pairs[0].tx_bps == Approx(8e6));
  CHECK(rows.queue_pairs[1].number == 19);
  CHECK(rows.queue_pairs[2].tx_bps == 0);
}

TEST_CASE("top: queue pairs to one peer are one row", "[tools]") {
  const TopRows rows =
      top_rows(sample(kSecond, 0, 0, 0), sample(2 * kSecond, 1000, 3000, 500), 1.0);
  REQUIRE(rows.peers.size() == 2);
  CHECK(rows.peers[0].peer == "10.0.0.2");
  CHECK(rows.peers[0].pairs == 2);
  CHECK(rows.peers[0].tx_bps == Approx(32'000));
  CHECK(rows.peers[0].allowed_bps == Approx(2e9));
  CHECK(rows.peers[1].pairs == 1);
}

TEST_CASE("top: of a first look, and of a service that began anew, there are no rates", "[tools]") {
  const HostSample now = sample(kSecond, 100, 200, 300);
  const TopRows first = top_rows({}, now, 1.0);
  CHECK(first.seconds == 0);
  CHECK(first.nics.at(0).tx_bps == 0);
  CHECK(first.queue_pairs.size() == 3);
  // Counters that went back: the segment is another one.
  const TopRows again = top_rows(sample(9 * kSecond, 1'000, 2'000, 3'000), now, 1.0);
  CHECK(again.nics.at(0).tx_bps == 0);
  for (const PairRow& pair : again.queue_pairs) CHECK(pair.tx_bps == 0);
}

TEST_CASE("top: the slowest hundredth is read off the buckets", "[tools]") {
  HostSample before = sample(kSecond, 0, 0, 0);
  HostSample now = sample(2 * kSecond, 1, 1, 1);
  now.nics[0].messages[0].slowdown[0] = 98;   // up to 2^(1/8)
  now.nics[0].messages[1].slowdown[23] = 2;   // up to 2^3
  now.nics[0].messages[2].slowdown[90] = 50;  // long ones do not count
  const TopRows rows = top_rows(before, now, 1.0);
  CHECK(rows.nics[0].p99_slowdown == Approx(8));
}

TEST_CASE("top: the screen fits the terminal and says what there is", "[tools]") {
  const TopRows rows =
      top_rows(sample(kSecond, 0, 0, 0), sample(2 * kSecond, 125'000'000, 3000, 500), 1.0);
  TopView view;
  view.table = TopTable::queue_pairs;
  const std::string all = top_text(rows, view);
  CHECK(all.find("h0") != std::string::npos);
  CHECK(all.find("1.00 Gb/s") != std::string::npos);
  CHECK(all.find("10.0.0.3") != std::string::npos);
  CHECK(all.find("12.5") != std::string::npos);
  view.width = 0;  // as wide as it is
  CHECK(top_text(rows, view).find("LOANS OVERDUE 3") != std::string::npos);
  view.width = 40;
  view.height = 6;
  view.keys = true;
  const std::string small = top_text(rows, view);
  CHECK(std::count(small.begin(), small.end(), '\n') == 6);
  std::size_t begin = 0;
  for (std::size_t end; (end = small.find('\n', begin)) != std::string::npos; begin = end + 1) {
    CHECK(end - begin <= 40);
  }
  view.first = 99;  // beyond the last one: nothing, and no crash
  CHECK_FALSE(top_text(rows, view).empty());
}

TEST_CASE("top: JSON says the same", "[tools]") {
  const TopRows rows =
      top_rows(sample(kSecond, 0, 0, 0), sample(2 * kSecond, 1000, 3000, 500), 1.0);
  const auto json = nlohmann::json::parse(top_json(rows));
  CHECK(json.at("schema") == 1);
  CHECK(json.at("nics").at(0).at("tx_bps").get<double>() == Approx(36'000));
  CHECK(json.at("peers").size() == 2);
  CHECK(json.at("queue_pairs").at(0).at("limited").at("path").get<double>() == Approx(1));
}

TEST_CASE("top: figures in units", "[tools]") {
  CHECK(rate_text(0) == "0");
  CHECK(rate_text(999) == "999 b/s");
  CHECK(rate_text(9.41e9) == "9.41 Gb/s");
  CHECK(rate_text(12.04e6) == "12.0 Mb/s");
  CHECK(rate_text(999.7e6) == "1.00 Gb/s");
  CHECK(size_text(1536) == "1.54 kB");
}

}  // namespace paceline::tools
