// That no order of events changes what a schedule does: whatever touches the same place is in one
// order by the waits, or commutes. A result that is right in one order is then right in all.
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tests/unit/workload/schedule_samples.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::workload::schedule_order_test {
namespace {

using namespace schedule_samples;

// [t][u]: u has arrived before t begins, in every order.
std::vector<std::vector<bool>> arrivals_before(const Schedule& s) {
  std::vector<std::vector<bool>> before(s.transfers.size());
  for (std::size_t t = 0; t < s.transfers.size(); ++t) {
    before[t].resize(s.transfers.size());
    for (const std::uint32_t wait : s.waits_of(s.transfers[t])) {
      before[t][wait] = true;
      for (std::size_t u = 0; u < wait; ++u) {
        if (before[wait][u]) before[t][u] = true;
      }
    }
  }
  return before;
}

// Reads when a transfer begins, writes and sums when it has arrived.
struct Access {
  std::uint32_t transfer;
  std::tuple<std::uint32_t, ScheduleBuffer, std::uint32_t> place;
  bool writes;
  bool sum;
};

std::vector<Access> accesses_of(const Schedule& s) {
  std::vector<Access> accesses;
  for (std::uint32_t number = 0; number < s.transfers.size(); ++number) {
    const Transfer& t = s.transfers[number];
    for (const Piece& p : s.pieces_of(t)) {
      accesses.push_back({number, {t.from, p.source_buffer, p.source}, false, false});
      accesses.push_back({number, {t.to, p.target_buffer, p.target}, true, t.sum});
    }
  }
  return accesses;
}

// Two transfers whose accesses to a place may come in either order, or "".
std::string unordered(const Schedule& s) {
  const auto before = arrivals_before(s);
  const std::vector<Access> accesses = accesses_of(s);
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Access& late = accesses[i];
      const Access& early = accesses[j];
      if (late.place != early.place || late.transfer == early.transfer) continue;
      if (!late.writes && !early.writes) continue;
      if (late.sum && early.sum) continue;
      if (!before[late.transfer][early.transfer] && !before[early.transfer][late.transfer]) {
        return "transfers " + std::to_string(early.transfer) + " and " +
               std::to_string(late.transfer);
      }
    }
  }
  return "";
}

TEST_CASE("schedule order: what touches the same place is in order", "[schedules]") {
  for (const CollectiveOp op : kEveryOp) {
    for (const std::string_view algorithm : schedule_names(op)) {
      // Its ring writes again, the same, what a rank has from the scatter.
      if (algorithm == "scatter_all_gather") continue;
      for (const std::uint32_t n : {2U, 3U, 4U, 5U, 6U, 7U, 8U, 12U}) {
        if (needs_power_of_two(algorithm) && !is_power_of_two(n)) continue;
        for (const std::uint32_t g : servers_to_try(algorithm, n)) {
          for (const ScheduleOptions& options : options_to_try(op, algorithm, n)) {
            CAPTURE(to_string(op), algorithm, n, g, options.root, options.aggregation,
                    options.window);
            CHECK(unordered(built(op, algorithm, {n, g}, options)) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("schedule order: an exchange in place has none", "[schedules]") {
  Schedule s;
  s.ranks = 2;
  s.blocks = 1;
  s.transfers = {{.from = 0, .to = 1, .pieces = 1, .sum = true},
                 {.from = 1, .to = 0, .pieces = 1, .sum = true}};
  s.pieces = {{}};
  CHECK(unordered(s) == "transfers 0 and 1");
}

}  // namespace
}  // namespace paceline::workload::schedule_order_test
