// NICs of several ports: what a message gains from all planes, and that no port, plane or switch
// that fails and comes back is noticed above the transport as long as a path is left.
//   PLANES_WORLDS=400 build/release/tests/sim/test_sim "planes: *"     some 10,000 failures
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

const std::string kSelective = "[transport]\nreliability = \"selective\"\n";

// Bytes that have arrived, every 100 us.
std::vector<double> arrivals(const std::string& toml) {
  std::vector<double> bytes;
  WorldOptions options = checked();
  options.sample_interval = picos_from_micros(100);
  options.sample = [&bytes](const VirtualWorld& world, Picos) {
    bytes.push_back(static_cast<double>(total_counters(world).rx_wire_bytes));
  };
  VirtualWorld world = world_of(toml, options);
  CHECK(to_string(world.run()) == std::string("duration"));
  CHECK(world.messages_failed() == 0);
  CHECK(total_counters(world).digest_mismatches == 0);
  return bytes;
}

// What eight NICs of 400 Gb/s receive between two times in milliseconds, as a share of their links.
double received(const std::vector<double>& bytes, double from_ms, double to_ms) {
  const auto at = [&bytes](double ms) {
    return bytes.at(static_cast<std::size_t>(ms * 10 + 0.5) - 1);
  };
  return (at(to_ms) - at(from_ms)) / (8 * 50e6 * (to_ms - from_ms));
}

std::string permutation(const std::string& cc, const std::string& fabric, const char* failing) {
  return fmt::format(
      "{}duration = \"4ms\"\n[fabric]\ntopology = \"leaf_spine\"\nhosts_per_leaf = 4\nleaves = 2\n"
      "spines = 4\nload_balance = \"spray\"\n{}{}[workload]\nkind = \"permutation\"\nmessage_bytes "
      "= \"400MB\"\n"
      "[[event]]\nat = \"1ms\"\nlink = \"{}\"\naction = \"down\"\n"
      "[[event]]\nat = \"2500us\"\nlink = \"{}\"\naction = \"up\"\n",
      cc, fabric, kSelective, failing, failing);
}

// Tail of a permutation over eight planes of 50 Gb/s, against one port of 400 Gb/s.
double tail_of_planes(std::vector<std::string> overrides) {
  const auto p99 = [&overrides] {
    const tools::ScenarioRun r = run(shipped("planes-1024", overrides));
    CHECK(r.result.status == experiment::RunStatus::ok);
    CHECK(r.network.total_drops() == 0);
    return r.result.metrics[experiment::Metric::fct_p99_us];
  };
  const double planes = p99();
  overrides.insert(overrides.end(),
                   {"fabric.ports=1", "fabric.rate=400Gb/s", "transport.multipath=packet"});
  return planes / p99();
}

TEST_CASE("planes: eight of 50 Gb/s are as fast as one port of 400 Gb/s", "[planes]") {
  for (const char* const name : {"cadence", "dcqcn", "eqds", "nscc", "swift"}) {
    CAPTURE(name);
    CHECK(tail_of_planes({"fabric.hosts=64", std::string("cc.algorithm=") + name}) <= 1.03);
  }
}

TEST_CASE("planes: as fast with 1,024 NICs", "[planes][slow]") {
  CHECK(tail_of_planes({}) <= 1.03);
}

void seven_of_eight_carry_on(const char* name) {
  CAPTURE(name);
  const std::string cc = fmt::format("cc = {{ algorithm = \"{}\" }}\n", name);
  const std::vector<double> bytes =
      arrivals(permutation(cc, "rate = \"50Gb/s\"\nports = 8\n", "plane3"));
  CHECK(received(bytes, 0.3, 1.0) >= 0.98);
  CHECK(received(bytes, 2.0, 2.5) >= 0.85);
  CHECK(received(bytes, 1.2, 2.5) <= 0.8751);  // seven eighths
  CHECK(received(bytes, 3.5, 3.9) >= 0.99);
}

TEST_CASE("planes: one of eight dies, seven carry on, and it comes back", "[planes]") {
  seven_of_eight_carry_on("cadence");
}

// The code of these under failures runs in the random worlds below, too.
TEST_CASE("planes: one of eight dies, under other algorithms", "[planes][slow]") {
  for (const char* const name : {"dcqcn", "eqds", "nscc", "swift"}) seven_of_eight_carry_on(name);
}

