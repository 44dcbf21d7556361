// Collectives with data between the ranks of a loopback: every schedule, in parts, in any order of
// what happens on the network.
#include "tools/collective/rank/part_runner.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/random.h"
#include "tests/unit/collective/loopback.h"
#include "tests/unit/workload/schedule_samples.h"
#include "tools/collective/rank/peer_traffic.h"

namespace paceline::rank::part_runner_test {
namespace {

using namespace workload::schedule_samples;
using workload::Schedule;

struct Size {
  std::uint64_t elements;
  std::uint64_t chunk;  // elements
  std::uint32_t window;
};

// The ranks of a group, each with its buffers.
class Group {
 public:
  Group(const Schedule& schedule, const Size& size, std::uint64_t seed)
      : schedule_(schedule),
        cut_(schedule, size.elements, size.chunk),
        layout_(schedule, cut_, size.window),
        network_(schedule.ranks, seed) {
    for (std::uint32_t r = 0; r < schedule.ranks; ++r) {
      links_.push_back(&network_.add(layout_.staging_bytes(r)));
      data_.push_back(std::make_unique<CollectiveData>(schedule, cut_, r, size.window));
      runners_.push_back(std::make_unique<PartRunner>(schedule, cut_, layout_, r, size.window));
      for (const PeerTraffic& t : peer_traffic(schedule, r, size.window)) traffic_.push_back(t);
      owners_.resize(traffic_.size(), r);
    }
  }

  // `hears`: every rank learns of acknowledgements at any time; else only where it wakes by them.
  void run(std::uint32_t iteration, bool hears) {
    const auto wakes = [this, hears](std::uint32_t r) {
      return hears ? LinkWake::any : runners_[r]->wakes_by();
    };
    for (std::uint32_t r = 0; r < schedule_.ranks; ++r) {
      data_[r]->fill(iteration);
      runners_[r]->begin(*data_[r], *links_[r]);
    }
    while (!network_.idle()) {
      check_traffic();
      if (const auto event = network_.step(wakes)) runners_[event->first]->take(event->second);
    }
    for (std::uint32_t r = 0; r < schedule_.ranks; ++r) {
      CAPTURE(iteration, r, runners_[r]->waits_for());
      REQUIRE(runners_[r]->done());
      const DataCheck check = data_[r]->check(iteration);
      CAPTURE(check.first.element, check.first.expected, check.first.got);
      REQUIRE(check.wrong == 0);
    }
  }

 private:
  // A rank's queues have room for what is under way.
  void check_traffic() {
    for (std::size_t i = 0; i < traffic_.size(); ++i) {
      const PeerTraffic& t = traffic_[i];
      const loopback::Pair& out = network_.pair(owners_[i], t.peer);
      const loopback::Pair& in = network_.pair(t.peer, owners_[i]);
      if (out.posted.size() + out.not_acknowledged.size() > t.sent) FAIL("too many are sent");
      if (in.posted.size() + in.not_seen.size() > t.received) FAIL("too many arrive");
    }
  }

  const Schedule& schedule_;
  PartCut cut_;
  SlotLayout layout_;
  loopback::Network network_;
  std::vector<loopback::LoopbackLink*> links_;
  std::vector<std::unique_ptr<CollectiveData>> data_;
  std::vector<std::unique_ptr<PartRunner>> runners_;
  std::vector<PeerTraffic> traffic_;
  std::vector<std::uint32_t> owners_;  // of traffic_
};

TEST_CASE("part runner: every schedule has right data, in any order of events", "[collective]") {
  Random random(2026'1127);
  for (const workload::CollectiveOp op : kEveryOp) {
    for (const std::string_view algorithm : workload::schedule_names(op)) {
      for (const std::uint32_t n : {2U, 3U, 5U, 8U}) {
        if (needs_power_of_two(algorithm) && !is_power_of_two(n)) continue;
        for (const std::uint32_t g : servers_to_try(algorithm, n)) {
          for (const workload::ScheduleOptions& options : options_to_try(op, algorithm, n)) {
            const Schedule schedule = built(op, algorithm, {n, g}, options);
            const Size size{1 + random.below(200), 1 + random.below(20),
                            1 + static_cast<std::uint32_t>(random.below(4))};
            const std::uint64_t seed = random.below(1U << 31);
            CAPTURE(to_string(op), algorithm, n, g, size.elements, size.chunk, size.window, seed);
            Group group(schedule, size, seed);
            for (std::uint32_t iteration = 0; iteration < 4; ++iteration) {
              group.run(iteration, iteration % 2 == 0);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("part runner: a long pipeline keeps within its window", "[collective]") {
  const Schedule schedule = built(workload::CollectiveOp::reduce, "chain", {6, 1});
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Group(schedule, {400, 10, 3}, seed).run(0, seed % 2 == 0);
  }
}

TEST_CASE("part cut: parts of a block follow one another and make it whole", "[collective]") {
  Random random(7);
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const auto n = 2 + static_cast<std::uint32_t>(random.below(9));
    const Schedule schedule = built(workload::CollectiveOp::all_gather, "bruck", {n, 1});
    const std::uint64_t elements = 1 + random.below(1000);
    const std::uint64_t chunk = 1 + random.below(100);
    CAPTURE(seed, n, elements, chunk);
    const PartCut cut(schedule, elements, chunk);
    for (std::uint32_t b = 0; b < schedule.blocks; ++b) {
      std::uint64_t next = 0;
      for (std::uint64_t p = 0; p < cut.parts(); ++p) {
        const Extent extent = cut.part_of_block(b, p);
        REQUIRE(extent.begin == next);
        REQUIRE(extent.count <= cut.part_room());
        next += extent.count;
      }
      REQUIRE(next == cut.block_begin(b + 1) - cut.block_begin(b));
    }
  }
}

TEST_CASE("collective data: what is not as it must be is counted, and the first is named",
          "[collective]") {
  const Schedule schedule = built(workload::CollectiveOp::reduce, "chain", {3, 1});
  const PartCut cut(schedule, 10, 10);
  CollectiveData data(schedule, cut, 0, 1);
  data.fill(2);
  // The sum of the others arrives, wrong in element 7.
  std::vector<float> others(10);
  for (std::uint64_t i = 0; i < 10; ++i) {
    others[i] = contribution(1, i, 2) + contribution(2, i, 2) + (i == 7 ? 1 : 0);
  }
  const workload::Transfer& last = schedule.transfers.back();
  REQUIRE(last.to == 0);
  REQUIRE(last.sum);
  REQUIRE(data.elements_of(last, 0) == 10);
  data.write(last, 0, others.data());
  const DataCheck check = data.check(2);
  const float sum = contribution(0, 7, 2) + contribution(1, 7, 2) + contribution(2, 7, 2);
  CHECK(check.wrong == 1);
  CHECK(check.first.element == 7);
  CHECK(check.first.expected == sum);
  CHECK(check.first.got == sum + 1);
  CHECK(data.check(3).wrong == 10);
}

TEST_CASE("contributions: whole numbers whose sums float32 holds", "[collective]") {
  float most = 0;
  for (std::uint64_t element = 0; element < 100'000; ++element) {
    const float value = contribution(3, element, 1);
    REQUIRE(value == static_cast<float>(static_cast<int>(value)));
    most = std::max(most, value);
  }
  REQUIRE(most < (1 << 15));
  REQUIRE(std::uint64_t{kMostRanks} * ((1 << 15) - 1) < (1 << 24));
}

}  // namespace
}  // namespace paceline::rank::part_runner_test
