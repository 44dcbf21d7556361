#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tools/top/top_rows.h"
#include "tools/top/top_screen.h"

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
  view.first = 99;  // beyond the last one: nothing, and no crash
  CHECK_FALSE(top_text(rows, view).empty());
}

TEST_CASE("top: at every size the screen is full, no line is too long, and the NICs have a head",
          "[tools]") {
  TopRows rows =
      top_rows(sample(kSecond, 0, 0, 0), sample(2 * kSecond, 125'000'000, 3000, 500), 1.0);
  rows.fabric = {true, 1000, "switch0 > h1", 2'000'000, "switch0 > h0"};
  const NicRow nic = rows.nics[0];
  while (rows.nics.size() < 40) rows.nics.push_back(nic);
  while (rows.queue_pairs.size() < 70) rows.queue_pairs.push_back(rows.queue_pairs[0]);
  TopView view;
  view.keys = true;
  view.clock = "03:04:05";
  for (const TopTable table : {TopTable::nics, TopTable::peers, TopTable::queue_pairs}) {
    view.table = table;
    for (view.width = 20; view.width < 260; view.width += view.width < 90 ? 1 : 13) {
      for (view.height = 1; view.height < 130; view.height += view.height < 12 ? 1 : 13) {
        const std::vector<std::string> lines = top_lines(rows, view);
        INFO(view.width << " x " << view.height);
        REQUIRE(lines.size() == view.height);
        for (const std::string& line : lines) REQUIRE(line.size() <= view.width);
        if (view.width < 60 || view.height < 10) continue;
        const auto has = [&](const std::string& begin) {
          return std::count_if(lines.begin(), lines.end(),
                               [&](const std::string& line) { return line.starts_with(begin); });
        };
        REQUIRE(has("paceline top   03:04:05") == 1);
        REQUIRE(has("total: send") == 1);
        REQUIRE(has("deepest switch queue: 1.00 kB at switch0 > h1") == 1);
        REQUIRE(has("NIC ") >= 1);
        const auto heads = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
          return line.find("receive") != std::string::npos && !line.starts_with("total");
        });
        REQUIRE(heads == (table == TopTable::nics ? 1 : 2));
        REQUIRE(has("h0") >= 1);
        REQUIRE(has("q quit   n NICs") == 1);
      }
    }
  }
}

TEST_CASE("top: what matters least is left out first, and colour adds no text", "[tools]") {
  TopRows rows =
      top_rows(sample(kSecond, 0, 0, 0), sample(2 * kSecond, 125'000'000, 3000, 500), 1.0);
  rows.nics[0].guard = 5;
  TopView view;
  view.width = 60;
  const std::string narrow = top_text(rows, view);
  CHECK(narrow.find("1.00 Gb/s") != std::string::npos);
  CHECK(narrow.find("GUARD 5") != std::string::npos);
  CHECK(narrow.find("CNPs/s") == std::string::npos);
  CHECK(narrow.find('\x1b') == std::string::npos);
  view.colour = true;
  std::string coloured = top_text(rows, view);
  CHECK(coloured.find("\x1b[1;31mGUARD 5, LOANS") != std::string::npos);
  for (std::size_t at; (at = coloured.find('\x1b')) != std::string::npos;) {
    coloured.erase(at, coloured.find('m', at) - at + 1);
  }
  CHECK(coloured == narrow);
}

TEST_CASE("top: the deepest queue of all switches, now and ever", "[tools]") {
  const auto status = nlohmann::json::parse(R"({"workers": [{"name": "w", "fabric": {"queues": [
    {"from": "switch0", "to": "h0", "queued_bytes": 0, "most_bytes": 900},
    {"from": "switch0", "to": "h1", "queued_bytes": 70, "most_bytes": 100},
    {"from": "leaf\u001b1", "to": "h2", "queued_bytes": 80, "most_bytes": 80}]}}, {"name": "v"}]})");
  const FabricLook look = fabric_look(status);
  CHECK(look.emulated);
  CHECK(look.queued_bytes == 80);
  CHECK(look.queued_at == "leaf\\x1b1 > h2");
  CHECK(look.most_bytes == 900);
  CHECK(look.most_at == "switch0 > h0");
  CHECK_FALSE(fabric_look(nlohmann::json::parse(R"({"workers": [{"name": "port"}]})")).emulated);
  CHECK_FALSE(fabric_look(nlohmann::json()).emulated);
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
