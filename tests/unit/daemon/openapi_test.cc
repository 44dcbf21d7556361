// The description of the API in the tree is that of the endpoints there are.
#include "control/daemon/api/openapi.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "control/daemon/daemon.h"

namespace paceline::daemon {

namespace {

constexpr const char* kApiFile = "/docs/api/openapi.json";

struct UnstartedDaemon {
  UnstartedDaemon() {
    DaemonSetup setup;
    setup.version = PACELINE_VERSION;
    daemon = std::make_unique<Daemon>(context, std::move(setup),
                                      Clock{[] { return 0; }, [] { return 0; }});
  }
  std::string text() { return openapi_text(daemon->endpoints(), PACELINE_VERSION); }
  boost::asio::io_context context;
  std::unique_ptr<Daemon> daemon;
};

}  // namespace

TEST_CASE("docs/api/openapi.json describes every endpoint", "[openapi]") {
  UnstartedDaemon unstarted;
  std::ostringstream file;
  file << std::ifstream(std::string(PACELINE_SOURCE_DIR) + kApiFile).rdbuf();
  // To rewrite it: test_daemon "[.write-reference]"
  CHECK(file.str() == unstarted.text());
}

TEST_CASE("endpoints are told apart, described, and writing needs a body or a reason",
          "[openapi]") {
  UnstartedDaemon unstarted;
  std::set<std::pair<std::string, std::string>> seen;
  for (const Endpoint& endpoint : unstarted.daemon->endpoints().all()) {
    INFO(endpoint.method << " " << endpoint.path);
    CHECK(seen.emplace(endpoint.method, endpoint.path).second);
    CHECK_FALSE(endpoint.summary.empty());
    CHECK_FALSE(endpoint.tag.empty());
    CHECK_FALSE(endpoint.answer.empty());
    CHECK(endpoint.handle != nullptr);
    CHECK(endpoint.writes == (endpoint.method != "GET"));
  }
  CHECK(seen.contains({"PATCH", "/v1/params"}));
}

TEST_CASE("docs/api/openapi.json is written", "[.write-reference]") {
  UnstartedDaemon unstarted;
  const std::string path = std::string(PACELINE_SOURCE_DIR) + kApiFile;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << unstarted.text();
}

}  // namespace paceline::daemon
