// Ranks on NICs, and what crosses rails: closed forms.
#include "tools/workload/placement.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/workload/workload.h"

namespace paceline::workload::placement_test {
namespace {

using Lines = std::vector<std::string>;
using config::ServerShape;

config::Scenario rails(std::uint32_t servers, std::uint32_t nics, const char* kind) {
  config::Scenario s;
  s.fabric.hosts = servers * nics;
  s.fabric.nics = nics;
  s.workload.kind = kind;
  s.workload.message_bytes = 1000;
  return s;
}

MessagePlan plan_for(config::Scenario s, std::uint64_t seed = 1) {
  const auto inputs = load_inputs(s);
  REQUIRE(inputs.errors == Lines{});
  auto plan = make_plan(s, inputs.value, seed);
  REQUIRE(plan.errors == Lines{});
  return std::move(plan.value);
}

// Messages by where they go.
struct Counts {
  std::uint64_t inside = 0;
  std::uint64_t along_rail = 0;
  std::uint64_t cross_rail = 0;
};
Counts counts_of(const MessagePlan& plan, const ServerShape& shape) {
  Counts counts;
  for (const PlannedMessage& m : plan.messages) {
    if (shape.same_server(m.src, m.dst)) {
      ++counts.inside;
    } else {
      ++(shape.rail_of(m.src) == shape.rail_of(m.dst) ? counts.along_rail : counts.cross_rail);
    }
  }
  return counts;
}

TEST_CASE("placement: packed goes server by server, spread rail by rail", "[placement]") {
  const ServerShape shape{3, 2};  // NICs 0 1 2 are the first rail, 3 4 5 the second
  CHECK(place_ranks("packed", shape, 1) == Placement{0, 3, 1, 4, 2, 5});
  CHECK(place_ranks("spread", shape, 1) == Placement{0, 1, 2, 3, 4, 5});
  CHECK(place_ranks("packed", {4, 1}, 1) == Placement{0, 1, 2, 3});
}

TEST_CASE("placement: a random one gives each NIC one rank, by the seed", "[placement]") {
  const ServerShape shape{16, 8};
  std::set<Placement> seen;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Placement nics = place_ranks("random", shape, seed);
    CHECK(nics == place_ranks("random", shape, seed));
    seen.insert(nics);
    std::sort(nics.begin(), nics.end());
    CHECK(nics == place_ranks("spread", shape, seed));
  }
  CHECK(seen.size() == 50);
  // Each of 3 NICs is as likely for a rank as the others: 3000 draws, sd 26.
  int first[3] = {};
  for (std::uint64_t seed = 1; seed <= 3000; ++seed)
    ++first[place_ranks("random", {3, 1}, seed)[0]];
  for (const int count : first) CHECK(std::abs(count - 1000) < 110);
}

TEST_CASE("placement: a file", "[placement]") {
  const ServerShape shape{3, 2};
  const auto read = parse_placement(
      "# rank server nic\n5 0 0\n0 0 1\n1 1 0\n\n2 1 1\n3 2 0\n4 2 1\n", "p", shape);
  CHECK(read.errors == Lines{});
  CHECK(read.value == Placement{3, 1, 4, 2, 5, 0});
}

TEST_CASE("placement: what is wrong in a file", "[placement]") {
  const ServerShape shape{2, 2};
  const auto errors = [&shape](const std::string& text) {
    return parse_placement(text, "p", shape).errors;
  };
  CHECK(errors("4 0 0\n") == Lines{"p:1:1: rank = \"4\": expected an integer in [0 .. 3]"});
  CHECK(errors("0 2 0\n") == Lines{"p:1:3: server = \"2\": expected an integer in [0 .. 1]"});
  CHECK(errors("0 0 2\n") == Lines{"p:1:5: nic = \"2\": expected an integer in [0 .. 1]"});
  CHECK(errors("0 x -1\n") == Lines{"p:1:3: server = \"x\": expected an integer in [0 .. 1]",
                                    "p:1:5: nic = \"-1\": expected an integer in [0 .. 1]"});
  CHECK(errors("0 0 0\n0 1 0\n") ==
        Lines{"p:2:1: rank = 0: has a NIC already; each rank stands on one line"});
  CHECK(errors("0 0 1\n1 0 1\n") ==
        Lines{"p:2:3: server 0 nic 1: rank 0 has it already; each NIC has one rank"});
  CHECK(errors("0 0\n") == Lines{"p:1:1: 2 columns: expected 3, `rank server nic`"});
  CHECK(errors("0 0 0\n1 0 1\n3 1 1\n") ==
        Lines{"p:3:6: rank 2 is missing: expected a line for each rank, 0 .. 3"});
  CHECK(errors("").size() == 1);
  CHECK(read_placement_file("/no/placement", shape).errors ==
        Lines{"/no/placement: cannot be opened: No such file or directory"});
}

TEST_CASE("placement: the file of a scenario is read with it", "[placement]") {
  config::Scenario s = rails(2, 2, "permutation");
  s.workload.placement = "file";
  s.workload.placement_file = "/no/placement";
  CHECK(load_inputs(s).errors ==
        Lines{"/no/placement: cannot be opened: No such file or directory"});
}

TEST_CASE("placement: with one NIC a server only a random one moves anybody", "[placement]") {
  config::Scenario s = rails(16, 1, "all_to_all");
  s.workload.start_jitter = picos_from_micros(3);
  const MessagePlan packed = plan_for(s);
  s.workload.placement = "spread";
  const MessagePlan spread = plan_for(s);
  REQUIRE(packed.messages.size() == spread.messages.size());
  std::map<std::uint32_t, Picos> start;
  for (std::size_t i = 0; i < packed.messages.size(); ++i) {
    CHECK(packed.messages[i].src == spread.messages[i].src);
    CHECK(packed.messages[i].dst == spread.messages[i].dst);
    start[packed.messages[i].src] = packed.messages[i].start;
  }
  s.workload.placement = "random";
  const Placement nics = place_ranks("random", {16, 1}, 1);
  for (const PlannedMessage& m : plan_for(s).messages) {
    const auto rank = std::find(nics.begin(), nics.end(), m.src) - nics.begin();
    CHECK(m.start == start[static_cast<std::uint32_t>(rank)]);
  }
}

// n = g h ranks. Of n (n - 1) ordered pairs n (g - 1) stay inside, n (h - 1) go along a rail, and
// n (g - 1)(h - 1) would change it; with PXN none does, and each of those crosses NVLink besides.
TEST_CASE("placement: an all-to-all between rails, with and without PXN", "[placement]") {
  for (const auto& [g, h] : {std::pair{2U, 3U}, {4U, 2U}, {8U, 8U}, {3U, 5U}}) {
    for (const char* rule : {"packed", "spread", "random"}) {
      CAPTURE(g, h, rule);
      const std::uint64_t n = std::uint64_t{g} * h;
      config::Scenario s = rails(h, g, "all_to_all");
      s.workload.placement = rule;
      const ServerShape shape = config::server_shape(s.fabric);
      const MessagePlan direct = plan_for(s);
      Counts counts = counts_of(direct, shape);
      CHECK(direct.messages.size() == n * (n - 1));
      CHECK(counts.inside == n * (g - 1));
      CHECK(counts.along_rail == n * (h - 1));
      CHECK(counts.cross_rail == n * (g - 1) * (h - 1));

      s.workload.pxn = true;
      const MessagePlan relayed = plan_for(s);
      counts = counts_of(relayed, shape);
      CHECK(counts.cross_rail == 0);
      CHECK(counts.along_rail == n * g * (h - 1));
      CHECK(counts.inside == n * (g - 1) + n * (g - 1) * (h - 1));

      std::map<std::uint32_t, std::set<std::uint32_t>> peers;
      std::vector<std::uint64_t> inside(n), across(n);
      for (const PlannedMessage& m : relayed.messages) {
        const bool stays = shape.same_server(m.src, m.dst);
        (stays ? inside : across)[m.src] += m.bytes;
        if (stays) continue;
        peers[m.src].insert(m.dst);
        CHECK(m.lane == 0);
        CHECK(m.hint_degree == h - 1);
      }
      for (std::uint32_t nic = 0; nic < n; ++nic) {
        CHECK(peers[nic].size() == h - 1);
        CHECK(across[nic] == std::uint64_t{1000} * g * (h - 1));
        CHECK(inside[nic] == std::uint64_t{1000} * ((g - 1) + (g - 1) * (h - 1)));
      }
      for (const PlannedMessage& m : direct.messages) CHECK(m.hint_degree == g * (h - 1));
    }
  }
}

TEST_CASE("placement: a relayed message is two, and others wait for the second", "[placement]") {
  const ServerShape shape{2, 2};  // server 0: NICs 0 and 2; server 1: 1 and 3
  MessagePlan plan;
  plan.messages = {
      {.src = 3, .dst = 0, .bytes = 7, .after = 1, .gap = Picos{5}, .lane = kNoMessage},
      {.src = 0, .dst = 3, .bytes = 9, .start = Picos{4}, .lane = kNoMessage, .job = 3},
      {.src = 0, .dst = 2, .bytes = 8, .lane = kNoMessage},
      {.src = 0, .dst = 1, .bytes = 6, .lane = kNoMessage}};
  relay_along_rails(plan, shape);
  REQUIRE(plan.messages.size() == 6);
  const auto& m = plan.messages;
  CHECK((m[0].src == 3 && m[0].dst == 1 && m[0].after == 3 && m[0].gap == Picos{5}));
  CHECK((m[1].src == 1 && m[1].dst == 0 && m[1].after == 0 && m[1].gap == Picos{0}));
  CHECK((m[2].src == 0 && m[2].dst == 2 && m[2].after == kNoMessage && m[2].start == Picos{4}));
  CHECK((m[3].src == 2 && m[3].dst == 3 && m[3].after == 2 && m[3].job == 3));
  CHECK((m[4].src == 0 && m[4].dst == 2 && !m[4].relays));
  CHECK((m[5].src == 0 && m[5].dst == 1 && !m[5].relays && m[5].lane == 0));
  CHECK((!m[0].relays && m[1].relays && !m[2].relays && m[3].relays));
  for (const std::size_t id : {1U, 3U}) {
    CHECK(m[id].bytes == m[id - 1].bytes);
    CHECK(m[id].lane == 0);
  }
}

// In a random placement of a permutation the share of the messages between servers that change
// rail is (g - 1)/g.
TEST_CASE("placement: cross-rail share of a permutation placed at random", "[placement]") {
  for (const auto& [g, h] : {std::pair{8U, 128U}, {4U, 100U}, {2U, 200U}, {8U, 12'800U}}) {
    double crossing = 0;
    double fabric = 0;
    const double closed_form = (g - 1.0) / g;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      CAPTURE(g, h, seed);
      config::Scenario s = rails(h, g, "permutation");
      s.workload.placement = "random";
      const Counts counts = counts_of(plan_for(s, seed), config::server_shape(s.fabric));
      const double all = static_cast<double>(counts.cross_rail + counts.along_rail);
      crossing += static_cast<double>(counts.cross_rail);
      fabric += all;
      const double sd = std::sqrt(closed_form * (1 - closed_form) / all);
      CHECK(std::abs(static_cast<double>(counts.cross_rail) / all - closed_form) < 4 * sd);
    }
    const double sd = std::sqrt(closed_form * (1 - closed_form) / fabric);
    CHECK(std::abs(crossing / fabric - closed_form) < 3 * sd);
  }
}

TEST_CASE("placement: with PXN a random permutation crosses no rail", "[placement]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    config::Scenario s = rails(32, 8, "permutation");
    s.workload.placement = "random";
    s.workload.pxn = true;
    CHECK(counts_of(plan_for(s, seed), config::server_shape(s.fabric)).cross_rail == 0);
  }
}

TEST_CASE("placement: a workload on every rail for itself", "[placement]") {
  for (const char* kind : {"permutation", "ring_all_reduce", "incast", "all_to_all", "open_loop"}) {
    CAPTURE(kind);
    config::Scenario s = rails(20, 4, kind);
    s.workload.all_reduce_bytes = 10'000;
    s.workload.per_rail = true;
    const ServerShape shape = config::server_shape(s.fabric);
    const MessagePlan plan = plan_for(s);
    const Counts counts = counts_of(plan, shape);
    CHECK(counts.along_rail == plan.messages.size());
    std::vector<std::map<std::uint32_t, std::uint32_t>> to(shape.nics);
    for (const PlannedMessage& m : plan.messages) {
      to[shape.rail_of(m.src)][shape.server_of(m.src)] = shape.server_of(m.dst);
      if (m.after == kNoMessage) continue;
      CHECK(plan.messages[m.after].dst == m.src);
    }
    for (const auto& senders : to) CHECK(senders.size() >= 16);
    if (s.workload.kind == "permutation") CHECK(to[0] != to[1]);
    if (s.workload.kind == "ring_all_reduce") CHECK(to[0] == to[1]);
  }
}

}  // namespace
}  // namespace paceline::workload::placement_test
