// Schedules of collectives: their results, how many steps follow one another, and the orders that
// are named.
#include "tools/workload/schedules/schedule.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/workload/schedule_samples.h"
#include "tools/workload/schedules/schedule_check.h"

namespace paceline::workload::schedules_test {
namespace {

using namespace schedule_samples;
using Lines = std::vector<std::string>;
using Numbers = std::vector<std::uint32_t>;

// Transfers between ranks in the longest chain of those that wait for one another.
std::uint32_t steps_in_a_row(const Schedule& schedule) {
  Numbers steps;
  for (const Transfer& t : schedule.transfers) {
    std::uint32_t before = 0;
    for (const std::uint32_t wait : schedule.waits_of(t)) before = std::max(before, steps[wait]);
    steps.push_back(before + (t.from == t.to ? 0 : 1));
  }
  return steps.empty() ? 0 : *std::max_element(steps.begin(), steps.end());
}

// To whom a rank sends, in the order of the transfers.
Numbers peers_of(const Schedule& schedule, std::uint32_t rank) {
  Numbers peers;
  for (const Transfer& t : schedule.transfers) {
    if (t.from == rank) peers.push_back(t.to);
  }
  return peers;
}

// (from, to) of what a transfer waits for.
std::set<std::pair<std::uint32_t, std::uint32_t>> waits_by_ends(const Schedule& schedule,
                                                                std::size_t transfer) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> ends;
  for (const std::uint32_t wait : schedule.waits_of(schedule.transfers[transfer]))
    ends.insert({schedule.transfers[wait].from, schedule.transfers[wait].to});
  return ends;
}

TEST_CASE("schedules: every algorithm ends with the right result, in any order of events",
          "[schedules]") {
  for (const CollectiveOp op : kEveryOp) {
    for (const std::string_view algorithm : schedule_names(op)) {
      for (std::uint32_t n = 2; n <= 64; ++n) {
        if (needs_power_of_two(algorithm) && !is_power_of_two(n)) continue;
        for (const std::uint32_t g : servers_to_try(algorithm, n)) {
          for (const ScheduleOptions& options : options_to_try(op, algorithm, n)) {
            const Schedule schedule = built(op, algorithm, {n, g}, options);
            for (std::uint64_t seed = n; seed < n + (n > 32 ? 2 : 3); ++seed) {
              CAPTURE(to_string(op), algorithm, n, g, options.root, options.aggregation,
                      options.window, seed);
              REQUIRE(check_schedule(schedule, seed) == "");
            }
          }
        }
      }
    }
  }
}

// Orders that leave little of a hazard unseen: small groups, many seeds.
TEST_CASE("schedules: small groups in thousands of orders", "[schedules][slow]") {
  for (const CollectiveOp op : kEveryOp) {
    for (const std::string_view algorithm : schedule_names(op)) {
      for (const std::uint32_t n : {2U, 4U, 6U, 8U}) {
        if (needs_power_of_two(algorithm) && !is_power_of_two(n)) continue;
        const Schedule schedule = built(op, algorithm, {n, 2});
        for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
          CAPTURE(to_string(op), algorithm, n, seed);
          REQUIRE(check_schedule(schedule, seed) == "");
        }
      }
    }
  }
}

TEST_CASE("schedules: the split of a buffer is even and complete", "[schedules]") {
  const std::uint64_t seed = 20'260;
  CAPTURE(seed);
  Random random(seed);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t bytes = random.next() >> random.below(64);
    const auto n = static_cast<std::uint32_t>(1 + (random.next() >> (32 + random.below(32))) / 2);
    CAPTURE(bytes, n);
    const auto b = static_cast<std::uint32_t>(random.below(n));
    REQUIRE(block_begin(bytes, n, 0) == 0);
    REQUIRE(block_begin(bytes, n, n) == bytes);
    __extension__ using Wide = unsigned __int128;
    REQUIRE(block_begin(bytes, n, b) == static_cast<std::uint64_t>(Wide{bytes} * b / n));
    if (n > 1000) continue;
    std::uint64_t sum = 0;
    for (std::uint32_t k = 0; k < n; ++k) {
      REQUIRE(block_bytes(bytes, n, k) - bytes / n <= 1);
      sum += block_bytes(bytes, n, k);
    }
    REQUIRE(sum == bytes);
  }
}

