// A client that keeps its connection: to the server of the API, which ends it now and then.
#include "control/daemon/api/client/daemon_line.h"

#include <catch2/catch.hpp>

#include "tests/unit/daemon_api/served.h"

namespace paceline::test {

namespace {

using daemon::Answer;
using daemon::DaemonLine;
using daemon::DaemonPlace;
using namespace std::chrono_literals;

constexpr auto kLong = 60s;

DaemonPlace place_at(const std::string& path) {
  DaemonPlace out;
  REQUIRE(daemon::read_place("unix:" + path, out) == "");
  return out;
}

}  // namespace

TEST_CASE("a line asks over one connection, and over another when that has ended", "[daemon_api]") {
  Served served;
  REQUIRE(served.wrong.empty());
  const DaemonPlace place = place_at(served.path);
  DaemonLine line(served.context, place);
  const auto ask = [&](const char* method, const char* target, Json body = nullptr) {
    return served.run(line.ask(method, target, std::move(body), kLong));
  };
  for (int i = 0; i < 3; ++i) {
    const Answer answer = ask("GET", "/v1/nics/h0");
    REQUIRE(answer.complaint() == "");
    CHECK(answer.body["path"]["nic"] == "h0");
  }
  CHECK(served.server->connections() == 1);
  const Answer refused = ask("POST", "/v1/trials", Json::object());
  CHECK(refused.status == 400);
  CHECK(refused.complaint().find("plan") != std::string::npos);
  // As the server does with a connection that idles: the line finds out when it asks.
  served.server->stop();
  daemon::ApiSettings settings;
  settings.socket = served.path;
  served.server.emplace(served.context, settings, served.endpoints, served.hub);
  REQUIRE(served.server->start().empty());
  CHECK(ask("GET", "/v1/nics").complaint() == "");
}

TEST_CASE("a line says who does not answer", "[daemon_api]") {
  const OwnFolder folder;
  net::io_context context;
  const DaemonPlace place = place_at(folder / "nobody.sock");
  DaemonLine line(context, place);
  Answer answer;
  net::co_spawn(context, line.ask("GET", "/v1/status", nullptr, kLong),
                [&](const std::exception_ptr&, Answer got) { answer = std::move(got); });
  context.run();
  CHECK(answer.error.find(place.url + ": no daemon answers there") == 0);
}

}  // namespace paceline::test
