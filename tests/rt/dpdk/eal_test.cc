#include <algorithm>
#include <catch2/catch.hpp>

#include "dataplane/port/dpdk/dpdk_eal.h"
#include "tests/rt/dpdk/environment.h"

namespace paceline::test {
namespace {

bool has(const std::vector<std::string>& arguments, const std::string& one) {
  return std::find(arguments.begin(), arguments.end(), one) != arguments.end();
}

std::string why_not(const EalSettings& settings) {
  std::string error;
  CHECK(eal_arguments(settings, error).empty());
  return error;
}

TEST_CASE("eal: settings become arguments") {
  std::string error = "left over";
  const auto plain = eal_arguments({}, error);
  CHECK(error.empty());
  CHECK(plain.front() == "paceline");
  for (const char* one : {"--no-huge", "-m400", "--no-shconf", "--no-pci", "--no-telemetry"}) {
    CHECK(has(plain, one));
  }
  CHECK(std::any_of(plain.begin(), plain.end(),
                    [](const std::string& a) { return a.find("--lcores=0@(") == 0; }));
  EalSettings huge;
  huge.no_huge = false;
  huge.in_memory = true;
  huge.memory_mb = 0;
  huge.lcores = "0@0,1@1";
  huge.pci_allow = {"0000:3b:00.0"};
  huge.vdevs = {"net_null0,copy=1"};
  const auto arguments = eal_arguments(huge, error);
  CHECK(error.empty());
  for (const char* one :
       {"--in-memory", "--lcores=0@0,1@1", "--allow=0000:3b:00.0", "--vdev=net_null0,copy=1"}) {
    CHECK(has(arguments, one));
  }
  CHECK(!has(arguments, "--no-huge"));
  CHECK(!has(arguments, "--no-pci"));
}

TEST_CASE("eal: what cannot be is refused before DPDK sees it") {
  const auto refusal = [](auto change) {
    EalSettings settings;
    change(settings);
    return why_not(settings);
  };
  CHECK_THAT(refusal([](EalSettings& s) { s.in_memory = true; }), Catch::Contains("in_memory"));
  CHECK_THAT(refusal([](EalSettings& s) { s.memory_mb = 12; }), Catch::Contains("memory_mb = 12"));
  CHECK_THAT(refusal([](EalSettings& s) { s.memory_mb = 3'000'000'000; }),
             Catch::Contains("the machine has"));
  CHECK_THAT(refusal([](EalSettings& s) {
               s.no_huge = false;
               s.in_memory = true;
               s.file_prefix = "x";
             }),
             Catch::Contains("\"x\""));
  CHECK_THAT(refusal([](EalSettings& s) { s.lcores = "nonsense"; }),
             Catch::Contains("lcores = \"nonsense\""));
  CHECK_THAT(refusal([](EalSettings& s) { s.file_prefix = "a/b"; }), Catch::Contains("slashes"));
}

TEST_CASE("eal: DPDK's own refusal comes back as text, and may be tried again") {
  EalSettings settings;
  settings.lcores = "0@999";
  const bool first = !eal_is_up();
  const EalStart wrong = Eal::start(settings);
  CHECK(wrong.eal == nullptr);
  CHECK_THAT(wrong.error, Catch::Contains("--lcores=0@999"));
  CHECK_THAT(wrong.error, Catch::Contains(first ? "invalid parameter for --lcores" : "already"));
  CHECK(eal().iova_mode() == "VA");
}

}  // namespace
}  // namespace paceline::test
