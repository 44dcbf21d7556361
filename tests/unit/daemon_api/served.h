// A server with endpoints to try it on, on a Unix socket in a folder of its own, and clients in the
// same Asio thread: nothing waits for a clock but the limits under test.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "control/daemon/api/server/api_server.h"

namespace paceline::test {

namespace net = boost::asio;
using daemon::Endpoint;
using daemon::Endpoints;
using daemon::FieldType;
using daemon::Json;
using daemon::Reply;
using daemon::Request;

struct OwnFolder {
  OwnFolder() {
    std::string name = "/tmp/paceline-api-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path = name;
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  ~OwnFolder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string& name) const { return path + "/" + name; }
  std::string path;
};

// Endpoints of every shape: what a request held comes back in the reply.
inline Endpoints echoing_endpoints() {
  const auto echo = [](Request request) -> net::awaitable<Reply> {
    Reply reply;
    reply.body = Json{{"caller", request.caller.name}, {"body", request.body}};
    reply.body["path"] = Json::object();
    for (const auto& [name, value] : request.path) reply.body["path"][name] = value;
    reply.body["query"] = Json::object();
    for (const auto& [name, value] : request.query) reply.body["query"][name] = value;
    co_return reply;
  };
  Endpoints endpoints;
  const auto add = [&](std::string method, std::string path, auto fill) {
    Endpoint endpoint;
    endpoint.method = std::move(method);
    endpoint.path = std::move(path);
    endpoint.summary = "Says what it was asked";
    endpoint.tag = "echo";
    endpoint.handle = echo;
    fill(endpoint);
    endpoints.add(std::move(endpoint));
  };
  add("GET", "/v1/nics", [](Endpoint& e) {
    e.query = {
        {.name = "limit", .type = FieldType::whole, .meaning = "how many", .least = 1, .most = 100},
        {.name = "since", .type = FieldType::number, .meaning = "seconds"},
        {.name = "order", .meaning = "of the list", .one_of = {"name", "rate"}},
        {.name = "all", .type = FieldType::flag, .meaning = "also those at rest"}};
  });
  add("GET", "/v1/nics/{nic}",
      [](Endpoint& e) { e.path_fields = {{.name = "nic", .meaning = "name of a NIC"}}; });
  add("GET", "/v1/nics/first", [](Endpoint&) {});
  add("PUT", "/v1/nics/{nic}/parameters", [](Endpoint& e) {
    e.writes = true;
    e.path_fields = {{.name = "nic", .meaning = "name of a NIC"}};
    e.body = {
        {.name = "set", .type = FieldType::object, .required = true, .meaning = "values by name"},
        {.name = "why", .required = true, .meaning = "for the journal"},
        {.name = "notches", .type = FieldType::whole, .meaning = "steps", .least = -2, .most = 2},
        {.name = "rate", .type = FieldType::number, .meaning = "share", .least = 0, .most = 1},
        {.name = "mode", .meaning = "how", .one_of = {"now", "later"}},
        {.name = "dry", .type = FieldType::flag, .meaning = "try only"},
        {.name = "order", .type = FieldType::list, .meaning = "of names"}};
  });
  add("DELETE", "/v1/trials/{number}", [](Endpoint& e) {
    e.writes = true;
    e.path_fields = {{.name = "number",
                      .type = FieldType::whole,
                      .meaning = "of a trial",
                      .least = 1,
                      .most = 1e9}};
  });
  add("POST", "/v1/trials", [](Endpoint& e) {
    e.writes = true;
    e.body = {{.name = "plan", .required = true, .meaning = "the text of a plan"}};
  });
  add("GET", "/v1/throws", [](Endpoint& e) {
    e.handle = [](Request) -> net::awaitable<Reply> {
      throw std::runtime_error("no such luck");
      co_return Reply{};
    };
  });
  add("GET", "/metrics", [](Endpoint& e) {
    e.handle = [](Request) -> net::awaitable<Reply> {
      Reply reply;
      reply.text = "up 1\n";
      reply.content_type = "text/plain; version=0.0.4";
      co_return reply;
    };
  });
  return endpoints;
}

class Served {
 public:
  explicit Served(daemon::ApiSettings settings = {}, Endpoints wanted = echoing_endpoints())
      : endpoints(std::move(wanted)) {
    if (settings.socket.empty() && settings.descriptor < 0) settings.socket = folder / "api.sock";
    path = settings.socket;
    server.emplace(context, std::move(settings), endpoints, hub);
    wrong = server->start();
  }

  // Runs the context until `work` is over; its result.
  template <class Result>
  Result run(net::awaitable<Result> work) {
    context.restart();  // it stops whenever it runs out of work
    std::optional<Result> result;
    std::exception_ptr thrown;
    net::co_spawn(context, std::move(work), [&](std::exception_ptr error, Result value) {
      thrown = error;
      result = std::move(value);
    });
    while (!result) context.run_one();
    if (thrown) std::rethrow_exception(thrown);
    return std::move(*result);
  }

  OwnFolder folder;
  std::string path;
  Endpoints endpoints;
  daemon::EventHub hub;
  net::io_context context;
  std::optional<daemon::ApiServer> server;
  std::string wrong;
};

using LocalSocket = net::local::stream_protocol::socket;

// What comes until it holds `wanted`, or to the end; to the end where nothing is wanted.
net::awaitable<std::string> read_until(LocalSocket& socket, std::string wanted);
// Sends bytes on a connection of their own; what comes until the server ends it. Ours is ended
// behind the bytes, unless it is to stay open.
net::awaitable<std::string> converse(std::string path, std::string bytes, bool end = true);
net::awaitable<bool> write_all(LocalSocket& socket, std::string bytes);
net::awaitable<bool> pause(std::chrono::milliseconds time);

inline std::string get(std::string_view target, std::string_view method = "GET") {
  return std::string(method) + " " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
}

inline std::string with_body(std::string_view method, std::string_view target,
                             std::string_view body) {
  return std::string(method) + " " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

// 0: there is no status line.
inline unsigned status_of_reply(std::string_view reply) {
  if (!reply.starts_with("HTTP/1.1 ") || reply.size() < 12) return 0;
  return static_cast<unsigned>(std::stoul(std::string(reply.substr(9, 3))));
}

inline Json json_of(std::string_view reply) {
  const std::size_t at = reply.find("\r\n\r\n");
  if (at == std::string_view::npos) return nullptr;
  return Json::parse(reply.substr(at + 4), nullptr, false);
}

}  // namespace paceline::test
