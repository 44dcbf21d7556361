#include <catch2/catch.hpp>

#include "tests/unit/daemon_api/served.h"

namespace paceline::test {
namespace {

using std::chrono::milliseconds;

std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_CASE("a request is answered on the Unix socket", "[daemon_api]") {
  Served served;
  REQUIRE(served.wrong.empty());
  const std::string reply = served.run(converse(served.path, get("/v1/nics?limit=3")));
  INFO(reply);
  CHECK(status_of_reply(reply) == 200);
  CHECK(json_of(reply)["query"]["limit"] == "3");
  CHECK_FALSE(json_of(reply)["caller"].get<std::string>().empty());
  const std::string put = served.run(converse(
      served.path, with_body("PUT", "/v1/nics/a/parameters", R"({"set":{"x":1},"why":"w"})")));
  CHECK(status_of_reply(put) == 200);
  CHECK(json_of(put)["body"]["set"]["x"] == 1);
  CHECK(json_of(served.run(converse(served.path, get("/v1/openapi.json"))))["openapi"] == "3.0.3");
  const std::string metrics = served.run(converse(served.path, get("/metrics")));
  CHECK(metrics.find("Content-Type: text/plain; version=0.0.4\r\n") != std::string::npos);
  CHECK(metrics.ends_with("\r\n\r\nup 1\n"));
}

TEST_CASE("many requests on one connection are answered in their order", "[daemon_api]") {
  Served served;
  std::string all;
  for (int i = 1; i <= 50; ++i) {
    all += "GET /v1/nics?limit=" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  }
  all += get("/v1/nics?limit=51");
  const std::string replies = served.run(converse(served.path, all));
  CHECK(occurrences(replies, "HTTP/1.1 200 OK") == 51);
  std::size_t at = 0;
  for (int i = 1; i <= 51; ++i) {
    at = replies.find("\"limit\":\"" + std::to_string(i) + "\"", at);
    REQUIRE(at != std::string::npos);
  }
  CHECK(served.server->counts().requests == 51);
  CHECK(served.server->counts().connections == 1);
}

TEST_CASE("what HTTP asks for is kept", "[daemon_api]") {
  Served served;
  const auto reply = [&](const std::string& bytes) {
    return served.run(converse(served.path, bytes));
  };
  SECTION("HEAD has the head only") {
    const std::string head = reply(get("/metrics", "HEAD"));
    CHECK(head.find("Content-Length: 5\r\n") != std::string::npos);
    CHECK(head.ends_with("\r\n\r\n"));
    CHECK(status_of_reply(reply(get("/v1/events", "HEAD"))) == 200);
  }
  SECTION("405 names what is allowed") {
    CHECK(reply(get("/v1/nics", "DELETE")).find("Allow: GET, HEAD\r\n") != std::string::npos);
    CHECK(status_of_reply(reply(get("/v1/nics", "BREW"))) == 405);
  }
  SECTION("a body in pieces") {
    const std::string put = reply(
        "POST /v1/trials HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: "
        "close\r\n"
        "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"pla\r\n8\r\nn\":\"xy\"}\r\n0\r\n\r\n");
    CHECK(json_of(put)["body"]["plan"] == "xy");
  }
  SECTION("Expect: 100-continue") {
    const std::string put = reply(
        "POST /v1/trials HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: "
        "close\r\n"
        "Expect: 100-continue\r\nContent-Length: 12\r\n\r\n{\"plan\":\"x\"}");
    CHECK(put.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"));
  }
  SECTION("a host, once") {
    CHECK(status_of_reply(reply("GET /v1/nics HTTP/1.1\r\nConnection: close\r\n\r\n")) == 400);
    CHECK(status_of_reply(reply(
              "GET /v1/nics HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n")) == 400);
    CHECK(status_of_reply(reply("GET /v1/nics HTTP/1.0\r\n\r\n")) == 200);
  }
  SECTION("what is no HTTP") {
    for (const char* junk :
         {"hello\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
          "GET / HTTP/1.1\r\nHost x\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n",
          "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"}) {
      INFO(junk);
      CHECK(status_of_reply(reply(junk)) == 400);
    }
  }
}

TEST_CASE("what is too long is refused", "[daemon_api]") {
  Served served;
  const auto reply = [&](const std::string& bytes) {
    return served.run(converse(served.path, bytes));
  };
  const std::string filler(17 << 10, 'a');
  CHECK(status_of_reply(
            reply("GET /v1/nics HTTP/1.1\r\nHost: x\r\nX-Long: " + filler + "\r\n\r\n")) == 431);
  CHECK(status_of_reply(reply(get("/v1/nics?order=" + filler.substr(0, 5000)))) == 414);
  CHECK(status_of_reply(reply(get("/v1/nics?order=" + filler.substr(0, 3000)))) == 400);
  const auto plan = [](std::size_t length) {
    return with_body("POST", "/v1/trials", "{\"plan\":\"" + std::string(length, 'p') + "\"}");
  };
  CHECK(status_of_reply(reply(plan(200 << 10))) == 200);
  CHECK(status_of_reply(reply(plan(300 << 10))) == 413);
  // Without a length it is found out on the way.
  std::string chunked =
      "POST /v1/trials HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 20; ++i) chunked += "4400\r\n" + filler + "\r\n";
  CHECK(status_of_reply(reply(chunked)) == 413);
}

TEST_CASE("what a handler throws is its own request's end only", "[daemon_api]") {
  Served served;
  const std::string thrown = served.run(converse(served.path, get("/v1/throws")));
  CHECK(status_of_reply(thrown) == 500);
  CHECK(json_of(thrown)["errors"][0] == "daemon: no such luck");
  CHECK(status_of_reply(served.run(converse(served.path, get("/v1/nics")))) == 200);
  CHECK(served.server->counts().failed == 1);
}

TEST_CASE("who is silent or slow is let go, however he goes on", "[daemon_api]") {
  daemon::ApiSettings settings;
  settings.idle_ms = 100;
  Served served(settings);
  CHECK(served.run(converse(served.path, "", false)).empty());
  CHECK(served.run(converse(served.path, "GET /v1/nics HT", false)).empty());
  // A byte now and then does not put it off: with one each 20 ms this would take two seconds.
  const auto drip = [&]() -> net::awaitable<int> {
    LocalSocket socket(co_await net::this_coro::executor);
    socket.connect(served.path);
    int sent = 0;
    for (; sent < 100; ++sent) {
      const bool good = co_await write_all(socket, "G");
      if (!good) break;
      co_await pause(milliseconds(20));
    }
    co_return sent;
  };
  CHECK(served.run(drip()) < 100);
  // The client may see the end of the connection before the server's coroutine has run.
  const auto forgotten = [&]() -> net::awaitable<bool> {
    for (int i = 0; i < 5'000 && served.server->connections() != 0; ++i) {
      co_await pause(milliseconds(1));
    }
    co_return served.server->connections() == 0;
  };
  CHECK(served.run(forgotten()));
}

TEST_CASE("the longest idle connection makes room for a new one", "[daemon_api]") {
  daemon::ApiSettings settings;
  settings.most_connections = 4;
  Served served(settings);
  std::vector<LocalSocket> idle;
  const auto open = [&]() -> net::awaitable<bool> {
    for (int i = 0; i < 4; ++i) {
      idle.emplace_back(served.context).connect(served.path);
      co_await write_all(idle.back(), "GET /v1/nics HTTP/1.1\r\nHost: x\r\n\r\n");
      const std::string text = co_await read_until(idle.back(), "\r\n\r\n");
      if (status_of_reply(text) != 200) co_return false;
    }
    // The first speaks again, so the second has idled longest.
    co_await write_all(idle[0], "GET /v1/nics HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string text = co_await read_until(idle[0], "\r\n\r\n");
    co_return status_of_reply(text) == 200;
  };
  REQUIRE(served.run(open()));
  CHECK(served.server->connections() == 4);
  CHECK(status_of_reply(served.run(converse(served.path, get("/v1/nics")))) == 200);
  CHECK(served.server->counts().made_room == 1);
  CHECK(served.run(read_until(idle[1], {})).find("\r\n\r\n") == std::string::npos);
  const auto again = [&]() -> net::awaitable<std::string> {
    co_await write_all(idle[0], get("/v1/nics"));
    std::string text = co_await read_until(idle[0], {});
    co_return text;
  };
  CHECK(served.run(again()).find("HTTP/1.1 200 OK") != std::string::npos);
}

TEST_CASE("a server that stops closes, forgets its file and answers what is under way",
          "[daemon_api]") {
  auto endpoints = echoing_endpoints();
  Served* self = nullptr;
  Endpoint slow;
  slow.method = "GET";
  slow.path = "/v1/slow";
  slow.summary = "Stops the server while it answers";
  slow.tag = "echo";
  slow.handle = [&self](Request) -> net::awaitable<Reply> {
    self->server->stop();
    co_await pause(milliseconds(20));
    co_return Reply{};
  };
  endpoints.add(slow);
  Served served({}, endpoints);
  self = &served;
  LocalSocket idle(served.context);
  idle.connect(served.path);
  served.run(pause(milliseconds(1)));
  const std::string reply = served.run(
      converse(served.path,
               "GET /v1/slow HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/nics HTTP/1.1\r\nHost: x\r\n\r\n"));
  CHECK(occurrences(reply, "HTTP/1.1 200 OK") == 1);
  CHECK(reply.find("Connection: close") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(served.path));
  CHECK(served.run(read_until(idle, {})).empty());
  served.context.restart();
  served.context.run();
  CHECK(served.server->connections() == 0);
  CHECK(served.run(converse(served.path, get("/"))).starts_with("no connection"));
}

TEST_CASE("a socket that listens already is served and left to its owner", "[daemon_api]") {
  const OwnFolder folder;
  net::io_context outside;
  net::local::stream_protocol::acceptor acceptor(
      outside, net::local::stream_protocol::endpoint(folder / "s"));
  daemon::ApiSettings settings;
  settings.descriptor = acceptor.release();
  Served served(settings);
  INFO(served.wrong);
  REQUIRE(served.wrong.empty());
  CHECK(status_of_reply(served.run(converse(folder / "s", get("/v1/nics")))) == 200);
  served.server.reset();
  CHECK(std::filesystem::exists(folder / "s"));
}

TEST_CASE("a server without a way in, or in contradiction, does not start", "[daemon_api]") {
  daemon::ApiSettings settings;
  settings.group = "no such group";
  CHECK(Served(settings).wrong.find("no such group") != std::string::npos);
  Endpoints endpoints = echoing_endpoints();
  endpoints.add(endpoints.all().front());
  CHECK(Served({}, endpoints).wrong.find("described twice") != std::string::npos);
  settings.group.clear();
  settings.tcp.emplace();
  CHECK(Served(settings).wrong.find("needs a certificate") != std::string::npos);
  Served first;
  settings.tcp.reset();
  settings.socket = first.path;
  CHECK(Served(settings).wrong.find("answers there already") != std::string::npos);
  CHECK(status_of_reply(first.run(converse(first.path, get("/v1/nics")))) == 200);
}

}  // namespace
}  // namespace paceline::test
