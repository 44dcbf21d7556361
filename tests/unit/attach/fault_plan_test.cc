#include "dataplane/attach/injection/fault_plan.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace paceline::attach;

namespace {

std::string error_of(const char* text) {
  std::vector<FaultRule> rules;
  return parse_fault_rules(text, rules);
}

FaultRule rule_of(const char* text) {
  std::vector<FaultRule> rules;
  REQUIRE(parse_fault_rules(text, rules).empty());
  REQUIRE(rules.size() == 1);
  return rules[0];
}

std::vector<std::uint64_t> hit(const FaultRule& rule, std::uint64_t seed, std::uint32_t pair) {
  std::vector<std::uint64_t> requests;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    if (rule.hits(seed, 0, pair, i)) requests.push_back(i);
  }
  return requests;
}

}  // namespace

TEST_CASE("faults: rules are read as they are written") {
  std::vector<FaultRule> rules;
  REQUIRE(parse_fault_rules("slow,rate=0.25,for=5ms;rnr,every=3,qp=2", rules).empty());
  REQUIRE(rules.size() == 2);
  CHECK(rules[0].kind == FaultKind::slow);
  CHECK(rules[0].rate == 0.25);
  CHECK(rules[0].for_us == 5000);
  CHECK(rules[1].kind == FaultKind::rnr);
  CHECK(rules[1].every == 3);
  CHECK(rules[1].queue_pair == 2);
  CHECK(rule_of("port-down,at=1,for=60s").for_us == 60'000'000);
}

TEST_CASE("faults: what makes no sense is refused") {
  for (const char* text :
       {"", ";", "rnr", "rnr,", "rnr,at", "rnr,at=", "rnr,at=-1", "rnr,at=1x", "rnr,rate=nan",
        "rnr,rate=0", "rnr,rate=1.1", "rnr,at=1,at=2", "slow,at=1,for=0us", "slow,at=1,for=61s",
        "slow,at=1,for=ms", "slow,at=1,for=18446744073709551615s", "rnr,at=1,qp=0", "rnr,at=1;"}) {
    INFO(text);
    CHECK(!error_of(text).empty());
  }
  std::string many = "rnr,at=1";
  for (int i = 0; i < 64; ++i) many += ";rnr,at=1";
  CHECK(error_of(many.c_str()) == "more than 64 faults");
}

TEST_CASE("faults: who is hit depends on seed, queue pair and number alone") {
  CHECK(hit(rule_of("rnr,at=7"), 1, 1) == std::vector<std::uint64_t>{7});
  CHECK(hit(rule_of("rnr,every=400"), 1, 5) == std::vector<std::uint64_t>{400, 800});
  CHECK(hit(rule_of("rnr,at=7,qp=2"), 1, 1).empty());
  CHECK(hit(rule_of("rnr,at=7,qp=2"), 1, 2).size() == 1);
  const FaultRule tenth = rule_of("rnr,rate=0.1");
  CHECK(hit(tenth, 1, 1) == hit(tenth, 1, 1));
  CHECK(hit(tenth, 1, 1) != hit(tenth, 2, 1));
  CHECK(hit(tenth, 1, 1) != hit(tenth, 1, 2));
  // 100 of 1,000 are expected; six standard deviations are 57.
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const std::size_t count = hit(tenth, seed, 1).size();
    INFO("seed " << seed << ": " << count);
    CHECK((count > 43 && count < 157));
  }
  CHECK(hit(rule_of("rnr,rate=1"), 1, 1).size() == 1000);
}
