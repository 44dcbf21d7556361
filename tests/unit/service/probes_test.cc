// Probing over the control socket: who may, what is refused, what the figures are.
#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "dataplane/telemetry/segment_reader.h"
#include "tests/unit/service/controlled_service.h"

namespace paceline::test {
namespace {

using Json = nlohmann::json;

Json peers_of(const Json& opened) {
  Json peers = Json::array();
  for (const Json& nic : opened.at("nics")) {
    peers.push_back({{"address", nic.at("address")},
                     {"qp_number", nic.at("qp_number")},
                     {"qkey", nic.at("qkey")}});
  }
  return peers;
}

// Figures once every pair has compared clocks so often; the limit is for a machine that stands
// still.
Json figures_of(ControlClient& client, std::uint64_t clock_probes) {
  Json figures;
  for (int i = 0; i < 3000; ++i) {
    figures = client.good("probes");
    bool enough = true;
    for (const Json& nic : figures.at("nics")) {
      for (const Json& peer : nic.at("peers")) {
        enough &= peer.value("clock_probes", std::uint64_t{0}) >= clock_probes;
      }
    }
    if (enough) return figures;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL("no answers: " << figures.dump());
  return figures;
}

}  // namespace

TEST_CASE("service: NICs probe each other for a client, and a clock that is off is found",
          "[control][threads]") {
  ControlledService running;
  ControlClient client(running.control->path());
  const Json clock{{"nic", "h1"}, {"offset_ns", 5e9}, {"drift_ppb", 50'000}};
  const Json opened = client.good("probe_open", {{"clocks", {clock}}});
  REQUIRE(opened.at("nics").size() == 2);
  CHECK(opened["nics"][0].at("qp_number") != 0);
  CHECK(client.good("probes").at("nics")[0].at("peers").empty());
  const Json begun = client.good(
      "probe_begin", {{"session", 5}, {"peers", peers_of(opened)}, {"rate", 1000}, {"paths", 3}});
  CHECK(begun.at("interval_us") == 1000);
  const Json figures = figures_of(client, 40);
  for (const Json& nic : figures.at("nics")) {
    REQUIRE(nic.at("peers").size() == 1);
    const Json& peer = nic["peers"][0];
    const double sign = nic.at("name") == "h0" ? 1 : -1;
    // The offset grows by 50 us a second; what is certain is far closer than that.
    CHECK(sign * peer.at("offset_ns").get<double>() > 4.99e9);
    CHECK(sign * peer.at("offset_ns").get<double>() < 5.1e9);
    CHECK(peer.at("answered") >= 40);
    CHECK(peer.at("fabric_ns").at("p50") > 0);
    CHECK(peer.at("host_ns").at("p50") >= 0);
    CHECK(peer.at("there_ns").is_object());
    std::set<int> ports;
    for (const Json& path : peer.at("paths")) ports.insert(path.at("port").get<int>());
    CHECK(ports == std::set<int>{49152, 49153, 49154});
    CHECK(nic.at("refused") == 0);
  }
}

// Offset of h1's clock over h0's, once it is within 1 ms of what is expected.
bool offset_becomes(ControlClient& client, double expected_ns) {
  for (int i = 0; i < 3000; ++i) {
    const Json peer = client.good("probes").at("nics")[0].at("peers")[0];
    if (peer.at("offset_ns").is_number() &&
        std::abs(peer.at("offset_ns").get<double>() - expected_ns) < 1e6) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST_CASE("service: clocks are faults, before and while somebody probes, until they are cleared",
          "[control][threads]") {
  ControlledService running;
  ControlClient control(running.control->path());
  const auto jump = [&](double micros) {
    control.good("fault", {{"events",
                            {{{"target", "h1"}, {"action", "clock_jump"}, {"severity", micros}}}}});
  };
  jump(5e6);
  ControlClient client(running.control->path());
  const Json opened = client.good("probe_open");
  client.good("probe_begin", {{"session", 5}, {"peers", peers_of(opened)}, {"rate", 1000}});
  CHECK(offset_becomes(client, 5e9));
  jump(-2e6);
  CHECK(offset_becomes(client, 3e9));
  CHECK(control.good("status").at("status").at("faults").size() == 2);
  control.good("fault", {{"events", {{{"target", "h1"}, {"action", "clear"}}}}});
  CHECK(offset_becomes(client, 0));
  CHECK(control.good("status").at("status").at("faults").empty());
  CHECK(control.errors("fault", {{"events", {{{"target", "h7"}, {"action", "clock_drift"}}}}}) ==
        std::vector<std::string>{"events[0].target: there is no NIC h7 here"});
}

TEST_CASE("service: one-way delays of probes are in the telemetry", "[control][threads]") {
  ControlledService running;
  ControlClient client(running.control->path());
  const Json opened = client.good("probe_open");
  client.good("probe_begin", {{"session", 5}, {"peers", peers_of(opened)}, {"rate", 1000}});
  figures_of(client, 40);
  telemetry::SegmentReader reader;
  REQUIRE(reader.open(running.running.service().segment()).empty());
  telemetry::NicSample sample;
  const auto value = [&](const char* series) { return sample.values[*reader.find(series)]; };
  for (int i = 0; i < 3000; ++i) {
    if (reader.read(0, sample) && value("one_way_there_ns") != 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(value("probes_answered") >= 40);
  CHECK(value("probes_sent") >= value("probes_answered"));
  CHECK(value("one_way_there_ns") > 0);
  CHECK(value("one_way_back_ns") > 0);
}

TEST_CASE("service: a fabric that loses packets is seen by probes", "[control][threads]") {
  ControlledService running;
  ControlClient client(running.control->path());
  const Json opened = client.good("probe_open");
  client.good("probe_begin", {{"session", 5}, {"peers", peers_of(opened)}, {"rate", 2000}});
  figures_of(client, 10);
  client.good("fault", {{"events", {{{"target", "h1"}, {"action", "loss"}, {"probability", 1}}}}});
  std::uint64_t lost = 0;
  for (int i = 0; i < 3000 && lost == 0; ++i) {
    lost = client.good("probes").at("nics")[0].at("peers")[0].at("lost").get<std::uint64_t>();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(lost > 0);
}

TEST_CASE("service: one client probes at a time, until it goes", "[control][threads]") {
  ControlledService running;
  ControlClient second(running.control->path());
  {
    ControlClient first(running.control->path());
    CHECK(first.errors("probes").size() == 1);
    first.good("probe_open");
    CHECK(first.errors("probe_open").size() == 1);
    CHECK(second.errors("probe_open").size() == 1);
    CHECK(second.errors("probes").size() == 1);
    CHECK(running.running.service().worker(0).nics().nic(0).engine != nullptr);
  }
  Json answer;
  for (int i = 0; i < 3000; ++i) {
    answer = second.ask("probe_open");
    if (answer.at("ok") == true) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(answer.at("ok") == true);
}

TEST_CASE("service: what cannot be probed is refused", "[control][threads]") {
  ControlledService running;
  ControlClient client(running.control->path());
  const auto refused = [&](const std::string& op, const Json& members, const std::string& part) {
    const auto errors = client.errors(op, members);
    CAPTURE(op, members.dump());
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].find(part) != std::string::npos);
  };
  refused("probe_open", {{"clocks", {{{"nic", "h7"}}}}}, "h7");
  refused("probe_open", {{"clocks", {{{"nic", "h1"}, {"drift_ppb", 1e6}}}}}, "drift_ppb");
  const Json peers = peers_of(client.good("probe_open"));
  refused("probe_begin", {{"session", 1}, {"peers", Json::array()}}, "peers");
  refused("probe_begin", {{"session", 1}, {"peers", peers}, {"share", 0.5}}, "share");
  refused("probe_begin", {{"session", 1}, {"peers", peers}, {"class", 7}}, "class");
  refused("probe_begin", {{"session", 1}, {"peers", peers}, {"paths", 65}}, "paths");
  Json bad = peers;
  bad[0]["address"] = "nowhere";
  refused("probe_begin", {{"session", 1}, {"peers", bad}}, "nowhere");
  client.good("probe_begin", {{"session", 1}, {"peers", peers}});
  refused("probe_begin", {{"session", 1}, {"peers", peers}}, "begun");
}

}  // namespace paceline::test