TEST_CASE("schedules: steps in a row are those of the published algorithms", "[schedules]") {
  for (std::uint32_t n = 2; n <= 64; ++n) {
    const std::uint32_t log = log2_up(n);
    const bool power = is_power_of_two(n);
    const std::uint32_t folded = power ? 0 : 2;  // steps
    const std::uint32_t floor_log = power ? log : log - 1;
    const auto steps = [n](CollectiveOp op, std::string_view name, std::uint32_t g = 1) {
      return steps_in_a_row(built(op, name, {n, g}));
    };
    using Op = CollectiveOp;
    CAPTURE(n);
    CHECK(steps(Op::all_reduce, "ring") == 2 * (n - 1));
    CHECK(steps(Op::reduce_scatter, "ring") == n - 1);
    CHECK(steps(Op::all_gather, "ring") == n - 1);
    for (const std::uint32_t g : servers_to_try("rail_rings", n)) {
      CHECK(steps(Op::all_reduce, "rail_rings", g) == 2 * (n - 1));
      CHECK(steps(Op::reduce_scatter, "rail_rings", g) == n - 1);
      CHECK(steps(Op::all_gather, "rail_rings", g) == n - 1);
    }
    for (const std::uint32_t g : servers_to_try("two_level_ring", n)) {
      CAPTURE(g);
      CHECK(steps(Op::all_reduce, "two_level_ring", g) == 2 * (g - 1) + 2 * (n / g - 1));
      CHECK(steps(Op::reduce_scatter, "two_level_ring", g) == g - 1 + n / g - 1);
      CHECK(steps(Op::all_gather, "two_level_ring", g) == g - 1 + n / g - 1);
      // A tree over n / g servers of depth ceil(log2 n / g), a chain of g - 1 below each of them.
      CHECK(steps(Op::all_reduce, "double_tree", g) == 2 * (log2_up(n / g) + g - 1));
      CHECK(steps(Op::all_to_all, "pxn", g) == (g > 1 && g < n ? 2 : 1));
      CHECK(steps(Op::all_to_all, "pxn_batched", g) == (g > 1 && g < n ? 2 : 1));
    }
    CHECK(steps(Op::all_reduce, "halving_doubling_near") == 2 * floor_log + folded);
    CHECK(steps(Op::all_reduce, "halving_doubling_far") == 2 * floor_log + folded);
    // From a folded rank back to another takes all steps only when members of opposite numbers,
    // which meet last, are both folded.
    const std::uint32_t members = std::bit_floor(n);
    CHECK(steps(Op::all_reduce, "recursive_doubling") == floor_log + (2 * (n - members) > members
                                                                          ? 2
                                                                      : power ? 0
                                                                              : 1));
    if (power) {
      CHECK(steps(Op::reduce_scatter, "halving_near") == log);
      CHECK(steps(Op::all_gather, "doubling_far") == log);
      CHECK(steps(Op::all_to_all, "pairwise_xor") == n - 1);
    }
    CHECK(steps(Op::all_gather, "bruck") == log);
    CHECK(steps(Op::all_gather, "pat") == log);
    CHECK(steps(Op::reduce_scatter, "pat") == log);
    for (std::uint32_t a = 0; power && a < log; ++a) {
      for (const Op op : {Op::all_gather, Op::reduce_scatter}) {
        CHECK(steps_in_a_row(built(op, "pat", {n}, {.aggregation = 1U << a})) == a + (n >> a) - 1);
      }
    }
    CHECK(steps(Op::all_to_all, "linear_shift") == n - 1);
    CHECK(steps(Op::all_to_all, "bruck") == log);
    CHECK(steps(Op::all_to_all, "window") == 1);
    CHECK(steps(Op::all_to_all, "nccl") == (n - 1 + 7) / 8);
    CHECK(steps(Op::broadcast, "chain") == n - 1);
    CHECK(steps(Op::broadcast, "binomial") == log);
    CHECK(steps(Op::broadcast, "scatter_all_gather") == log + n - 1);
    CHECK(steps(Op::reduce, "chain") == n - 1);
    // The depth of the tree: members have an edge for each set bit.
    int deepest = 0;
    for (std::uint32_t v = 0; v < n; ++v) deepest = std::max(deepest, std::popcount(v));
    CHECK(steps(Op::reduce, "binomial") == static_cast<std::uint32_t>(deepest));
  }
}

TEST_CASE("schedules: a round of linear shift waits for the sender's round before", "[schedules]") {
  for (const std::uint32_t n : {2U, 5U, 16U}) {
    const Schedule s = built(CollectiveOp::all_to_all, "linear_shift", {n});
    for (std::size_t i = 0; i < s.transfers.size(); ++i) {
      const Transfer& t = s.transfers[i];
      const std::uint32_t k = (t.to + n - t.from) % n;
      CAPTURE(n, i, k);
      CHECK(waits_by_ends(s, i) == (k == 1
                                        ? std::set<std::pair<std::uint32_t, std::uint32_t>>{}
                                        : std::set{std::pair{t.from, (t.from + k - 1) % n},
                                                   std::pair{(t.from + n - k + 1) % n, t.from}}));
    }
  }
}

