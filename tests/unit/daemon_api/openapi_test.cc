#include "control/daemon/api/openapi.h"

#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/daemon_api/served.h"

namespace paceline::test {
namespace {

TEST_CASE("the description has every endpoint with every field", "[daemon_api]") {
  const Endpoints endpoints = echoing_endpoints();
  const Json document = daemon::openapi_document(endpoints, "1.2.3");
  CHECK(document.at("openapi") == "3.0.3");
  CHECK(document.at("info").at("version") == "1.2.3");
  std::set<std::string> ids;
  std::size_t operations = 0;
  for (const auto& [path, methods] : document.at("paths").items()) {
    for (const auto& [method, operation] : methods.items()) {
      ++operations;
      CHECK(ids.insert(operation.at("operationId")).second);
      CHECK(operation.at("responses").contains("200"));
    }
  }
  CHECK(operations == endpoints.all().size() + 2);
  CHECK(document.at("paths").contains("/v1/events"));

  const Json& put = document.at("paths").at("/v1/nics/{nic}/parameters").at("put");
  CHECK(put.at("operationId") == "putNicsNicParameters");
  CHECK(put.at("parameters").at(0).at("in") == "path");
  const Json& schema = put.at("requestBody").at("content").at("application/json").at("schema");
  CHECK(schema.at("additionalProperties") == false);
  CHECK(schema.at("required") == Json({"set", "why"}));
  CHECK(schema.at("properties").at("notches").at("minimum") == -2);
  CHECK(schema.at("properties").at("mode").at("enum") == Json({"now", "later"}));
}

TEST_CASE("the reference names every path and what it takes", "[daemon_api]") {
  const Endpoints all = echoing_endpoints();
  const std::string page = daemon::api_reference(all);
  for (const Endpoint& endpoint : all.all()) {
    INFO(endpoint.path);
    CHECK(page.find("### `" + endpoint.method + " " + endpoint.path + "`") != std::string::npos);
  }
  CHECK(page.find("| `notches` | body | whole number from -2 to 2 | steps |") != std::string::npos);
  CHECK(page.find("| `nic` | path, required | text |") != std::string::npos);
}

}  // namespace
}  // namespace paceline::test
