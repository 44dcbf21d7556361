// The connection to the service: order, refusals, answers that are none, and coming back.
#include "control/daemon/service_link/control_client.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include "tests/unit/daemon/fake_service.h"
#include "tests/unit/daemon/scratch_folder.h"

namespace paceline::daemon {

namespace {

namespace asio = boost::asio;
using nlohmann::json;
using namespace std::chrono_literals;

struct Pair {
  Pair() {
    ControlSettings settings;
    settings.path = folder.file("control.sock");
    settings.answer_limit = 50ms;
    settings.least_wait = 1ms;
    settings.most_wait = 4ms;
    client = std::make_unique<ControlClient>(context, settings);
    client->up = [this](const json& hello, std::int32_t pid) {
      ++ups;
      last_hello = hello;
      peer = pid;
    };
    client->down = [this] { ++downs; };
    asio::co_spawn(context, client->run(), asio::detached);
  }
  ~Pair() {
    client->stop();
    service.end();
    context.run_for(100ms);
  }
  // Until it holds; a minute is the end of patience, not a measure.
  template <class Condition>
  bool run_until(Condition condition) {
    for (int i = 0; i < 6000 && !condition(); ++i) context.run_for(10ms);
    return condition();
  }
  void ask(const std::string& op, json members = json::object()) {
    asio::co_spawn(
        context,
        [](Pair& pair, std::string name, json given) -> asio::awaitable<void> {
          ControlAnswer answer = co_await pair.client->call(std::move(name), std::move(given));
          pair.answers.push_back(std::move(answer));
        }(*this, op, std::move(members)),
        asio::detached);
  }

  ScratchFolder folder;
  asio::io_context context;
  FakeService service{context};
  std::unique_ptr<ControlClient> client;
  int ups = 0;
  int downs = 0;
  json last_hello;
  std::int32_t peer = 0;
  std::vector<ControlAnswer> answers;
};

}  // namespace

TEST_CASE("requests go one at a time, in order, and answers come back to who asked", "[control]") {
  Pair pair;
  int under_way = 0;
  pair.service.operations["echo"] = [&](const json& request) {
    CHECK(under_way == 0);
    return json{{"ok", true}, {"value", request.at("value")}};
  };
  pair.service.operations["no"] = [](const json&) {
    return json{{"ok", false}, {"errors", {"first", "second"}}};
  };
  pair.service.listen(pair.folder.file("control.sock"));
  REQUIRE(pair.run_until([&] { return pair.client->connected(); }));
  CHECK(pair.last_hello.at("start_unix_ns") == 5);
  CHECK(pair.peer == ::getpid());
  for (int i = 0; i < 20; ++i) pair.ask("echo", {{"value", i}});
  pair.ask("no");
  REQUIRE(pair.run_until([&] { return pair.answers.size() == 21; }));
  for (int i = 0; i < 20; ++i) CHECK(pair.answers[static_cast<std::size_t>(i)].body["value"] == i);
  CHECK(pair.answers.back().kind == ControlAnswer::Kind::refused);
  CHECK(pair.answers.back().errors == std::vector<std::string>{"first", "second"});
  CHECK(pair.service.asked.size() == 22);
  CHECK(pair.downs == 0);
}

TEST_CASE("descriptors come with an answer", "[control]") {
  Pair pair;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  pair.service.descriptor = ends[1];
  pair.service.listen(pair.folder.file("control.sock"));
  REQUIRE(pair.run_until([&] { return pair.client->connected(); }));
  pair.ask("hello");
  REQUIRE(pair.run_until([&] { return !pair.answers.empty(); }));
  REQUIRE(pair.answers[0].descriptors.size() == 1);
  CHECK((::fcntl(pair.answers[0].descriptors[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("without a service calls are answered at once; with it again, they go on", "[control]") {
  Pair pair;
  REQUIRE(pair.run_until([&] { return pair.client->absent(); }));
  pair.ask("hello");
  REQUIRE(pair.run_until([&] { return pair.answers.size() == 1; }));
  CHECK(pair.answers[0].kind == ControlAnswer::Kind::unanswered);
  CHECK(pair.answers[0].errors.at(0).find("control.sock") != std::string::npos);
  for (int round = 1; round <= 3; ++round) {
    pair.service.listen(pair.folder.file("control.sock"));
    REQUIRE(pair.run_until([&] { return pair.client->connected(); }));
    CHECK(pair.ups == round);
    pair.service.end();
    REQUIRE(pair.run_until([&] { return pair.downs == round; }));
    CHECK_FALSE(pair.client->connected());
  }
}

TEST_CASE("no answer, a wrong one and no protocol at all end the connection, not the client",
          "[control]") {
  Pair pair;
  pair.service.operations["mute"] = [](const json&) { return json(); };
  pair.service.operations["stray"] = [](const json&) { return json{{"ok", true}, {"id", 4711}}; };
  pair.service.operations["noise"] = [](const json&) { return json("{]"); };
  pair.service.operations["gone"] = [&](const json&) {
    pair.service.end();
    return json();
  };
  pair.service.listen(pair.folder.file("control.sock"));
  const std::vector<std::pair<std::string, std::string>> cases{
      {"mute", "in time"},
      {"stray", "something else"},
      {"noise", "other than a JSON object"},
      {"gone", "went"}};
  std::size_t answered = 0;
  for (const auto& [op, word] : cases) {
    CAPTURE(op);
    REQUIRE(pair.run_until([&] { return pair.client->connected(); }));
    pair.ask(op);
    // Whoever waits behind it is answered, too.
    pair.ask("hello");
    answered += 2;
    REQUIRE(pair.run_until([&] { return pair.answers.size() == answered; }));
    CHECK(pair.answers[answered - 2].kind == ControlAnswer::Kind::unanswered);
    CHECK(pair.answers[answered - 2].errors.at(0).find(word) != std::string::npos);
  }
}

TEST_CASE("a service that does not say hello is not connected", "[control]") {
  Pair pair;
  pair.service.operations["hello"] = [](const json&) {
    return json{{"ok", false}, {"errors", {"not for you"}}};
  };
  pair.service.listen(pair.folder.file("control.sock"));
  REQUIRE(pair.run_until([&] { return pair.service.asked.size() >= 3; }));
  CHECK(pair.ups == 0);
  CHECK(pair.client->trouble() == "not for you");
}

TEST_CASE("a request too long is refused before it is sent", "[control]") {
  Pair pair;
  pair.service.listen(pair.folder.file("control.sock"));
  REQUIRE(pair.run_until([&] { return pair.client->connected(); }));
  pair.ask("configure", {{"text", std::string(100'000, 'x')}});
  REQUIRE(pair.run_until([&] { return pair.answers.size() == 1; }));
  CHECK(pair.answers[0].kind == ControlAnswer::Kind::refused);
  CHECK(pair.client->connected());
}

}  // namespace paceline::daemon
