// The check of schedules finds what is wrong: schedules broken in one place, and by hand.
#include "tools/workload/schedules/schedule_check.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/workload/schedule_samples.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::workload::schedule_check_test {
namespace {

using namespace schedule_samples;
using Op = CollectiveOp;

// What the first of these seeds finds that finds something.
std::string found_by_seeds(const Schedule& schedule, std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    if (std::string error = check_schedule(schedule, seed); !error.empty()) return error;
  }
  return "";
}

Schedule without_wait(Schedule s, std::size_t transfer, std::uint32_t wait) {
  Transfer& t = s.transfers[transfer];
  std::swap(s.waits[t.first_wait + wait], s.waits[t.first_wait + t.waits - 1]);
  --t.waits;
  return s;
}

Schedule without_transfer(const Schedule& s, std::uint32_t dropped) {
  Schedule out = s;
  out.transfers.clear();
  out.waits.clear();
  for (std::uint32_t i = 0; i < s.transfers.size(); ++i) {
    if (i == dropped) continue;
    Transfer t = s.transfers[i];
    t.first_wait = static_cast<std::uint32_t>(out.waits.size());
    for (const std::uint32_t wait : s.waits_of(s.transfers[i])) {
      if (wait != dropped) out.waits.push_back(wait - (wait > dropped ? 1 : 0));
    }
    t.waits = static_cast<std::uint32_t>(out.waits.size()) - t.first_wait;
    out.transfers.push_back(t);
  }
  return out;
}

Schedule empty_schedule(Op op, std::uint32_t ranks, std::uint32_t blocks, std::uint32_t scratch) {
  Schedule s;
  s.op = op;
  s.ranks = ranks;
  s.blocks = blocks;
  s.scratch = scratch;
  return s;
}

// Two ranks; transfers and pieces by hand.
Schedule pair_of_ranks(Op op, std::vector<Transfer> transfers, std::vector<Piece> pieces,
                       std::vector<std::uint32_t> waits = {}) {
  Schedule s = empty_schedule(op, 2, 2, 1);
  s.transfers = std::move(transfers);
  s.pieces = std::move(pieces);
  s.waits = std::move(waits);
  return s;
}

// Algorithms of which no wait follows from the others.
TEST_CASE("schedule check: a missing wait is found", "[schedules]") {
  struct Case {
    Op op;
    const char* algorithm;
  };
  for (const auto& [op, algorithm] : {Case{Op::all_reduce, "ring"},
                                      {Op::all_reduce, "double_tree"},
                                      {Op::all_reduce, "recursive_doubling"},
                                      {Op::reduce_scatter, "ring"},
                                      {Op::reduce_scatter, "halving_near"},
                                      {Op::all_gather, "ring"},
                                      {Op::all_gather, "doubling_far"},
                                      {Op::all_to_all, "pxn"},
                                      {Op::all_to_all, "pxn_batched"},
                                      {Op::broadcast, "chain"},
                                      {Op::reduce, "chain"},
                                      {Op::reduce, "binomial"}}) {
    for (const std::uint32_t n : {4U, 6U}) {
      if (needs_power_of_two(algorithm) && !is_power_of_two(n)) continue;
      const Schedule schedule = built(op, algorithm, {n, 2});
      REQUIRE(!schedule.waits.empty());
      for (std::size_t t = 0; t < schedule.transfers.size(); ++t) {
        for (std::uint32_t w = 0; w < schedule.transfers[t].waits; ++w) {
          CAPTURE(to_string(op), algorithm, n, t, w);
          CHECK(found_by_seeds(without_wait(schedule, t, w), 5000) != "");
        }
      }
    }
  }
}

template <class Check>
void for_small_schedules(const Check& check) {
  for (const Op op : kEveryOp) {
    for (const std::string_view algorithm : schedule_names(op)) {
      for (const std::uint32_t n : {2U, 4U, 6U}) {
        if (needs_power_of_two(algorithm) && !is_power_of_two(n)) continue;
        CAPTURE(to_string(op), algorithm, n);
        check(algorithm, built(op, algorithm, {n, 2}));
      }
    }
  }
}

TEST_CASE("schedule check: a missing transfer is found", "[schedules]") {
  for_small_schedules([](std::string_view algorithm, const Schedule& s) {
    // Its ring also carries what a rank already has.
    if (algorithm == "scatter_all_gather") return;
    for (std::uint32_t t = 0; t < s.transfers.size(); ++t) {
      CAPTURE(t);
      CHECK(check_schedule(without_transfer(s, t), t) != "");
    }
  });
}

