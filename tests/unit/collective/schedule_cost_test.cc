// The cost of schedules, counted, against the closed forms of the literature.
#include "tools/collective/tune/schedule_cost.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "tests/unit/collective/tune_samples.h"
#include "tools/collective/tune/cost_fit.h"
#include "tools/collective/tune/fabric_load.h"

namespace paceline::tools::schedule_cost_test {
namespace {

using workload::CollectiveOp;

constexpr SendCost kCost{3e-6, 1e-10, 5e-7, 2e-12};
constexpr std::uint64_t kBytes = 1 << 20;

ScheduleCost cost_on(const TuneGroup& group, CollectiveOp op, const std::string& name) {
  auto made = workload::make_schedule(op, name, group.shape);
  REQUIRE(made.ok());
  const PlacedSchedule placed = place_schedule(made.value, group.nics, group.servers);
  return {placed, FabricLoad(group.scenario).ports(placed)};
}

CostSplit one_part(const TuneGroup& group, CollectiveOp op, const std::string& name) {
  return cost_on(group, op, name).estimate({kBytes, 1, 1}, kCost);
}

TEST_CASE("schedule cost: one part on a star is what the closed forms say", "[jobs]") {
  const double n = 16;
  const double steps = std::log2(n);
  const TuneGroup group = tune_samples::group_on("hosts = 16");
  struct Form {
    CollectiveOp op;
    const char* name;
    double messages;
    double buffers;
  };
  const Form forms[] = {
      {CollectiveOp::all_reduce, "ring", 2 * (n - 1), 2 * (n - 1) / n},
      {CollectiveOp::all_reduce, "halving_doubling_near", 2 * steps, 2 * (n - 1) / n},
      {CollectiveOp::all_reduce, "halving_doubling_far", 2 * steps, 2 * (n - 1) / n},
      {CollectiveOp::all_reduce, "recursive_doubling", steps, steps},
      {CollectiveOp::reduce_scatter, "ring", n - 1, (n - 1) / n},
      {CollectiveOp::all_gather, "bruck", steps, (n - 1) / n},
      {CollectiveOp::all_gather, "pat", steps, (n - 1) / n},
      {CollectiveOp::all_to_all, "bruck", steps, steps / 2},
      {CollectiveOp::broadcast, "chain", n - 1, n - 1},
      {CollectiveOp::reduce, "binomial", steps, steps},
  };
  for (const Form& form : forms) {
    CAPTURE(form.name);
    const CostSplit cost = one_part(group, form.op, form.name);
    CHECK(cost.latency == Approx(form.messages * kCost.alpha).epsilon(1e-9));
    CHECK(cost.bandwidth == Approx(form.buffers * kBytes * kCost.beta).epsilon(1e-3));
    CHECK(cost.nvlink == 0);
  }
}

TEST_CASE("schedule cost: two levels take turns on NVLink and NICs", "[jobs]") {
  const double g = 4;
  const double h = 3;
  const TuneGroup group =
      tune_samples::group_on("topology = \"rail\"\nnics = 4\nservers = 3\nhosts_per_leaf = 3");
  REQUIRE(group.shape.per_server == 4);
  const CostSplit cost = one_part(group, CollectiveOp::all_reduce, "two_level_ring");
  CHECK(cost.latency == Approx(2 * (h - 1) * kCost.alpha).epsilon(1e-9));
  CHECK(cost.bandwidth == Approx(2 * kBytes * (h - 1) / (g * h) * kCost.beta).epsilon(1e-3));
  CHECK(cost.nvlink ==
        Approx(2 * (g - 1) * kCost.nvlink_alpha + 2 * kBytes * (g - 1) / g * kCost.nvlink_beta)
            .epsilon(1e-9));
}

TEST_CASE("schedule cost: a port that few hops use bounds a ring of many", "[jobs]") {
  // In a ring over 2 servers of 8, one NIC of each server carries 2 S (n - 1) / n in n - 1 turns.
  const TuneGroup group =
      tune_samples::group_on("topology = \"rail\"\nnics = 8\nservers = 2\nhosts_per_leaf = 2");
  constexpr SendCost kNoLatency{0, 1e-10, 0, 1e-14};
  const double bytes = 2.0 * kBytes * 15 / 16;
  CHECK(cost_on(group, CollectiveOp::all_reduce, "ring")
            .estimate({kBytes, 1, 1}, kNoLatency)
            .total() == Approx(bytes * kNoLatency.beta).epsilon(1e-3));
}

TEST_CASE("schedule cost: a message takes one path, however many there are", "[jobs]") {
  // Each of four spines has a quarter of a NIC's rate from each leaf.
  const auto ring = [](const std::string& more) {
    const TuneGroup group = tune_samples::group_on(
        "topology = \"leaf_spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\n"
        "oversubscription = 4\n" +
        more);
    return one_part(group, CollectiveOp::all_gather, "ring").bandwidth;
  };
  const double hop = kBytes / 8.0 * kCost.beta;
  // In seven steps a block passes the border of leaves twice, or once.
  CHECK(ring("") == Approx((5 + 2 * 4) * hop).epsilon(1e-2));
  CHECK(ring("load_balance = \"spray\"") == Approx(7 * hop).epsilon(1e-2));
}

TEST_CASE("schedule cost: parts follow one another by the busiest port or by the window",
          "[jobs]") {
  const TuneGroup group = tune_samples::group_on("hosts = 8");
  const ScheduleCost cost = cost_on(group, CollectiveOp::broadcast, "chain");
  const double n = 8;
  const double parts = 64;
  // Enough parts in flight: the first passes n - 1 hops, each further one a port.
  const double part = kBytes / parts * kCost.beta;
  CHECK(cost.estimate({kBytes, 64, 64}, kCost).total() ==
        Approx((n - 1) * (kCost.alpha + part) + (parts - 1) * part).epsilon(1e-3));
  // One at a time: each passes all of them.
  CHECK(cost.estimate({kBytes, 64, 1}, kCost).total() ==
        Approx(parts * (n - 1) * (kCost.alpha + part)).epsilon(1e-3));
}

TEST_CASE("schedule cost: an oversubscribed tier counts in the rounds that cross it", "[jobs]") {
  // Two leaves of four NICs, a quarter of whose rate goes up.
  const TuneGroup group = tune_samples::group_on(
      "topology = \"leaf_spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\n"
      "oversubscription = 4");
  const auto load = [&](const char* name) {
    const auto made = workload::make_schedule(CollectiveOp::all_reduce, name, group.shape);
    REQUIRE(made.ok());
    return FabricLoad(group.scenario).ports(place_schedule(made.value, group.nics, group.servers));
  };
  // Far first: S/2 of each of four NICs over one NIC's rate, then S/4 and S/8 within the leaf.
  const auto far = load("halving_doubling_far");
  REQUIRE(far.rounds.size() == 6);
  const double far_rounds[] = {2, 0.25, 0.125, 0.125, 0.25, 2};
  for (std::size_t i = 0; i < 6; ++i) CHECK(far.rounds[i] == Approx(far_rounds[i]).epsilon(1e-2));
  CHECK(far.all == Approx(4).epsilon(1e-2));
  // Near first: the last and smallest exchange crosses.
  const auto near = load("halving_doubling_near");
  REQUIRE(near.rounds.size() == 6);
  const double near_rounds[] = {0.5, 0.25, 0.5, 0.5, 0.25, 0.5};
  for (std::size_t i = 0; i < 6; ++i) CHECK(near.rounds[i] == Approx(near_rounds[i]).epsilon(1e-2));
}

TEST_CASE("schedule cost: the fit of a star is its rate and its latency", "[jobs]") {
  const TuneGroup group = tune_samples::group_on("hosts = 8\nrate = \"100Gb/s\"\ndelay = \"1us\"");
  const auto fit = fit_cost(group, std::atomic<bool>{false});
  REQUIRE(fit.ok());
  // For each 4096 bytes, headers add 2 %, and acknowledgements of the other direction add 2 %. In a
  // step of 256 KiB, 3 KiB more of the first packet are stored and forwarded: 1.2 %.
  CHECK(fit.value.beta * 100e9 / 8 >= 1.02);
  CHECK(fit.value.beta * 100e9 / 8 <= 1.06);
  // Two links of 1 us; the step is a packet that is stored and forwarded once, and no more.
  CHECK(fit.value.alpha >= 2e-6);
  CHECK(fit.value.alpha <= 2.5e-6);
}

}  // namespace
}  // namespace paceline::tools::schedule_cost_test
