// The same seed gives the same run, to the picosecond, on every compiler, at every optimisation and
// under every sanitizer; and no look at a run changes it.

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>

#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

// Everything but the congestion control.
const std::string kEightToOne = incast(7, 8, "1MB");
// A buffer so small that PFC pauses, or without PFC drops.
const std::string kSmallBuffer = R"(
seed = 7
[fabric]
hosts = 9
buffer = "600kB"
[fabric.ecn]
kmin = "100kB"
kmax = "400kB"
[workload]
kind = "incast"
fan_in = 8
message_bytes = "500kB"
)";
const std::string kMoe = R"(
seed = 11
[fabric]
hosts = 8
[workload]
kind = "all_to_all"
message_bytes = "100kB"
skew = 1.0
start_jitter = "20us"
)";
const std::string kWebSearch = R"(
seed = 13
[fabric]
hosts = 8
[workload]
kind = "open_loop"
cdf = "websearch"
load = 0.8
window = "300us"
)";
const std::string kRing = R"(
seed = 17
[fabric]
hosts = 4
[workload]
kind = "ring_all_reduce"
all_reduce_bytes = "2MB"
chunk_bytes = "64KiB"
start_jitter = "5us"
)";
const std::string kLossy = R"(
seed = 19
[fabric]
hosts = 6
loss = 1e-3
[transport]
payload_bytes = 1024
[workload]
kind = "incast"
fan_in = 5
message_bytes = "600kB"
)";

struct Case {
  const char* name;
  const std::string& scenario;
  const std::string& cc;
};

const Case kCases[] = {
    // clang-format off
    {"incast dcqcn paper", kEightToOne, kDcqcnPaper},
    {"incast dcqcn hpcc-repo", kEightToOne, kDcqcnHpcc},
    {"incast cadence", kEightToOne, kCadence},
    {"pfc fixed", kSmallBuffer, kFixed},
    {"pfc dcqcn paper", kSmallBuffer, kDcqcnPaper},
    {"moe dcqcn paper", kMoe, kDcqcnPaper},
    {"moe cadence", kMoe, kCadence},
    {"websearch dcqcn hpcc-repo", kWebSearch, kDcqcnHpcc},
    {"websearch cadence", kWebSearch, kCadence},
    {"ring dcqcn paper", kRing, kDcqcnPaper},
    {"ring cadence", kRing, kCadence},
    {"loss fixed", kLossy, kFixed},
    {"loss dcqcn paper", kLossy, kDcqcnPaper},
    {"loss cadence", kLossy, kCadence},
    // clang-format on
};

// Digests of kCases, in that order. After a change that is meant to change results, print them
// anew, replace the whole list, and say in the commit why:
//   build/release/tests/sim/test_sim "[.reprint-golden]"
constexpr std::uint64_t kGolden[] = {
    0xe82f0f1a8968cea6ULL,  // incast dcqcn paper
    0xf0f34072792bda2eULL,  // incast dcqcn hpcc-repo
    0xb758bb36fe169f1bULL,  // incast cadence
    0x72c7db79c338b1beULL,  // pfc fixed
    0x60ebb8a3abc7ce50ULL,  // pfc dcqcn paper
    0x0b10033860679adeULL,  // moe dcqcn paper
    0x3889d2ed79f5b5b0ULL,  // moe cadence
    0x5049d9981431bbc8ULL,  // websearch dcqcn hpcc-repo
    0x72457a78609d5cefULL,  // websearch cadence
    0x40d488743a340a13ULL,  // ring dcqcn paper
    0x908d30780650978fULL,  // ring cadence
    0x09e725907fa363b9ULL,  // loss fixed
    0x81ea21fdf10d2fd0ULL,  // loss dcqcn paper
    0xf3149c30b5f982fbULL,  // loss cadence
};
static_assert(std::size(kGolden) == std::size(kCases));

std::uint64_t hash_of(const Case& c, WorldOptions options = {}) {
  VirtualWorld world = world_of(c.cc + c.scenario, std::move(options));
  const RunEnd end = world.run();
  INFO(c.name << ": " << world.problem());
  REQUIRE(end == RunEnd::completed);
  REQUIRE(world.messages_failed() == 0);
  return world.trace_hash();
}

TEST_CASE("determinism: the trace hash of a seed is the pinned one, run after run",
          "[determinism]") {
  for (std::size_t i = 0; i < std::size(kCases); ++i) {
    CAPTURE(kCases[i].name);
    const std::uint64_t first = hash_of(kCases[i]);
    CHECK(first == kGolden[i]);
    CHECK(hash_of(kCases[i]) == first);
  }
}

TEST_CASE("determinism: deciding departures lazily or exactly gives the same run",
          "[determinism]") {
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    WorldOptions options;
    options.exact_departures = true;
    CHECK(hash_of(c, options) == hash_of(c));
  }
}

TEST_CASE("determinism: checking invariants changes nothing", "[determinism]") {
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    CHECK(hash_of(c, checked()) == hash_of(c));
  }
}

TEST_CASE("determinism: the golden scenarios exercise what they are named for", "[determinism]") {
  {
    VirtualWorld world = world_of(kFixed + kSmallBuffer);
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(world.network().stats().pause_frames > 0);
    CHECK(world.network().stats().marked_packets > 0);
    CHECK(world.network().stats().total_drops() == 0);
  }
  {
    VirtualWorld world = world_of(kDcqcnPaper + kLossy);
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(world.network().stats().total_drops() > 0);
    CHECK(total_counters(world).retransmitted_bytes > 0);
  }
  {
    VirtualWorld world = world_of(kDcqcnHpcc + kEightToOne);
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(total_counters(world).cnps_received > 0);
  }
  {
    VirtualWorld world = world_of(kCadence + kMoe);
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(total_counters(world).grants_received > 0);
  }
}

TEST_CASE("determinism: another seed, another parameter, another run", "[determinism]") {
  const auto hash = [](const std::string& cc, const std::string& scenario) {
    VirtualWorld world = world_of(cc + scenario);
    REQUIRE(world.run() == RunEnd::completed);
    return world.trace_hash();
  };
  std::string other_seed = kEightToOne;
  other_seed.replace(other_seed.find("seed = 7"), 8, "seed = 8");
  const std::uint64_t base = hash(kDcqcnPaper, kEightToOne);
  CHECK(hash(kDcqcnPaper, other_seed) != base);
  CHECK(hash(kDcqcnHpcc, kEightToOne) != base);
}

TEST_CASE("determinism: print the golden table", "[.reprint-golden]") {
  for (const Case& c : kCases) {
    std::printf("    0x%016llxULL,  // %s\n", static_cast<unsigned long long>(hash_of(c)), c.name);
  }
}

}  // namespace
}  // namespace paceline::simtest