TEST_CASE("schedule check: a contribution that is added twice is found", "[schedules]") {
  std::size_t sums = 0;
  for_small_schedules([&sums](std::string_view, const Schedule& s) {
    for (std::uint32_t t = 0; t < s.transfers.size(); ++t) {
      if (!s.transfers[t].sum) continue;
      Schedule twice = s;
      twice.transfers.push_back(s.transfers[t]);
      twice.transfers.back().first_wait = static_cast<std::uint32_t>(twice.waits.size());
      twice.transfers.back().waits = 1;
      twice.waits.push_back(t);
      CAPTURE(t);
      CHECK(check_schedule(twice, t).find(" a second time") != std::string::npos);
      ++sums;
    }
  });
  CHECK(sums > 100);
}

TEST_CASE("schedule check: a wrong target is found", "[schedules]") {
  std::size_t swapped = 0;
  for_small_schedules([&swapped](std::string_view algorithm, const Schedule& s) {
    if (algorithm == "scatter_all_gather") return;
    for (std::size_t p = 0; p < s.pieces.size(); ++p) {
      Schedule other = s;
      Piece& piece = other.pieces[p];
      piece.target =
          piece.target_buffer == ScheduleBuffer::result ? (piece.target + 1) % s.blocks : s.scratch;
      if (piece.target == s.pieces[p].target) continue;  // there is one block
      CAPTURE(p);
      CHECK(check_schedule(other, p) != "");
      ++swapped;
    }
    for (std::size_t t = 0; t < s.transfers.size(); ++t) {
      Schedule other = s;
      other.transfers[t].to = (s.transfers[t].to + 1) % s.ranks;
      CAPTURE(t);
      CHECK(found_by_seeds(other, 1000) != "");  // what waits for another may follow by chance
    }
  });
  CHECK(swapped > 100);
}

// In place a rank that is ahead adds to what the other has still to send: right in some orders.
TEST_CASE("schedule check: an exchange in place is right only in some orders", "[schedules]") {
  const Schedule s = pair_of_ranks(
      Op::all_reduce,
      {{.from = 0, .to = 1, .pieces = 2, .sum = true},
       {.from = 1, .to = 0, .pieces = 2, .sum = true}},
      {{.block = 0, .source = 0, .target = 0}, {.block = 1, .source = 1, .target = 1}});
  int right = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    right += check_schedule(s, seed).empty() ? 1 : 0;
  CHECK(right > 20);
  CHECK(right < 180);
}

TEST_CASE("schedule check: what it says of a run", "[schedules]") {
  const Piece zero{};
  const Piece one{.block = 1, .source = 1, .target = 1};
  const Transfer up{.from = 0, .to = 1, .pieces = 2, .sum = true};
  const auto says = [](const Schedule& s) { return check_schedule(s, 1); };
  CHECK(says(pair_of_ranks(Op::all_reduce, {up}, {zero, one})) ==
        "rank 0: block 0 of the result lacks the contribution of rank 1");
  CHECK(says(pair_of_ranks(Op::reduce, {}, {})) ==
        "rank 0: block 0 of the result lacks the contribution of rank 1");
  CHECK(says(pair_of_ranks(Op::broadcast, {{.from = 1, .to = 0, .pieces = 1}}, {zero})) ==
        "transfer 0 (rank 1 to rank 0): reads place 0 of result, which holds nothing yet");
  CHECK(says(pair_of_ranks(Op::broadcast, {{.from = 0, .to = 1, .pieces = 1}}, {zero})) ==
        "rank 1: block 1 of the result holds nothing instead of block 1 of rank 0");
  CHECK(says(pair_of_ranks(Op::all_gather, {{.from = 0, .to = 1, .pieces = 1}},
                           {{.block = 0, .source = 0, .target = 1}})) ==
        "rank 0: block 1 of the result holds nothing instead of block 1 of rank 1");
  CHECK(says(pair_of_ranks(Op::all_reduce, {up}, {zero, {.block = 1, .source = 0, .target = 1}})) ==
        "transfer 0 (rank 0 to rank 1): moves block 1 from place 0 of result, which holds block 0");
  CHECK(says(pair_of_ranks(Op::all_reduce, {up}, {zero, {.block = 1, .source = 1, .target = 0}})) ==
        "transfer 0 (rank 0 to rank 1): adds block 1 to place 0 of result, which holds block 0");
  CHECK(says(pair_of_ranks(
            Op::all_reduce, {up},
            {zero, {.block = 1, .source = 1, .target_buffer = ScheduleBuffer::scratch}})) ==
        "transfer 0 (rank 0 to rank 1): adds block 1 to place 0 of scratch, which holds nothing "
        "yet");
  CHECK(says(pair_of_ranks(Op::all_reduce,
                           {up, {.from = 0, .to = 1, .pieces = 1, .waits = 1, .sum = true}},
                           {zero, one}, {0})) ==
        "transfer 1 (rank 0 to rank 1): adds the contribution of rank 0 to block 0 of rank 1 a "
        "second time");
}

