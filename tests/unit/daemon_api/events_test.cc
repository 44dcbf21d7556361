#include "control/daemon/api/events.h"

#include <catch2/catch.hpp>

#include "control/daemon/api/client/event_parser.h"
#include "control/daemon/api/server/event_queue.h"
#include "dataplane/base/numbers/random.h"

namespace paceline::daemon {
namespace {

TEST_CASE("topics are those there are", "[daemon_api]") {
  std::vector<std::string> topics;
  CHECK(read_topics("", topics).empty());
  CHECK(topics.size() == kTopics.size());
  CHECK(read_topics("guard,sample", topics).empty());
  CHECK(topics == std::vector<std::string>{"guard", "sample"});
  CHECK_FALSE(read_topics("guard,", topics).empty());
  CHECK_FALSE(read_topics("Guard", topics).empty());
}

TEST_CASE("events are parsed from pieces of any size as they were queued", "[daemon_api]") {
  EventQueue queue(100, 100'000);
  for (int i = 0; i < 50; ++i) queue.push("sample", Json{{"i", i}, {"text", "a\nb: \xe2\x82\xac"}});
  CHECK(queue.size() == 50);
  const std::string text =
      ": hello\n\n" + queue.take() + ": still here\r\n\r\nevent: trial\rdata: 1\rdata: 2\r\r";
  CHECK(queue.empty());
  Random random(3);
  for (int round = 0; round < 100; ++round) {
    EventParser parser;
    std::vector<std::pair<std::string, std::string>> got;
    const auto keep = [&](std::string_view topic, std::string_view data) {
      got.emplace_back(topic, data);
      return true;
    };
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t piece = 1 + random.next() % 40;
      REQUIRE(parser.take(std::string_view(text).substr(at, piece), keep));
      at += piece;
    }
    REQUIRE(got.size() == 51);
    CHECK(Json::parse(got[49].second).at("i") == 49);
    CHECK(Json::parse(got[0].second).at("text") == "a\nb: \xe2\x82\xac");
    CHECK(got[50] == std::pair<std::string, std::string>{"trial", "1\n2"});
  }
}

TEST_CASE("a listener that falls behind is left with one last event that says so", "[daemon_api]") {
  SECTION("by number") {
    EventQueue queue(4, 100'000);
    for (int i = 0; i < 4; ++i) queue.push("sample", i);
    CHECK_FALSE(queue.overflowed());
    queue.push("sample", 4);
    CHECK(queue.overflowed());
    CHECK(queue.size() == 1);
    queue.push("sample", 5);
    CHECK(queue.size() == 1);
    const std::string last = queue.take();
    CHECK(last.find("id: 5\nevent: dropped\n") == 0);
    CHECK(last.find("\"events_lost\":5") != std::string::npos);
  }
  SECTION("by bytes") {
    EventQueue queue(1000, 1000);
    queue.push("sample", std::string(800, 'x'));
    queue.push("sample", std::string(800, 'x'));
    CHECK(queue.overflowed());
    CHECK(queue.take().size() < 300);
  }
}

TEST_CASE("an event without end is not kept without end", "[daemon_api]") {
  EventParser parser;
  const std::string piece(1 << 20, 'x');
  bool taken = true;
  int pieces = 0;
  while (taken && pieces < 100) {
    taken = parser.take(piece, [](std::string_view, std::string_view) { return true; });
    ++pieces;
  }
  CHECK(pieces == (EventParser::kMostEvent >> 20) + 1);
}

}  // namespace
}  // namespace paceline::daemon
