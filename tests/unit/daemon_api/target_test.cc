#include "control/daemon/api/target.h"

#include <catch2/catch.hpp>

#include "dataplane/base/numbers/random.h"
#include "dataplane/base/text/printable.h"

namespace paceline::daemon {
namespace {

TEST_CASE("a target is taken apart and decoded", "[daemon_api]") {
  Target target;
  REQUIRE(read_target("/v1/nics/a%2Fb%20c?x=1+2&y&z=%C3%A4&", target).empty());
  CHECK(target.segments == std::vector<std::string>{"v1", "nics", "a/b c"});
  REQUIRE(target.query.size() == 3);
  CHECK(target.query[0] == std::pair<std::string, std::string>{"x", "1 2"});
  CHECK(target.query[1] == std::pair<std::string, std::string>{"y", ""});
  CHECK(target.query[2] == std::pair<std::string, std::string>{"z", "\xc3\xa4"});
  REQUIRE(read_target("http://host:1/v1", target).empty());
  CHECK(target.segments == std::vector<std::string>{"v1"});
  REQUIRE(read_target("/a+b", target).empty());
  CHECK(target.segments == std::vector<std::string>{"a+b"});
  REQUIRE(read_target("/", target).empty());
  CHECK(target.segments == std::vector<std::string>{""});
}

TEST_CASE("a target that is wrong is refused with the reason", "[daemon_api]") {
  Target target;
  for (const char* wrong : {"", "*", "v1", "/%", "/%2", "/%zz", "/%00", "/a%0Ab", "/%ff", "/?a=%c3",
                            "/?%7f=1", "/%ed%a0%80", "/%c0%af", "/%f4%90%80%80"}) {
    INFO(wrong);
    CHECK(read_target(wrong, target).starts_with("target: "));
  }
}

TEST_CASE("encoding and decoding a segment give back what went in", "[daemon_api]") {
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    const std::uint64_t length = 1 + random.next() % 12;
    while (text.size() < length) {
      const std::uint64_t pick = random.next();
      if (pick % 4 == 0) {
        text += "\xe2\x82\xac";
      } else {
        text += static_cast<char>(0x20 + pick / 4 % 0x5f);
      }
    }
    Target target;
    INFO(text);
    REQUIRE(
        read_target("/" + percent_encoded(text) + "?k=" + percent_encoded(text), target).empty());
    CHECK(target.segments == std::vector<std::string>{text});
    REQUIRE(target.query.size() == 1);
    CHECK(target.query[0].second == text);
  }
}

TEST_CASE("text in messages is short and printable", "[daemon_api]") {
  CHECK(in_quotes("abc") == "\"abc\"");
  CHECK(in_quotes(std::string_view("a\n\xff\0b", 5)) == "\"a???b\"");
  CHECK(in_quotes(std::string(1000, 'x')).size() < 70);
  CHECK(is_utf8(in_quotes(std::string(59, 'x') + "\xe2\x82\xac\xe2\x82\xac")));
}

}  // namespace
}  // namespace paceline::daemon