TEST_CASE("schedule check: what is not well formed", "[schedules]") {
  const Transfer there{.from = 0, .to = 1, .pieces = 1};
  const Transfer back{.from = 1, .to = 0, .pieces = 1};
  const auto says = [](const Schedule& s) { return check_schedule(s, 1); };
  const auto one = [&says](const Transfer& t, const Piece& piece = {}) {
    return says(pair_of_ranks(Op::all_gather, {t}, {piece}, {0}));
  };
  CHECK(one({.from = 2, .to = 1}) == "transfer 0: from = 2, to = 1: allowed is [0 .. 1]");
  CHECK(one({.from = 0, .to = 9}) == "transfer 0: from = 0, to = 9: allowed is [0 .. 1]");
  CHECK(one({.to = 1, .first_piece = 1, .pieces = 1}) == "transfer 0: pieces 1 to 2: there are 1");
  CHECK(one({.to = 1, .first_wait = 0xFFFF'FFFF, .waits = 1}) ==
        "transfer 0: waits 4294967295 to 4294967296: there are 1");
  CHECK(one({.to = 1, .waits = 1}) ==
        "transfer 0: waits for transfer 0: allowed is an earlier one");
  CHECK(one({.to = 1, .sum = true}) == "transfer 0: sum: all_gather only moves data");
  CHECK(one(there, {.block = 2}) == "transfer 0: block = 2: allowed is [0 .. 1]");
  CHECK(one(there, {.source = 2}) == "transfer 0: source = 2: the buffer has 2 places");
  CHECK(one(there, {.source_buffer = ScheduleBuffer::input}) ==
        "transfer 0: source = 0: the buffer has 0 places");
  CHECK(one(there, {.target = 1, .target_buffer = ScheduleBuffer::scratch}) ==
        "transfer 0: target = 1: the buffer has 1 places");
  Schedule others =
      pair_of_ranks(Op::all_reduce, {there, {.from = 2, .to = 0, .waits = 1}}, {{}}, {0});
  others.ranks = 3;
  CHECK(says(others) ==
        "transfer 1: waits for transfer 0 (rank 0 to rank 1): allowed is one that "
        "rank 2 sends or receives");
  Schedule shape = pair_of_ranks(Op::all_gather, {there, back}, {{}});
  shape.blocks = 3;
  CHECK(says(shape) == "blocks = 3: allowed is a multiple of 2, the ranks");
  shape.op = Op::all_to_all;
  CHECK(says(shape) == "blocks = 3: allowed is 2, one a rank");
  shape.root = 2;
  CHECK(says(shape) == "root = 2: allowed is [0 .. 1]");
  shape.ranks = 0;
  CHECK(says(shape) == "ranks = 0, blocks = 3: allowed is 1 or more");
}

TEST_CASE("schedule check: a schedule beyond what memory is for", "[schedules]") {
  const std::string refused = "the schedule has too many ranks, blocks or transfers to be checked";
  for (const std::uint32_t big : {1U << 27, 0xFFFF'FFFF}) {
    for (const Op op : kEveryOp) {
      CAPTURE(big, to_string(op));
      CHECK(check_schedule(empty_schedule(op, big, big, 0), 1) == refused);
      CHECK(check_schedule(empty_schedule(op, 1, 1, big), 1) == refused);
    }
  }
  // A million transfers of the same hundred pieces.
  Schedule shared = pair_of_ranks(Op::all_reduce, {}, std::vector<Piece>(100));
  shared.transfers.assign(1'000'000, {.from = 0, .to = 1, .pieces = 100});
  CHECK(check_schedule(shared, 1) == refused);
}

// Fewer transfers than ranks that must receive: wrong whatever they are.
TEST_CASE("schedule check: schedules at random are refused", "[schedules]") {
  const std::uint64_t seed = 4711;
  CAPTURE(seed);
  Random random(seed);
  const auto draw = [&random](std::uint32_t n) {
    return static_cast<std::uint32_t>(random.below(20) == 0 ? random.next() : random.below(n));
  };
  std::size_t runs = 0;
  for (int i = 0; i < 50'000; ++i) {
    Schedule s = empty_schedule(kEveryOp[random.below(kCollectiveOps)], 4, 4, 2);
    for (std::uint32_t k = draw(20) % 20; k > 0; --k) {
      s.pieces.push_back({draw(4), draw(4), draw(4), static_cast<ScheduleBuffer>(draw(3)),
                          static_cast<ScheduleBuffer>(draw(3))});
    }
    for (int k = 0; k < 5; ++k) s.waits.push_back(draw(2));
    for (std::uint32_t k = draw(3) % 3; k > 0; --k)
      s.transfers.push_back({draw(4), draw(4), draw(4), draw(4), draw(4), draw(2), draw(2) == 1});
    CAPTURE(i);
    const std::string error = check_schedule(s, random.next());
    CHECK(error != "");
    runs += error.find("of the result") != std::string::npos ? 1 : 0;
  }
  CHECK(runs > 1000);
}

}  // namespace
}  // namespace paceline::workload::schedule_check_test
