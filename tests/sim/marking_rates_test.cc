// Thresholds of marking by the rate of a link, in a whole world.
#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

// Ports of 25 Gb/s to hosts, 100 Gb/s between switches.
std::uint64_t marking_hash(const std::string& ecn, std::uint64_t* marked = nullptr) {
  const tools::ScenarioRun r =
      run(kDcqcnPaper + ecn +
          "[fabric]\ntopology = \"leaf_spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\n"
          "rate = \"25Gb/s\"\nuplink_rate = \"100Gb/s\"\n"
          "[workload]\nkind = \"incast\"\nfan_in = 12\nmessage_bytes = \"500kB\"\n");
  REQUIRE(r.end == RunEnd::completed);
  if (marked != nullptr) *marked = r.network.marked_packets;
  return r.result.trace_hash;
}

std::string curve(const std::string& table, const std::string& keys, const char* k) {
  return table + keys + "kmin = \"" + k + "00kB\"\nkmax = \"" + k + "000kB\"\npmax = 0.2\n";
}

TEST_CASE("thresholds of 25 and 100 Gb/s in one fabric, whichever are the general ones",
          "[marking]") {
  const std::string general = "[fabric.ecn]\n", own = "[[fabric.ecn.at_rate]]\n";
  std::uint64_t marked = 0;
  const std::uint64_t both =
      marking_hash(curve(general, "", "4") + curve(own, "rate = \"25Gb/s\"\n", "1"), &marked);
  CHECK(marked > 100);
  CHECK(marking_hash(curve(general, "", "1") + curve(own, "rate = \"100Gb/s\"\n", "4")) == both);
  CHECK(marking_hash(curve(general, "", "9") + curve(own, "rate = \"25Gb/s\"\n", "1") +
                     curve(own, "rate = \"100Gb/s\"\n", "4")) == both);
  CHECK(marking_hash(curve(general, "", "4")) != both);
  CHECK(marking_hash(curve(general, "", "4") + curve(own, "rate = \"400Gb/s\"\n", "1")) ==
        marking_hash(curve(general, "", "4")));
}

}  // namespace
}  // namespace paceline::simtest
