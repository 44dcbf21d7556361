// Events through the server, and the synchronous client.
#include <array>
#include <atomic>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <thread>

#include "control/daemon/api/client/client.h"
#include "tests/unit/daemon_api/served.h"

namespace paceline::test {
namespace {

using daemon::Client;
using std::chrono::milliseconds;

// Opens a listener and waits for the first line of it.
net::awaitable<std::string> begin_listening(LocalSocket& socket, const std::string& path,
                                            std::string target) {
  socket.connect(path);
  co_await write_all(socket, get(target));
  std::string text = co_await read_until(socket, ": welcome\n\n");
  co_return text;
}

TEST_CASE("events reach those who listen to their topic", "[daemon_api]") {
  Served served;
  LocalSocket all(served.context);
  LocalSocket some(served.context);
  CHECK(served.run(begin_listening(all, served.path, "/v1/events")).find("text/event-stream") !=
        std::string::npos);
  served.run(begin_listening(some, served.path, "/v1/events?topics=guard,trial"));
  CHECK(served.hub.listeners() == 2);
  served.hub.publish("sample", Json{{"n", 1}});
  served.hub.publish("guard", Json{{"n", 2}});
  CHECK(served.run(read_until(all, "\"n\":2}\n\n")) ==
        "id: 1\nevent: sample\ndata: {\"n\":1}\n\nid: 2\nevent: guard\ndata: {\"n\":2}\n\n");
  CHECK(served.run(read_until(some, "\"n\":2}\n\n")) == "id: 1\nevent: guard\ndata: {\"n\":2}\n\n");
  all.close();
  for (int i = 0; i < 1000 && served.hub.listeners() > 1; ++i) served.context.run_one();
  CHECK(served.hub.listeners() == 1);
  served.server->stop();
  CHECK(served.run(read_until(some, {})).empty());
  CHECK(served.server->counts().events == 3);
}

TEST_CASE("a silent listener hears that the server is there", "[daemon_api]") {
  daemon::ApiSettings settings;
  settings.keep_alive_ms = 20;
  Served served(settings);
  LocalSocket socket(served.context);
  served.run(begin_listening(socket, served.path, "/v1/events"));
  CHECK(served.run(read_until(socket, ": still here\n\n")) == ": still here\n\n");
}

TEST_CASE("a slow listener is let go with a last event, others hear everything", "[daemon_api]") {
  daemon::ApiSettings settings;
  settings.most_queued_events = 8;
  Served served(settings);
  LocalSocket slow(served.context);
  LocalSocket quick(served.context);
  served.run(begin_listening(slow, served.path, "/v1/events"));
  served.run(begin_listening(quick, served.path, "/v1/events"));
  // Each event is more than a socket's buffer takes, so that one write waits and the rest queue.
  const std::string filler(100'000, 'x');
  for (int i = 0; i < 20; ++i) {
    served.hub.publish("sample", Json{{"i", i}, {"filler", filler}});
    CHECK(served.run(read_until(quick, "\n\n")).find("\"i\":" + std::to_string(i)) !=
          std::string::npos);
  }
  const std::string heard = served.run(read_until(slow, {}));
  CHECK(heard.find("event: dropped\ndata: {\"events_lost\":") != std::string::npos);
  CHECK(heard.ends_with("\n\n"));
  CHECK(served.server->counts().slow_listeners == 1);
  CHECK(served.hub.listeners() == 1);
}

TEST_CASE("there are so many listeners and no more", "[daemon_api]") {
  daemon::ApiSettings settings;
  settings.most_listeners = 1;
  Served served(settings);
  LocalSocket first(served.context);
  served.run(begin_listening(first, served.path, "/v1/events"));
  CHECK(status_of_reply(served.run(converse(served.path, get("/v1/events")))) == 429);
}

// The server in a thread of its own, for clients that wait.
class ServedAside : public Served {
 public:
  explicit ServedAside(daemon::ApiSettings settings = {}) : Served(std::move(settings)) {
    thread_ = std::thread([this] { context.run(); });
  }
  ~ServedAside() {
    net::post(context, [this] { server->stop(); });
    if (thread_.joinable()) thread_.join();
  }
  void publish(std::string topic, Json data) {
    net::post(context, [this, topic = std::move(topic), data = std::move(data)] {
      hub.publish(topic, data);
    });
  }

 private:
  std::thread thread_;
};

TEST_CASE("the client gets answers and refusals in words", "[daemon_api][threads]") {
  const ServedAside served;
  const Client client(served.path);
  const daemon::Answer good = client.get("/v1/nics?limit=4");
  CHECK(good.good());
  CHECK(good.complaint().empty());
  CHECK(good.body["query"]["limit"] == "4");
  CHECK(client.get("/metrics").text == "up 1\n");
  CHECK(client.request("HEAD", "/v1/nics").status == 200);
  const Json body{{"set", {{"x", 1}}}, {"why", "test"}};
  CHECK(client.request("PUT", "/v1/nics/a/parameters", body).body["body"] == body);
  const daemon::Answer refused = client.get("/v1/nics?limit=0&all=2");
  CHECK(refused.status == 400);
  CHECK(refused.complaint() ==
        "query.limit: \"0\"; allowed: whole number from 1 to 100\n"
        "query.all: \"2\"; allowed: true or false");
  const Json huge{{"plan", std::string(2 << 20, 'x')}};
  CHECK(client.request("POST", "/v1/trials", huge).complaint() == "body: longer than 262144 bytes");
}

TEST_CASE("the client says why nobody answers", "[daemon_api][threads]") {
  const OwnFolder folder;
  CHECK(Client(folder / "none").get("/").error.find("no daemon answers") != std::string::npos);
  CHECK(Client(std::string(300, 'x')).get("/").error.find("no daemon") != std::string::npos);
  // Something else listens: it speaks no HTTP, or nothing at all.
  net::io_context context;
  net::local::stream_protocol::acceptor other(context,
                                              net::local::stream_protocol::endpoint(folder / "s"));
  std::thread thread([&] {
    auto socket = other.accept();
    std::array<char, 256> in{};
    socket.read_some(net::buffer(in));
    net::write(socket, net::buffer(std::string_view("220 mail ready\r\n\r\n")));
  });
  CHECK(Client(folder / "s").get("/").error.find("not a daemon") != std::string::npos);
  thread.join();
  CHECK(Client(folder / "s", milliseconds(50)).get("/").error.find("in time") != std::string::npos);
}

TEST_CASE("the client listens until it has heard enough", "[daemon_api][threads]") {
  ServedAside served;
  const Client client(served.path);
  CHECK(client.listen("nonsense", [](std::string_view, const Json&) { return true; })
            .find("query.topics: \"nonsense\"") != std::string::npos);
  // Published until somebody hears it: when the listener is there is not for this thread to know.
  std::atomic<bool> enough{false};
  std::thread publisher([&] {
    while (!enough) {
      served.publish("trial", Json{{"step", 1}});
      served.publish("guard", Json{{"step", 2}});
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  int heard = 0;
  const std::string ended = client.listen("guard", [&](std::string_view topic, const Json& data) {
    CHECK(topic == "guard");
    CHECK(data["step"] == 2);
    return ++heard < 3;
  });
  enough = true;
  publisher.join();
  CHECK(ended.empty());
  CHECK(heard == 3);
}

}  // namespace
}  // namespace paceline::test
