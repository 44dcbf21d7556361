// A look at a host: what stands in it, what is read of it again, and what is refused.
#include "control/daemon/telemetry/look_endpoint.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include "control/daemon/probes.h"
#include "control/looks/look_json.h"
#include "dataplane/base/numbers/random.h"
#include "tests/unit/daemon/fake_segment.h"
#include "tests/unit/daemon/fake_service.h"
#include "tests/unit/daemon/scratch_folder.h"

namespace paceline::daemon {

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

telemetry::QueuePairRecord drawn_record(Random& random) {
  telemetry::QueuePairRecord out;
  const auto draw = [&] {
    return random.next() % 3 == 0 ? 0 : random.next() >> (random.next() % 64);
  };
  out.number = static_cast<std::uint32_t>(random.next() % 0xFFFFFF + 1);
  out.peer_number = static_cast<std::uint32_t>(draw());
  for (auto& byte : out.peer) byte = static_cast<std::uint8_t>(random.next());
  out.tx_bytes = draw() | 1;
  for (auto* field :
       {&out.rx_bytes, &out.retransmitted_packets, &out.timeouts, &out.naks_received,
        &out.rnr_received, &out.cnps_received, &out.cnps_sent, &out.completions,
        &out.inflight_bytes, &out.backlog_bytes, &out.srtt_ns, &out.min_rtt_ns, &out.source_port}) {
    *field = draw();
  }
  out.one_way_there_ns = -static_cast<std::int64_t>(draw() >> 1U);
  for (auto& time : out.limiter_ns) time = draw();
  return out;
}

bool same(const telemetry::QueuePairRecord& a, const telemetry::QueuePairRecord& b) {
  return a.number == b.number && a.peer_number == b.peer_number && a.peer == b.peer &&
         a.tx_bytes == b.tx_bytes && a.rx_bytes == b.rx_bytes && a.timeouts == b.timeouts &&
         a.retransmitted_packets == b.retransmitted_packets && a.completions == b.completions &&
         a.naks_received == b.naks_received && a.cnps_received == b.cnps_received &&
         a.srtt_ns == b.srtt_ns && a.inflight_bytes == b.inflight_bytes &&
         a.source_port == b.source_port && a.limiter_ns == b.limiter_ns &&
         a.one_way_there_ns == b.one_way_there_ns;
}

Json status_of_pair() {
  return {{"workers",
           {{{"fabric", Json::object()},
             {"nics",
              {{{"name", "h0"}, {"up", true}, {"addresses", {"10.0.0.1"}}},
               {{"name", "h1"}, {"up", false}, {"addresses", {"10.0.0.2"}}}}}}}}};
}

// A daemon's part of it: a segment, and a service that a test makes.
struct Rig {
  Rig() {
    REQUIRE(sampler.open(segment.bytes()).empty());
    settings.path = folder.file("control.sock");
    settings.least_wait = 1ms;
    client = std::make_unique<ControlClient>(context, settings);
    service.listen(settings.path);
    asio::co_spawn(context, client->run(), asio::detached);
    add_look_endpoint(endpoints, sampler, *client, clock);
    probes = std::make_unique<Probes>(context, settings);
    add_probe_endpoints(endpoints, *probes);
    for (int i = 0; i < 6000 && !client->connected(); ++i) context.run_for(10ms);
  }
  ~Rig() {
    client->stop();
    probes->stop();
    service.end();
    context.run_for(100ms);
  }
  Reply ask(const std::string& method, const std::string& path, Json body = Json::object()) {
    std::optional<Reply> out;
    for (const Endpoint& endpoint : endpoints.all()) {
      if (endpoint.method != method || endpoint.path != path) continue;
      Request request;
      request.caller = {"root", true};
      request.body = std::move(body);
      asio::co_spawn(context, endpoint.handle(std::move(request)),
                     [&](const std::exception_ptr&, Reply reply) { out = std::move(reply); });
    }
    for (int i = 0; i < 6000 && !out; ++i) context.run_for(10ms);
    REQUIRE(out);
    return *out;
  }

  ScratchFolder folder;
  asio::io_context context;
  FakeService service{context};
  FakeSegment segment{{"h0", "h1"}, 77};
  Sampler sampler{{}};
  Clock clock{[] { return std::int64_t{1}; }, [] { return std::int64_t{1234}; }};
  ControlSettings settings;
  Endpoints endpoints;
  std::unique_ptr<ControlClient> client;
  std::unique_ptr<Probes> probes;
};

}  // namespace

TEST_CASE("a look is read as it was written; what sent nothing is not in it", "[look]") {
  const std::uint64_t seed = GENERATE(1U, 2U, 3U, 4U);
  CAPTURE(seed);
  Random random(seed);
  looks::SeenHost host;
  host.start_unix_ns = random.next();
  for (const char* const name : {"h0", "h1"}) {
    looks::SeenNic& nic = host.nics.emplace_back();
    nic.name = name;
    nic.rate_bps = random.next();
    nic.emulated = random.next() % 2 == 0;
    nic.status = {{"pausing_us", static_cast<double>(random.next()) / 3}};
    for (int i = 0; i < 20; ++i) nic.queue_pairs.push_back(drawn_record(random));
  }
  host.nics[1].queue_pairs[7].tx_bytes = 0;
  looks::SeenHost read;
  const Json json = Json::parse(looks::look_json(host).dump());
  REQUIRE(looks::read_look(json, read) == "");
  CHECK(read.start_unix_ns == host.start_unix_ns);
  REQUIRE(read.nics.size() == 2);
  host.nics[1].queue_pairs.erase(host.nics[1].queue_pairs.begin() + 7);
  for (std::size_t n = 0; n < 2; ++n) {
    CHECK(read.nics[n].status == host.nics[n].status);
    CHECK(read.nics[n].emulated == host.nics[n].emulated);
    REQUIRE(read.nics[n].queue_pairs.size() == host.nics[n].queue_pairs.size());
    for (std::size_t i = 0; i < read.nics[n].queue_pairs.size(); ++i) {
      CHECK(same(read.nics[n].queue_pairs[i], host.nics[n].queue_pairs[i]));
    }
  }
}