TEST_CASE("planes: one switch of a dual-ToR pair dies, half is left, and it comes back",
          "[planes]") {
  const std::vector<double> bytes = arrivals(
      permutation(kCadence, "rate = \"200Gb/s\"\nports = 2\nplanes = \"shared\"\n", "plane1"));
  CHECK(received(bytes, 0.3, 1.0) >= 0.97);
  CHECK(received(bytes, 2.0, 2.5) >= 0.48);
  CHECK(received(bytes, 1.2, 2.5) <= 0.5001);
  CHECK(received(bytes, 3.5, 3.9) >= 0.97);
}

// Failures of a world. At any time one plane at least is whole, now this one, now that.
std::string failures(Random& random, std::uint32_t ports, bool own, unsigned& count) {
  constexpr std::uint32_t kLeaves = 2, kSpines = 2, kHosts = 6;
  std::string events;
  const auto add = [&events](std::uint64_t at_ns, const std::string& link, const char* action) {
    events += fmt::format("[[event]]\nat = \"{}ns\"\nlink = \"{}\"\naction = \"{}\"\n", at_ns, link,
                          action);
  };
  for (std::uint64_t phase = 0; phase < 6; ++phase) {
    const std::uint64_t begin = phase * 400'000, end = begin + 300'000;
    const auto whole = static_cast<std::uint32_t>(random.below(ports));
    for (std::uint32_t plane = 0; plane < ports; ++plane) {
      if (plane == whole) continue;
      for (std::uint64_t at = begin + random.below(100'000); at + 1'000 < end;) {
        std::string link = fmt::format("plane{}", plane);
        const std::uint64_t kind = random.below(4);
        if (kind >= 2) {
          link = fmt::format("host{}.p{}", random.below(kHosts), plane);
        } else if (kind == 1) {
          link = fmt::format("leaf{}", plane * kLeaves + random.below(kLeaves));
        }
        if (own && kind == 1 && random.below(2) == 0) {
          link = fmt::format("spine{}", plane * kSpines + random.below(kSpines));
        }
        const std::uint64_t until = std::min(end, at + 1'000 + random.below(150'000));
        add(at, link, "down");
        add(until, link, "up");
        ++count;
        at = until + 1'000 + random.below(100'000);
      }
    }
  }
  return events;
}

TEST_CASE("planes: random failures and returns lose, double and fail nothing",
          "[planes][property]") {
  const char* const wanted = std::getenv("PLANES_WORLDS");
  const unsigned worlds = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 40;
  unsigned count = 0;
  for (std::uint64_t seed = 1; seed <= worlds; ++seed) {
    Random random(seed, 24);
    const bool own = random.below(4) != 0;
    constexpr std::array<std::uint32_t, 4> kPorts = {2, 3, 4, 8};
    const std::uint32_t ports = own ? kPorts[random.below(4)] : 2;
    const bool sprays = random.below(3) != 0;
    constexpr std::array<const char*, 6> kSpread = {"cadence", "dcqcn", "eqds",
                                                    "nscc",    "swift", "fixed"};
    constexpr std::array<const char*, 4> kOnOne = {"dcqcn", "nscc", "swift", "fixed"};
    const char* const planes = sprays ? "spray" : random.below(2) == 0 ? "hash" : "pinned";
    const bool selective = sprays || random.below(2) == 0;
    const std::string toml = fmt::format(
        "seed = {}\ncc = {{ algorithm = \"{}\" }}\n[fabric]\ntopology = \"leaf_spine\"\n"
        "hosts_per_leaf = 3\nleaves = 2\nspines = 2\nrate = \"{}Gb/s\"\nports = {}\nplanes = "
        "\"{}\"\n"
        "[transport]\nreliability = \"{}\"\nplanes = \"{}\"\nretransmit_timeout = \"1ms\"\n"
        "[workload]\nkind = \"all_to_all\"\nmessage_bytes = \"{}kB\"\nskew = 0.5\n{}",
        seed, sprays ? kSpread[random.below(6)] : kOnOne[random.below(4)], 40 / ports, ports,
        own ? "own" : "shared", selective ? "selective" : "go_back_n", planes,
        500 + random.below(1500), failures(random, ports, own, count));
    CAPTURE(seed, toml);
    VirtualWorld world = world_of(toml, checked());
    CHECK(to_string(world.run()) == std::string("completed"));
    CHECK(broken_law(world) == "");
    CHECK(world.messages_failed() == 0);
    CHECK(world.messages_completed() == world.plan().messages.size());
    CHECK(total_counters(world).digest_mismatches == 0);
  }
  CHECK(count >= 20 * worlds);
}

}  // namespace
}  // namespace paceline::simtest
