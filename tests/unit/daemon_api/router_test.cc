#include "control/daemon/api/router.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/daemon_api/served.h"

namespace paceline::test {
namespace {

using daemon::Admission;
using daemon::Caller;
using daemon::Router;

constexpr std::string_view kJsonType = "application/json; charset=utf-8";

Admission ask(std::string_view method, std::string_view target, std::string_view body = {},
              bool may_write = true, std::string_view type = kJsonType) {
  static const Router router(echoing_endpoints());
  return router.admit({method, target, type, body}, {"alice", may_write});
}

// The one or the many sentences, in one text.
std::string refused(const Admission& admission, unsigned status) {
  CHECK(admission.endpoint == nullptr);
  CHECK(admission.refused.status == status);
  std::string all;
  for (const Json& error : admission.refused.body.at("errors")) {
    all += error.get<std::string>() + "\n";
  }
  CHECK_FALSE(all.empty());
  return all;
}

bool holds(const std::string& text, std::string_view part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("the most literal template answers, with the variables of its path", "[daemon_api]") {
  CHECK(ask("GET", "/v1/nics/first").endpoint->path == "/v1/nics/first");
  const Admission other = ask("GET", "/v1/nics/mlx%2F0");
  REQUIRE(other.endpoint != nullptr);
  CHECK(other.endpoint->path == "/v1/nics/{nic}");
  CHECK(other.request.in_path("nic") == "mlx/0");
  CHECK(other.request.caller.name == "alice");
  CHECK(ask("HEAD", "/v1/nics").endpoint->method == "GET");
}

TEST_CASE("what is nowhere is not found, with the nearest path", "[daemon_api]") {
  CHECK(holds(refused(ask("GET", "/v1/nisc"), 404), "did you mean /v1/nics?"));
  CHECK(holds(refused(ask("GET", "/completely/else/where/it/is"), 404), "/v1/openapi.json"));
  refused(ask("GET", "/v1/nics/"), 404);
  refused(ask("GET", "/v1//nics"), 404);
  refused(ask("GET", "/v1/nics/../nics"), 404);
  refused(ask("GET", "/" + std::string(4000, 'a')), 404);
}

TEST_CASE("a method that is not offered is refused with those that are", "[daemon_api]") {
  const Admission admission = ask("PATCH", "/v1/nics");
  CHECK(holds(refused(admission, 405), "\"PATCH\"; allowed: GET, HEAD"));
  CHECK(admission.allow == "GET, HEAD");
  CHECK(ask("GET", "/v1/trials").allow == "POST");
  refused(ask("get", "/v1/nics"), 405);
}

TEST_CASE("only who may write writes", "[daemon_api]") {
  CHECK(holds(refused(ask("DELETE", "/v1/trials/4", {}, false), 403), "alice"));
  CHECK(ask("DELETE", "/v1/trials/4", {}, true).endpoint != nullptr);
  CHECK(ask("GET", "/v1/nics", {}, false).endpoint != nullptr);
}

TEST_CASE("a body is JSON and says so", "[daemon_api]") {
  const std::string_view body = "{\"plan\":\"x\"}";
  CHECK(ask("POST", "/v1/trials", body, true, "Application/JSON ;a=b").endpoint != nullptr);
  for (const char* type :
       {"", "text/plain", "application/jsonp", "application/x-www-form-urlencoded"}) {
    CHECK(holds(refused(ask("POST", "/v1/trials", body, true, type), 415), "application/json"));
  }
  CHECK(holds(refused(ask("POST", "/v1/trials", "[]"), 400), "allowed: an object"));
  CHECK(holds(refused(ask("GET", "/v1/nics", "{\"a\":1}"), 400), "there are none here"));
  CHECK(ask("GET", "/v1/nics", "{}").endpoint != nullptr);
}

TEST_CASE("all that is wrong is said at once: field, value, what is allowed", "[daemon_api]") {
  const std::string all = refused(
      ask("PUT", "/v1/nics/a/parameters?nonsense=1",
          R"({"set":[],"notches":3,"rate":-0.5,"mode":"never","dry":"yes","order":{},"whi":""})"),
      400);
  CHECK(holds(all, "query: unknown parameter \"nonsense\""));
  CHECK(holds(all, "body.set: a list; allowed: object"));
  CHECK(holds(all, "body.notches: 3; allowed: whole number from -2 to 2"));
  CHECK(holds(all, "body.rate: -0.5; allowed: number from 0 to 1"));
  CHECK(holds(all, "body.mode: \"never\"; allowed: one of now, later"));
  CHECK(holds(all, "body.dry: \"yes\"; allowed: true or false"));
  CHECK(holds(all, "body.order: an object; allowed: list"));
  CHECK(holds(all, "unknown member \"whi\"; did you mean \"why\"?"));
  CHECK(holds(all, "body.why: missing; allowed: text"));
  CHECK(std::count(all.begin(), all.end(), '\n') == 9);
}

TEST_CASE("values at the ends of a range are in it", "[daemon_api]") {
  const auto put = [](const std::string& member) {
    return ask("PUT", "/v1/nics/a/parameters", R"({"set":{},"why":"x",)" + member + "}");
  };
  for (const char* good : {R"("notches":-2)", R"("notches":2.0)", R"("rate":0)", R"("rate":1.0)"}) {
    CHECK(put(good).endpoint != nullptr);
  }
  CHECK(put(R"("notches":2.0)").request.body.at("notches").is_number_integer());
  for (const char* bad :
       {R"("notches":-3)", R"("notches":1.5)", R"("notches":1e300)",
        R"("notches":18446744073709551615)", R"("notches":true)", R"("notches":null)",
        R"("notches":"1")", R"("rate":1.0000001)", R"("mode":"now\u0000")", R"("mode":1)"}) {
    INFO(bad);
    refused(put(bad), 400);
  }
}

TEST_CASE("parameters of query and path are held to their types", "[daemon_api]") {
  CHECK(ask("GET", "/v1/nics?limit=100&since=1.5e3&order=rate&all=true").endpoint != nullptr);
  for (const char* bad :
       {"limit=0", "limit=101", "limit=", "limit=1x", "limit=+1", "limit=%201", "limit=1.0",
        "limit=99999999999999999999", "since=nan", "since=inf", "since=1e999", "order=size",
        "order=", "all=1", "limit=1&limit=1", "Limit=1", "=1"}) {
    INFO(bad);
    refused(ask("GET", "/v1/nics?" + std::string(bad)), 400);
  }
  CHECK(holds(refused(ask("GET", "/v1/nics?limt=1"), 400), "did you mean \"limit\"?"));
  CHECK(holds(refused(ask("DELETE", "/v1/trials/0"), 400), "path.number: \"0\""));
  CHECK(
      holds(refused(ask("GET", "/v1/events?topics=sample,trail"), 400), "did you mean \"trial\""));
  CHECK(ask("GET", "/v1/events?topics=sample,trial").endpoint != nullptr);
}

TEST_CASE("descriptions that contradict themselves are found", "[daemon_api]") {
  CHECK(Router(echoing_endpoints()).contradictions().empty());
  const auto wrong = [](auto change) {
    Endpoint endpoint = echoing_endpoints().all().at(1);
    endpoint.path = "/v1/new/{nic}";
    change(endpoint);
    Endpoints endpoints = echoing_endpoints();
    endpoints.add(endpoint);
    return Router(endpoints).contradictions();
  };
  CHECK(wrong([](Endpoint&) {}).empty());
  CHECK(wrong([](Endpoint& e) { e.path = "/v1/nics/{nic}"; }).size() == 1);
  CHECK_FALSE(wrong([](Endpoint& e) { e.path = "/v1/nics/{other}"; }).empty());
  CHECK(wrong([](Endpoint& e) { e.method = "TRACE"; }).size() == 1);
  CHECK(wrong([](Endpoint& e) { e.handle = nullptr; }).size() == 1);
  CHECK(wrong([](Endpoint& e) { e.writes = true; }).size() == 1);
  CHECK(wrong([](Endpoint& e) { e.path_fields.clear(); }).size() == 1);
  CHECK(wrong([](Endpoint& e) { e.path_fields.push_back({.name = "x", .meaning = "y"}); }).size() ==
        1);
  CHECK(wrong([](Endpoint& e) {
          e.query = {{.name = "a", .type = FieldType::object, .meaning = "b"}};
        }).size() == 1);
  CHECK(wrong([](Endpoint& e) { e.query = {{.name = "a", .meaning = ""}}; }).size() == 1);
}

}  // namespace
}  // namespace paceline::test
