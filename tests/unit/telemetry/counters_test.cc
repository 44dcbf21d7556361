#include "dataplane/telemetry/counters.h"

#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::telemetry {
namespace {

// Counters whose i-th word is first + i.
EngineCounters numbered(std::uint64_t first) {
  CounterWords words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = first + i;
  return std::bit_cast<EngineCounters>(words);
}

TEST_CASE("every counter is visited once, in order, under a name of its own") {
  std::set<std::string> names;
  std::uint64_t expected = 100;
  for_each(numbered(100), [&](std::string_view name, std::uint64_t value) {
    CHECK(names.insert(std::string(name)).second);
    CHECK(value == expected++);
    CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
  });
  CHECK(names.size() > 5);
}

TEST_CASE("sums include every counter and every slot") {
  EngineCounters sum = numbered(1000);
  sum += numbered(50);
  const auto words = std::bit_cast<CounterWords>(sum);
  for (std::size_t i = 0; i < words.size(); ++i) CHECK(words[i] == 1050 + 2 * i);
}

TEST_CASE("counters start at zero") {
  for_each(EngineCounters{}, [](std::string_view name, std::uint64_t value) {
    INFO(name);
    CHECK(value == 0);
  });
}

TEST_CASE("a name belongs to its field") {
  EngineCounters counters;
  counters.cnps_sent = 3;
  counters.retransmitted_bytes = 4170;
  ++counters.malformed[2];
  counters.malformed[31] += 5;
  std::vector<std::string> set;
  for_each(counters, [&](std::string_view name, std::uint64_t value) {
    if (value != 0) set.push_back(std::string(name) + "=" + std::to_string(value));
  });
  CHECK(set == std::vector<std::string>{"retransmitted_bytes=4170", "cnps_sent=3"});
  CHECK(malformed_total(counters) == 6);
}

}  // namespace
}  // namespace paceline::telemetry
