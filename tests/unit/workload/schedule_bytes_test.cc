// Bytes that the ranks of a collective send: closed forms, and tables computed elsewhere.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/workload/schedule_samples.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::workload::schedule_bytes_test {
namespace {

using namespace schedule_samples;
using Bytes = std::vector<std::uint64_t>;
using Op = CollectiveOp;

std::uint64_t sum_of(const Bytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

// Bytes that each rank sends to other servers, or to ranks of its own.
Bytes bytes_sent_to(const Schedule& s, std::uint32_t g, bool own_server, std::uint64_t bytes) {
  Bytes sent(s.ranks);
  for (const Transfer& t : s.transfers) {
    if (t.from != t.to && (t.from / g == t.to / g) == own_server)
      sent[t.from] += transfer_bytes(s, t, bytes);
  }
  return sent;
}

// Two sizes for n ranks, drawn from a seed: any, and a multiple of n and of the largest power of
// two not above it.
struct Sizes {
  explicit Sizes(std::uint32_t n) : seed(n) {
    Random random(seed);
    any = random.below(1ULL << 40);
    even = (1 + random.below(1ULL << 20)) * n * std::bit_floor(n);
  }
  std::uint64_t seed;
  std::uint64_t any;
  std::uint64_t even;
};

TEST_CASE("schedule bytes: what a ring leaves out is one chunk", "[schedules]") {
  for (std::uint32_t n = 2; n <= 64; ++n) {
    const Sizes sizes(n);
    const std::uint64_t bytes = sizes.any;
    const Bytes scatter = bytes_sent(built(Op::reduce_scatter, "ring", {n}), bytes);
    const Bytes gather = bytes_sent(built(Op::all_gather, "ring", {n}), bytes);
    const Bytes reduce = bytes_sent(built(Op::all_reduce, "ring", {n}), bytes);
    for (std::uint32_t r = 0; r < n; ++r) {
      CAPTURE(n, r, bytes, sizes.seed);
      CHECK(scatter[r] == bytes - block_bytes(bytes, n, r));
      CHECK(gather[r] == bytes - block_bytes(bytes, n, (r + 1) % n));
      CHECK(reduce[r] == scatter[r] + gather[r]);
    }
    CHECK(sum_of(reduce) == 2 * (n - 1) * bytes);
  }
}

TEST_CASE("schedule bytes: a two-level ring inside servers and along rails", "[schedules]") {
  for (std::uint32_t n = 2; n <= 64; ++n) {
    for (const std::uint32_t g : servers_to_try("two_level_ring", n)) {
      const Sizes sizes(n);
      const std::uint64_t bytes = sizes.any;
      const std::uint32_t h = n / g;
      const Schedule s = built(Op::all_reduce, "two_level_ring", {n, g});
      const Bytes nic = bytes_sent_to(s, g, false, bytes);
      const Bytes nvlink = bytes_sent_to(s, g, true, bytes);
      Bytes rail(g, 0);  // bytes of all chunks of a local index
      for (std::uint32_t r = 0; r < n; ++r) rail[r % g] += block_bytes(bytes, n, r);
      for (std::uint32_t r = 0; r < n; ++r) {
        const std::uint32_t l = r % g;
        const std::uint32_t next_server = (r + g) % n;
        CAPTURE(n, g, h, r, bytes, sizes.seed);
        CHECK(nic[r] ==
              2 * rail[l] - block_bytes(bytes, n, r) - block_bytes(bytes, n, next_server));
        CHECK(nvlink[r] == 2 * bytes - rail[l] - rail[(l + 1) % g]);
      }
      for (const std::uint64_t b : bytes_sent_to(s, g, false, sizes.even))
        CHECK(b == 2 * (sizes.even / n) * (h - 1));
      for (const Op op : {Op::reduce_scatter, Op::all_gather}) {
        const Schedule half = built(op, "two_level_ring", {n, g});
        CHECK(sum_of(bytes_sent(half, bytes)) == (n - 1) * bytes);
        for (const std::uint64_t b : bytes_sent_to(half, g, false, sizes.even))
          CHECK(b == sizes.even / n * (h - 1));
      }
    }
  }
}

// In ring j every rank sends all chunks but one: the chunk whose sum ends at it, or, in a gather,
// the chunk of the rank that it sends to. The last rank of a ring in a server sends over its NIC.
TEST_CASE("schedule bytes: rings over all rails of the servers", "[schedules]") {
  for (std::uint32_t n = 2; n <= 64; ++n) {
    for (const std::uint32_t g : servers_to_try("rail_rings", n)) {
      const Sizes sizes(n);
      CAPTURE(n, g, sizes.any, sizes.even, sizes.seed);
      const std::uint64_t even = sizes.even * g;
      const std::uint64_t a_ring = even / g / n * (n - 1);
      for (const Op op : {Op::reduce_scatter, Op::all_gather, Op::all_reduce}) {
        CAPTURE(to_string(op));
        const Schedule s = built(op, "rail_rings", {n, g});
        const std::uint64_t passes = op == Op::all_reduce ? 2 : 1;
        CHECK(sum_of(bytes_sent(s, sizes.any)) == passes * (n - 1) * sizes.any);
        for (const std::uint64_t b : bytes_sent(s, even)) REQUIRE(b == passes * g * a_ring);
        for (const std::uint64_t b : bytes_sent_to(s, g, false, even))
          REQUIRE(b == (n == g ? 0 : passes * a_ring));
        if (g == 1)
          CHECK(bytes_sent(s, sizes.any) == bytes_sent(built(op, "ring", {n}), sizes.any));
      }
      const Bytes scatter = bytes_sent(built(Op::reduce_scatter, "rail_rings", {n, g}), sizes.any);
      for (std::uint32_t r = 0; r < n; ++r)
        REQUIRE(scatter[r] == sizes.any - block_bytes(sizes.any, n, r));
    }
  }
}

TEST_CASE("schedule bytes: halving, doubling and those who are folded in", "[schedules]") {
  for (std::uint32_t n = 2; n <= 64; ++n) {
    const Sizes sizes(n);
    const std::uint64_t even = sizes.even;
    const std::uint32_t members = std::bit_floor(n);
    const std::uint64_t log = static_cast<std::uint64_t>(std::bit_width(n) - 1);
    for (const char* name :
         {"halving_doubling_near", "halving_doubling_far", "recursive_doubling"}) {
      const Schedule s = built(Op::all_reduce, name, {n});
      const Bytes sent = bytes_sent(s, even);
      const std::uint64_t exchanged = name == std::string_view("recursive_doubling")
                                          ? log * even
                                          : 2 * (even / members) * (members - 1);
      for (std::uint32_t r = 0; r < n; ++r) {
        CAPTURE(name, n, r, even, sizes.seed);
        const bool folded = r < 2 * (n - members);
        CHECK(sent[r] == (folded && r % 2 == 0 ? even : exchanged + (folded ? even : 0)));
      }
    }
    if (members != n) continue;
    for (const bool far : {false, true}) {
      const Bytes scatter = bytes_sent(
          built(Op::reduce_scatter, far ? "halving_far" : "halving_near", {n}), sizes.any);
      for (std::uint32_t r = 0; r < n; ++r)
        CHECK(scatter[r] == sizes.any - block_bytes(sizes.any, n, r));
      const Schedule gather = built(Op::all_gather, far ? "doubling_far" : "doubling_near", {n});
      CHECK(sum_of(bytes_sent(gather, sizes.any)) == (n - 1) * sizes.any);
      for (const std::uint64_t b : bytes_sent(gather, even)) CHECK(b == even / n * (n - 1));
      // The largest exchange, half of the buffer, is with the nearest rank or the farthest.
      for (const Transfer& t : gather.transfers) {
        if (transfer_bytes(gather, t, even) != even / 2) continue;
        CHECK((t.from ^ t.to) == (far ? n / 2 : 1));
      }
    }
  }
}

TEST_CASE("schedule bytes: Bruck's all-gather and PAT send each block once", "[schedules]") {
  for (std::uint32_t n = 2; n <= 64; ++n) {
    const Sizes sizes(n);
    CAPTURE(n, sizes.any, sizes.even, sizes.seed);
    const auto check_gather = [&](const Schedule& s) {
      CHECK(sum_of(bytes_sent(s, sizes.any)) == (n - 1) * sizes.any);
      for (const std::uint64_t b : bytes_sent(s, sizes.even)) CHECK(b == sizes.even / n * (n - 1));
    };
    check_gather(built(Op::all_gather, "bruck", {n}));
    for (const ScheduleOptions& options : options_to_try(Op::all_gather, "pat", n)) {
      CAPTURE(options.aggregation);
      check_gather(built(Op::all_gather, "pat", {n}, options));
      const Schedule scatter = built(Op::reduce_scatter, "pat", {n}, options);
      const Bytes sent = bytes_sent(scatter, sizes.any);
      for (std::uint32_t r = 0; r < n; ++r)
        CHECK(sent[r] == sizes.any - block_bytes(sizes.any, n, r));
    }
  }
}

TEST_CASE("schedule bytes: all-to-all", "[schedules]") {
  for (std::uint32_t n = 2; n <= 64; ++n) {
    const Sizes sizes(n);
    const std::uint64_t bytes = sizes.any;
    CAPTURE(n, bytes, sizes.seed);
    for (const char* name : {"linear_shift", "pairwise_xor", "nccl", "window"}) {
      if (needs_power_of_two(name) && !is_power_of_two(n)) continue;
      CAPTURE(name);
      const Bytes sent = bytes_sent(built(Op::all_to_all, name, {n}), bytes);
      for (std::uint32_t r = 0; r < n; ++r) CHECK(sent[r] == bytes - block_bytes(bytes, n, r));
    }
    std::uint64_t blocks = 0;  // set bits of all slots
    for (std::uint32_t slot = 1; slot < n; ++slot)
      blocks += static_cast<std::uint64_t>(std::popcount(slot));
    for (const std::uint64_t b : bytes_sent(built(Op::all_to_all, "bruck", {n}), sizes.even))
      CHECK(b == sizes.even / n * blocks);
    for (const std::uint32_t g : servers_to_try("pxn", n)) {
      CAPTURE(g);
      const std::uint64_t block = sizes.even / n;
      const std::uint64_t h = n / g;
      for (const char* name : {"pxn", "pxn_batched"}) {
        CAPTURE(name);
        const Schedule s = built(Op::all_to_all, name, {n, g});
        for (const std::uint64_t b : bytes_sent_to(s, g, false, sizes.even))
          CHECK(b == g * (h - 1) * block);
        for (const std::uint64_t b : bytes_sent_to(s, g, true, sizes.even))
          CHECK(b == (g - 1) * block + (g - 1) * (h - 1) * block);
      }
    }
  }
}

TEST_CASE("schedule bytes: broadcast and reduce", "[schedules]") {
  for (std::uint32_t n = 2; n <= 64; ++n) {
    for (const std::uint32_t root : {0U, n / 2, n - 1}) {
      const Sizes sizes(n);
      const std::uint64_t bytes = sizes.any;
      const std::uint32_t before_root = (root + n - 1) % n;
      CAPTURE(n, root, bytes, sizes.seed);
      const auto sent = [&](Op op, const char* name) {
        return bytes_sent(built(op, name, {n}, {.root = root}), bytes);
      };
      const Bytes chain = sent(Op::broadcast, "chain");
      const Bytes reduce = sent(Op::reduce, "chain");
      const Bytes binomial_reduce = sent(Op::reduce, "binomial");
      for (std::uint32_t r = 0; r < n; ++r) {
        CHECK(chain[r] == (r == before_root ? 0 : bytes));
        CHECK(reduce[r] == (r == root ? 0 : bytes));
        CHECK(binomial_reduce[r] == (r == root ? 0 : bytes));
      }
      const Bytes binomial = sent(Op::broadcast, "binomial");
      CHECK(binomial[root] == log2_up(n) * bytes);
      CHECK(sum_of(binomial) == (n - 1) * bytes);
      const Bytes both = sent(Op::broadcast, "scatter_all_gather");
      CHECK(both[root] == 2 * bytes - block_bytes(bytes, n, 0) - block_bytes(bytes, n, 1));
      // The last rank only takes part in the ring.
      CHECK(both[before_root] == bytes - block_bytes(bytes, n, 0));
    }
  }
}

// n = 8, S = 1,000,003: chunks of 125,000 bytes, but 2, 5 and 7 of 125,001.
TEST_CASE("schedule bytes: rows of eight ranks", "[schedules]") {
  constexpr std::uint64_t kBytes = 1'000'003;
  const auto sent = [](Op op, const char* name, const ScheduleOptions& options = {}) {
    return bytes_sent(built(op, name, {8}, options), kBytes);
  };
  const Bytes scatter{875003, 875003, 875002, 875003, 875003, 875002, 875003, 875002};
  const Bytes near{875001, 875003, 875003, 875003, 875001, 875004, 875002, 875004};
  const Bytes far{875001, 875001, 875003, 875002, 875003, 875004, 875003, 875004};
  CHECK(sent(Op::reduce_scatter, "ring") == scatter);
  CHECK(sent(Op::all_reduce, "ring") ==
        Bytes{1750006, 1750005, 1750005, 1750006, 1750005, 1750005, 1750005, 1750005});
  CHECK(sent(Op::reduce_scatter, "halving_near") == scatter);
  CHECK(sent(Op::reduce_scatter, "halving_far") == scatter);
  CHECK(sent(Op::all_gather, "doubling_near") == near);
  CHECK(sent(Op::all_gather, "doubling_far") == far);
  CHECK(sent(Op::all_gather, "bruck") ==
        Bytes{875001, 875002, 875004, 875001, 875003, 875004, 875002, 875004});
  for (const std::uint32_t a : {1U, 2U, 4U})
    CHECK(sent(Op::all_gather, "pat", {.aggregation = a}) == near);
  for (const char* name : {"ring", "halving_doubling_near", "halving_doubling_far"})
    CHECK(sum_of(sent(Op::all_reduce, name)) == 14'000'042);

  const Schedule two_level = built(Op::all_reduce, "two_level_ring", {8, 4});
  CHECK(bytes_sent_to(two_level, 4, false, kBytes) ==
        Bytes{250000, 250001, 250001, 250001, 250000, 250001, 250001, 250001});
  CHECK(bytes_sent_to(two_level, 4, true, kBytes) ==
        Bytes{1500005, 1500004, 1500004, 1500005, 1500005, 1500004, 1500004, 1500005});
  CHECK(sum_of(bytes_sent(two_level, kBytes)) == 14'000'042);
}

}  // namespace
}  // namespace paceline::workload::schedule_bytes_test