TEST_CASE("schedules: a window of peers waits for the sender's own sends", "[schedules]") {
  const Schedule s = built(CollectiveOp::all_to_all, "window", {9}, {.window = 3});
  const Numbers peers = peers_of(s, 4);
  CHECK(peers == Numbers{5, 6, 7, 8, 0, 1, 2, 3});
  std::size_t sent = 0;
  for (std::size_t i = 0; i < s.transfers.size(); ++i) {
    if (s.transfers[i].from != 4) continue;
    CHECK(waits_by_ends(s, i) == (sent < 3 ? std::set<std::pair<std::uint32_t, std::uint32_t>>{}
                                           : std::set{std::pair{4U, peers[sent - 3]}}));
    ++sent;
  }
}

// Groups of gcd(8, g) ranks; distances of groups 0, 1, 3, 2 among 4 and 0, 1, 2 among 3 (3 is left
// out).
TEST_CASE("schedules: NCCL's order of all-to-all rounds", "[schedules]") {
  const Schedule four = built(CollectiveOp::all_to_all, "nccl", {32, 8});
  CHECK(peers_of(four, 0) == Numbers{1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 24,
                                     25, 26, 27, 28, 29, 30, 31, 16, 17, 18, 19, 20, 21, 22, 23});
  const Schedule three = built(CollectiveOp::all_to_all, "nccl", {12, 4});
  CHECK(peers_of(three, 6) == Numbers{7, 4, 5, 10, 11, 8, 9, 2, 3, 0, 1});
  for (std::size_t i = 0; i < four.transfers.size(); ++i) {
    const std::size_t round = i / 32;
    CHECK(four.waits_of(four.transfers[i]).size() == (round < 8 ? 0 : 2));
    const std::uint32_t from = four.transfers[i].from;
    const Numbers peers = peers_of(four, from);
    if (round < 8) continue;
    const std::uint32_t source = peers[round - 8];
    CHECK(waits_by_ends(four, i).count({from, source}) == 1);
  }
}

TEST_CASE("schedules: PXN crosses no rail and sends to the servers' ranks of the own rail",
          "[schedules]") {
  for (const auto& [g, h] :
       {std::pair{4U, 3U}, {8U, 4U}, {2U, 5U}, {1U, 6U}, {6U, 1U}, {12U, 3U}, {16U, 2U}}) {
    for (const std::string_view name : {"pxn", "pxn_batched"}) {
      CAPTURE(g, h, name);
      const Schedule s = built(CollectiveOp::all_to_all, name, {g * h, g});
      const std::uint32_t each = name == "pxn" ? g : (g + 7) / 8;  // a batch has at most eight
      for (std::uint32_t r = 0; r < g * h; ++r) {
        std::vector<std::uint32_t> messages(h, 0);
        for (const std::uint32_t to : peers_of(s, r)) {
          if (to / g == r / g) continue;
          REQUIRE(to % g == r % g);
          ++messages[to / g];
        }
        for (std::uint32_t server = 0; server < h; ++server)
          CHECK(messages[server] == (server == r / g ? 0 : each));
      }
    }
  }
}

// Ring j is the blocks j modulo g.
TEST_CASE("schedules: each of the rail rings has a NIC of every server", "[schedules]") {
  for (const auto& [g, h] : {std::pair{8U, 2U}, {8U, 3U}, {4U, 4U}, {2U, 5U}, {3U, 6U}}) {
    const std::uint32_t n = g * h;
    const Schedule s = built(CollectiveOp::all_gather, "rail_rings", {n, g});
    std::set<std::pair<std::uint32_t, std::uint32_t>> sends;  // (ring, rank) over a NIC
    std::set<std::pair<std::uint32_t, std::uint32_t>> receives;
    std::set<std::pair<std::uint32_t, std::uint32_t>> hops;  // (ring, rank), all
    std::set<std::uint32_t> senders;
    std::set<std::uint32_t> receivers;
    for (const Transfer& t : s.transfers) {
      const std::uint32_t ring = s.pieces_of(t)[0].block % g;
      CAPTURE(g, h, t.from, t.to, ring);
      hops.insert({ring, t.from});
      if (t.from / g == t.to / g) continue;
      REQUIRE(t.to / g == (t.from / g + 1) % h);
      // Between servers of one parity, the last and the first of an odd number, it goes up a rail.
      REQUIRE(t.to % g == (h % 2 == 1 && t.to / g == 0 ? (t.from + 1) % g : t.from % g));
      sends.insert({ring, t.from});
      receives.insert({ring, t.to});
      senders.insert(t.from);
      receivers.insert(t.to);
    }
    CAPTURE(g, h);
    CHECK(hops.size() == n * g);
    CHECK(sends.size() == n);  // one ring a NIC
    CHECK(receives.size() == n);
    CHECK(senders.size() == n);
    CHECK(receivers.size() == n);
  }
}

