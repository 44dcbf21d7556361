#include "tests/support/api_load.h"

#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "tests/unit/daemon_api/served.h"

namespace paceline::test {
namespace {

TEST_CASE("a thousand requests a second from 64 clients: none is lost, none fails",
          "[daemon_api][threads]") {
  Served served;
  REQUIRE(served.wrong.empty());
  std::thread thread([&] { served.context.run(); });
  LoadPlan plan;
  plan.socket = served.path;
  plan.targets = {"/v1/nics?limit=7", "/v1/nics/first", "/metrics", "/v1/nics?limit=0"};
  // Against a hang, and no more: sanitizers on a busy machine take seconds for what is due in one.
  plan.patience = std::chrono::minutes(2);
  const LoadResult result = run_load(plan);
  net::post(served.context, [&] { served.server->stop(); });
  thread.join();
  INFO(result.wrong);
  CHECK(result.due == 3000);
  CHECK(result.lost() == 0);
  CHECK(result.failed() == 0);
  CHECK(result.statuses == std::map<unsigned, std::uint64_t>{{200, 2250}, {400, 750}});
  CHECK(served.server->counts().requests == 3000);
  CHECK(served.server->counts().connections == 64);
}

}  // namespace
}  // namespace paceline::test
