#include "dataplane/config/toml/diagnostics.h"

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::config {
namespace {

TEST_CASE("the nearest name is a plausible slip, or none", "[config]") {
  constexpr std::array<std::string_view, 4> kNames{"kmin", "kmax", "enabled", "hosts"};
  CHECK(nearest_name("kmni", kNames) == "kmin");  // a swap
  CHECK(nearest_name("kmi", kNames) == "kmin");
  CHECK(nearest_name("kmaxx", kNames) == "kmax");
  CHECK(nearest_name("enable", kNames) == "enabled");
  CHECK(nearest_name("host", kNames) == "hosts");
  CHECK(nearest_name("buffer", kNames).empty());
  CHECK(nearest_name("", kNames).empty());
  CHECK(nearest_name(std::string(100'000, 'k'), kNames).empty());
}

TEST_CASE("errors come in file order, each once", "[config]") {
  Diagnostics d;
  d.add({"--set a=1", 0, 0}, "last");
  d.add({"f", 10, 1}, "third");
  d.add({"f", 2, 9}, "second");
  d.add({"f", 2, 1}, "first");
  d.add({"f", 10, 1}, "third");
  CHECK(d.sorted() == std::vector<std::string>{"f:2:1: first", "f:2:9: second", "f:10:1: third",
                                               "--set a=1: last"});
}

TEST_CASE("an error quotes the beginning of a long value, and what follows it", "[config]") {
  const std::string eighty(80, 'x');
  const std::string path = "/" + std::string(200, 'p');
  CHECK(short_values("a = \"" + eighty + "\": expected b") == "a = \"" + eighty + "\": expected b");
  CHECK(short_values("a = \"" + eighty + "yz\": expected b") ==
        "a = \"" + eighty + "...\": expected b");
  CHECK(short_values("a = " + eighty + "yz: no") == "a = " + eighty + "... no");
  CHECK(short_values("\"" + std::string(100, ' ') + "\"") == "\"" + std::string(80, ' ') + "...\"");
  CHECK(short_values("\"" + eighty.substr(1) + "\u00e9\"") == "\"" + eighty.substr(1) + "...\"");
  CHECK(short_values("file \"" + path + "\"") == "file \"" + path + "\"");
  std::string words;
  while (words.size() < 100'000) words += "\" /";
  CHECK(short_values(words).size() < 4100);
  Diagnostics d;
  d.add({"f", 1, 1}, "a = \"" + std::string(1'000'000, 'x') + "\": expected b");
  CHECK(d.sorted() == std::vector<std::string>{"f:1:1: a = \"" + eighty + "...\": expected b"});
}

}  // namespace
}  // namespace paceline::config