TEST_CASE("schedules: in turn, a rank's send waits for its own before in the ring", "[schedules]") {
  const std::uint32_t g = 4;
  const std::uint32_t n = 12;
  const Schedule s = built(CollectiveOp::all_reduce, "rail_rings", {n, g}, {.in_turn = true});
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> last;  // by ring and rank
  for (std::uint32_t i = 0; i < s.transfers.size(); ++i) {
    const Transfer& t = s.transfers[i];
    const auto [before, first] = last.try_emplace({s.pieces_of(t)[0].block % g, t.from}, i);
    const auto waits = s.waits_of(t);
    CAPTURE(i, t.from, t.to);
    CHECK(std::count_if(waits.begin(), waits.end(), [&](std::uint32_t w) {
            return s.transfers[w].from == t.from;
          }) == (first ? 0 : 1));
    if (!first) CHECK(std::count(waits.begin(), waits.end(), before->second) == 1);
    before->second = i;
  }
}

TEST_CASE("schedules: one rail ring is the ring", "[schedules]") {
  for (const CollectiveOp op :
       {CollectiveOp::all_reduce, CollectiveOp::reduce_scatter, CollectiveOp::all_gather}) {
    const Schedule rails = built(op, "rail_rings", {9});
    const Schedule ring = built(op, "ring", {9});
    REQUIRE(rails.transfers.size() == ring.transfers.size());
    CHECK(rails.waits == ring.waits);
    for (std::size_t i = 0; i < ring.transfers.size(); ++i) {
      CAPTURE(to_string(op), i);
      CHECK(rails.transfers[i].from == ring.transfers[i].from);
      CHECK(rails.transfers[i].to == ring.transfers[i].to);
      CHECK(rails.pieces_of(rails.transfers[i])[0].block ==
            ring.pieces_of(ring.transfers[i])[0].block);
    }
  }
}

TEST_CASE("schedules: names, the default one first", "[schedules]") {
  for (const CollectiveOp op : kEveryOp) CHECK(find_collective_op(to_string(op)) == op);
  CHECK(!find_collective_op("all_reduces"));
  CHECK(to_string(CollectiveOp::all_to_all) == "all_to_all");
  CHECK(schedule_names(CollectiveOp::all_reduce).front() == "ring");
  CHECK(schedule_names(CollectiveOp::reduce_scatter).front() == "ring");
  CHECK(schedule_names(CollectiveOp::all_gather).front() == "ring");
  CHECK(schedule_names(CollectiveOp::all_to_all).front() == "nccl");
  CHECK(schedule_names(CollectiveOp::broadcast).front() == "chain");
  CHECK(schedule_names(CollectiveOp::reduce).front() == "chain");
}

TEST_CASE("schedules: what is not possible", "[schedules]") {
  const auto errors = [](CollectiveOp op, std::string_view name, const GroupShape& group,
                         const ScheduleOptions& options = {}) {
    return make_schedule(op, name, group, options).errors;
  };
  CHECK(errors(CollectiveOp::reduce, "ring", {4}) ==
        Lines{"reduce by \"ring\": expected \"chain\" or \"binomial\""});
  CHECK(errors(CollectiveOp::all_reduce, "ring", {1}) ==
        Lines{"all_reduce by \"ring\": ranks = 1: allowed is [2 .. 2048]"});
  CHECK(errors(CollectiveOp::reduce, "chain", {65'537}) ==
        Lines{"reduce by \"chain\": ranks = 65537: allowed is [2 .. 65536]"});
  CHECK(errors(CollectiveOp::all_gather, "rail_rings", {2'048, 8}) ==
        Lines{"all_gather by \"rail_rings\": ranks = 2048: allowed is [2 .. 1024]"});
  for (const std::uint32_t g : {0U, 4U, 12U}) {
    CHECK(errors(CollectiveOp::all_to_all, "pxn", {6, g}) ==
          Lines{"all_to_all by \"pxn\": ranks per server = " + std::to_string(g) +
                ": allowed is a divisor of 6, the ranks"});
  }
  for (const CollectiveOp op : kEveryOp) {
    for (const std::string_view name : schedule_names(op)) {
      if (!needs_power_of_two(name)) continue;
      CHECK(errors(op, name, {12}) ==
            Lines{std::string(to_string(op)) + " by \"" + std::string(name) +
                  "\": ranks = 12: allowed is a power of two"});
    }
  }
  CHECK(errors(CollectiveOp::broadcast, "chain", {4}, {.root = 4}) ==
        Lines{"broadcast by \"chain\": root = 4: allowed is [0 .. 3]"});
  CHECK(errors(CollectiveOp::all_gather, "pat", {8}, {.aggregation = 3}) ==
        Lines{"all_gather by \"pat\": aggregation = 3: allowed is 0 or a power of two"});
}

}  // namespace
}  // namespace paceline::workload::schedules_test
