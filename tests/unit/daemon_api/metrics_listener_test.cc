// The listener of the loopback interface for Prometheus: figures and health, and nothing else.
#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <catch2/catch.hpp>

#include "tests/unit/daemon_api/served.h"

namespace paceline::test {
namespace {

net::awaitable<std::string> ask_port(std::uint16_t port, std::string bytes) {
  net::ip::tcp::socket socket(co_await net::this_coro::executor);
  boost::system::error_code error;
  socket.connect({net::ip::address_v4::loopback(), port}, error);
  if (error) co_return "no connection: " + error.message();
  co_await net::async_write(socket, net::buffer(bytes),
                            net::redirect_error(net::use_awaitable, error));
  std::string text;
  std::array<char, 4096> piece{};
  while (!error) {
    const std::size_t got = co_await socket.async_read_some(
        net::buffer(piece), net::redirect_error(net::use_awaitable, error));
    text.append(piece.data(), got);
  }
  co_return text;
}

TEST_CASE("metrics are read on the loopback interface, and nothing else is there", "[daemon_api]") {
  daemon::ApiSettings settings;
  settings.metrics_port = 0;  // any
  Served served(settings);
  REQUIRE(served.wrong.empty());
  CHECK(served.server->metrics_trouble().empty());
  const std::uint16_t port = served.server->metrics_port();
  REQUIRE(port != 0);
  const std::string text = served.run(ask_port(port, get("/metrics")));
  CHECK(status_of_reply(text) == 200);
  CHECK(text.find("up 1\n") != std::string::npos);
  CHECK(status_of_reply(served.run(ask_port(port, get("/metrics", "HEAD")))) == 200);
  for (const char* target :
       {"/v1/nics", "/v1/events", "/v1/openapi.json", "/", "/metrics/../v1/nics", "//metrics",
        "/v1/nics?x=/metrics", "http://h/v1/nics"}) {
    INFO(target);
    const std::string reply = served.run(ask_port(port, get(target)));
    CHECK(status_of_reply(reply) == 404);
    CHECK(reply.find("Unix socket") != std::string::npos);
  }
  CHECK(status_of_reply(served.run(
            ask_port(port, with_body("POST", "/v1/trials", R"({"plan": "x"})")))) == 404);
  CHECK(status_of_reply(served.run(ask_port(port, get("/v1/trials/1", "DELETE")))) == 404);
  CHECK(status_of_reply(served.run(ask_port(port, get("/metrics", "DELETE")))) == 405);
  CHECK(status_of_reply(served.run(converse(served.path, get("/v1/nics")))) == 200);
}

TEST_CASE("without a port there is no such listener; one that is taken is told", "[daemon_api]") {
  Served none;
  CHECK(none.server->metrics_port() == 0);
  CHECK(none.server->metrics_trouble().empty());
  daemon::ApiSettings settings;
  settings.metrics_port = 0;
  Served first(settings);
  settings.metrics_port = first.server->metrics_port();
  Served second(settings);
  CHECK(second.wrong.empty());  // the rest works
  CHECK(second.server->metrics_port() == 0);
  CHECK(second.server->metrics_trouble().find("127.0.0.1 port ") != std::string::npos);
  CHECK(status_of_reply(second.run(converse(second.path, get("/v1/nics")))) == 200);
}

}  // namespace
}  // namespace paceline::test