TEST_CASE("a look that is none is refused with its place", "[look]") {
  const auto refused = [](const char* text, const std::string& part) {
    looks::SeenHost out;
    const std::string wrong = looks::read_look(Json::parse(text), out);
    CAPTURE(text, wrong);
    CHECK(wrong.find(part) != std::string::npos);
  };
  refused("[]", "expected an object");
  refused(R"({"schema": 2, "nics": []})", "another version");
  refused(R"({"schema": 1})", "look: \"nics\"");
  refused(R"({"schema": 1, "nics": [{"name": 3}]})", "look.nics[0]: \"name\"");
  const std::string nic =
      R"({"schema": 1, "nics": [{"name": "a", "emulated": false, "status": {}, "queue_pairs": [)";
  refused((nic + "7]}]}").c_str(), "look.nics[0].queue_pairs[0]: expected an object");
  refused((nic + R"({"peer": "x", "limited_ns": [0, 0, 0, 0, 0, 0, 0]}]}]})").c_str(), "\"peer\"");
  refused((nic + R"({"peer": "", "limited_ns": [0]}]}]})").c_str(), "\"limited_ns\"");
  refused(
      (nic + R"({"peer": "", "tx_bytes": -1, "limited_ns": [0, 0, 0, 0, 0, 0, 0]}]}]})").c_str(),
      "\"tx_bytes\": expected a whole number");
}

TEST_CASE("GET /v1/look has telemetry and status of one service", "[look]") {
  Rig rig;
  rig.service.operations["status"] = [](const Json&) {
    return Json{{"ok", true}, {"status", status_of_pair()}};
  };
  const Reply good = rig.ask("GET", "/v1/look");
  REQUIRE(good.status == 200);
  CHECK(good.body["at_unix_ns"] == 1234);
  CHECK(good.body["start_unix_ns"] == 77);
  looks::SeenHost host;
  REQUIRE(looks::read_look(good.body, host) == "");
  REQUIRE(host.nics.size() == 2);
  CHECK(host.nics[1].status["up"] == false);
  CHECK(host.nics[0].emulated);
  // Another service is behind the socket than behind the telemetry.
  rig.service.operations["status"] = [](const Json&) {
    Json status = status_of_pair();
    status["workers"][0]["nics"][1]["name"] = "x";
    return Json{{"ok", true}, {"status", std::move(status)}};
  };
  CHECK(rig.ask("GET", "/v1/look").status == 503);
  rig.service.operations.erase("status");
  CHECK(rig.ask("GET", "/v1/look").status == 503);
}

TEST_CASE("probes are opened once, end with their time or when told, and say who has them",
          "[look]") {
  Rig rig;
  CHECK(rig.ask("GET", "/v1/probes").status == 409);
  CHECK(rig.ask("PUT", "/v1/probes").status == 409);
  // A service that refuses has nothing open.
  CHECK(rig.ask("POST", "/v1/probes", {{"seconds", 60}}).status == 409);
  rig.service.operations["probe_open"] = [](const Json&) {
    return Json{{"ok", true}, {"nics", {{{"name", "h0"}}}}};
  };
  rig.service.operations["probe_begin"] = [](const Json&) {
    return Json{{"ok", true}, {"interval_us", 5.0}};
  };
  const Reply opened = rig.ask("POST", "/v1/probes", {{"seconds", 60}});
  REQUIRE(opened.status == 200);
  CHECK(opened.body["nics"][0]["name"] == "h0");
  const Reply again = rig.ask("POST", "/v1/probes", {{"seconds", 60}});
  REQUIRE(again.status == 409);
  CHECK(again.body["errors"][0].get<std::string>().find("root probes already") == 0);
  CHECK(rig.ask("PUT", "/v1/probes", {{"session", 1}}).body["interval_us"] == 5.0);
  CHECK(rig.service.asked.back()["session"] == 1);
  CHECK(rig.ask("DELETE", "/v1/probes").status == 200);
  CHECK(rig.ask("GET", "/v1/probes").status == 409);
  // Nobody ends these. On a slow machine their time may be over before they are open.
  unsigned status = 0;
  for (double seconds = 0.05; seconds < 60 && status != 200; seconds *= 2) {
    status = rig.ask("POST", "/v1/probes", {{"seconds", seconds}}).status;
  }
  REQUIRE(status == 200);
  for (int i = 0; i < 6000 && rig.ask("GET", "/v1/probes").status != 409; ++i) {
    rig.context.run_for(1ms);
  }
  CHECK(rig.ask("GET", "/v1/probes").status == 409);
}

}  // namespace paceline::daemon
