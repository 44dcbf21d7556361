// Which transfers need no copy: schedules with a known answer, and random ones beside a search
// through the events of each transfer.
#include "tools/collective/rank/in_place.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tools/collective/rank/place_order.h"

namespace paceline::rank::in_place_test {
namespace {

using workload::Piece;
using workload::Schedule;
using workload::ScheduleBuffer;
using workload::Transfer;

// Adds a transfer of one piece.
void add(Schedule& schedule, std::uint32_t from, std::uint32_t to, const Piece& piece,
         const std::vector<std::uint32_t>& waits = {}, bool sum = false) {
  schedule.transfers.push_back({from, to, static_cast<std::uint32_t>(schedule.pieces.size()), 1,
                                static_cast<std::uint32_t>(schedule.waits.size()),
                                static_cast<std::uint32_t>(waits.size()), sum});
  schedule.pieces.push_back(piece);
  schedule.waits.insert(schedule.waits.end(), waits.begin(), waits.end());
}

Schedule of_ranks(std::uint32_t ranks) {
  Schedule schedule;
  schedule.ranks = ranks;
  schedule.blocks = 4;
  schedule.scratch = 4;
  return schedule;
}

// A piece of block 0.
Piece from_to(std::uint32_t source, std::uint32_t target) {
  return {.source = source, .target = target};
}

TEST_CASE("in place: an arrival that a transfer waits for does not disturb it", "[collective]") {
  Schedule schedule = of_ranks(2);
  add(schedule, 1, 0, from_to(0, 0));
  const bool waits = GENERATE(false, true);
  add(schedule, 0, 1, from_to(0, 1), waits ? std::vector{0U} : std::vector<std::uint32_t>{});
  CHECK(InPlace(schedule, 0).is_sent(1) == waits);
  CHECK(InPlace(schedule, 0).lands(0) == waits);
  CHECK(InPlace(schedule, 1).lands(0) == waits);
  CHECK(InPlace(schedule, 1).is_sent(0));
  CHECK(InPlace(schedule, 0).lands(1));
}

TEST_CASE("in place: an acknowledgement does not tell that the receiver has taken the bytes",
          "[collective]") {
  // Rank 2 hears from rank 1, whose transfer to rank 0 is acknowledged, and rank 0 from rank 2.
  Schedule schedule = of_ranks(3);
  add(schedule, 1, 0, from_to(0, 0));
  add(schedule, 1, 2, from_to(1, 1), {0});
  add(schedule, 2, 0, from_to(1, 1), {1});
  const bool waits = GENERATE(false, true);
  add(schedule, 0, 1, from_to(0, 2), waits ? std::vector{0U, 2U} : std::vector{2U});
  CHECK(InPlace(schedule, 0).is_sent(3) == waits);
}

TEST_CASE("in place: what arrives after the transfer has arrived does not disturb it",
          "[collective]") {
  Schedule schedule = of_ranks(2);
  add(schedule, 0, 1, from_to(0, 0));
  const bool waits = GENERATE(false, true);
  add(schedule, 1, 0, from_to(1, 0), waits ? std::vector{0U} : std::vector<std::uint32_t>{});
  CHECK(InPlace(schedule, 0).is_sent(0) == waits);
  CHECK(InPlace(schedule, 1).lands(1) == waits);
}

TEST_CASE("in place: two that write one place land in it where they are ordered", "[collective]") {
  Schedule schedule = of_ranks(3);
  const bool sum = GENERATE(false, true);
  add(schedule, 1, 0, from_to(0, 0), {}, sum);
  SECTION("ordered") {
    add(schedule, 0, 2, from_to(1, 1), {0});
    add(schedule, 2, 0, from_to(0, 0), {1});
    CHECK(InPlace(schedule, 0).lands(0) == !sum);
    CHECK(InPlace(schedule, 0).lands(2));
    CHECK(InPlace(schedule, 2).lands(2));
  }
  SECTION("not ordered") {
    add(schedule, 2, 0, from_to(0, 0));
    CHECK_FALSE(InPlace(schedule, 0).lands(0));
    CHECK_FALSE(InPlace(schedule, 0).lands(1));
    CHECK_FALSE(InPlace(schedule, 2).lands(1));
  }
}

TEST_CASE("in place: parts of different blocks in one place are not ordered", "[collective]") {
  Schedule schedule = of_ranks(2);
  const std::uint32_t block = GENERATE(0U, 1U);
  const ScheduleBuffer buffer = GENERATE(ScheduleBuffer::result, ScheduleBuffer::scratch);
  add(schedule, 0, 1, {.block = 0, .source_buffer = buffer});
  add(schedule, 1, 0, {.block = block, .source = 1, .target_buffer = buffer}, {0});
  const bool ordered = block == 0 || buffer == ScheduleBuffer::scratch;
  CHECK(InPlace(schedule, 0).is_sent(0) == ordered);
  CHECK(InPlace(schedule, 0).lands(1) == ordered);
}

// Whether `later` begins after an event of `earlier`: that it has been taken at its receiver, or
// that it is in the receiver's memory, from which both that and its acknowledgement follow.
bool begins_after(const Schedule& schedule, std::uint32_t later, std::uint32_t earlier,
                  bool taken) {
  std::vector<bool> begun(schedule.transfers.size());
  for (std::uint32_t t = earlier + 1; t <= later; ++t) {
    for (const std::uint32_t w : schedule.waits_of(schedule.transfers[t])) {
      const bool waits_for_taken = schedule.transfers[w].to == schedule.transfers[t].from;
      if (begun[w] || (w == earlier && (waits_for_taken || !taken))) begun[t] = true;
    }
  }
  return begun[later];
}

bool ordered_by_search(const Schedule& schedule, std::uint32_t rank, std::uint32_t t) {
  const auto place = [&](std::uint32_t x, bool writes) {
    const Piece& p = schedule.pieces[schedule.transfers[x].first_piece];
    return writes ? std::pair(p.target_buffer, p.target) : std::pair(p.source_buffer, p.source);
  };
  const auto uses = [&](std::uint32_t x, bool writes) {
    return (writes ? schedule.transfers[x].to : schedule.transfers[x].from) == rank;
  };
  for (std::uint32_t x = 0; x < schedule.transfers.size(); ++x) {
    for (int kind = 0; kind < 4 && x != t; ++kind) {
      const bool t_writes = kind % 2 == 1;
      const bool x_writes = kind / 2 == 1;
      if (!uses(t, t_writes) || !uses(x, x_writes)) continue;
      if (kind == 0 || place(t, t_writes) != place(x, x_writes)) continue;
      if (kind == 3 && schedule.transfers[t].sum && schedule.transfers[x].sum) continue;
      const bool earlier_writes = x < t ? x_writes : t_writes;
      if (!begins_after(schedule, std::max(x, t), std::min(x, t), earlier_writes)) return false;
    }
  }
  return true;
}

TEST_CASE("place order: as a search through the events says", "[collective]") {
  std::uint64_t ordered = 0;
  std::uint64_t unordered = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random.below(n)); };
    Schedule schedule = of_ranks(3);
    schedule.scratch = 4 + below(60);
    for (std::uint32_t t = 0; t < 150; ++t) {
      const std::uint32_t from = below(3);
      std::vector<std::uint32_t> waits;
      for (std::uint32_t w = 0; w < t; ++w) {
        const Transfer& earlier = schedule.transfers[w];
        if ((earlier.from == from || earlier.to == from) && random.below(t) < 3) waits.push_back(w);
      }
      const Piece piece{0, below(schedule.scratch), below(schedule.scratch),
                        ScheduleBuffer::scratch, ScheduleBuffer::scratch};
      add(schedule, from, below(3), piece, waits, below(2) == 1);
    }
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      const PlaceOrder order(schedule, rank);
      for (std::uint32_t t = 0; t < 150; ++t) {
        const Transfer& transfer = schedule.transfers[t];
        if (transfer.from != rank && transfer.to != rank) continue;
        CAPTURE(rank, t);
        const bool expected = ordered_by_search(schedule, rank, t);
        REQUIRE(order.ordered(t) == expected);
        ++(expected ? ordered : unordered);
      }
    }
  }
  CHECK(ordered > 1000);
  CHECK(unordered > 1000);
}

}  // namespace
}  // namespace paceline::rank::in_place_test
