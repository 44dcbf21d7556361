// Collectives with data between the ranks of a loopback: every schedule, in parts, in any order of
// what happens on the network.
#include "tools/collective/rank/part_runner.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"
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
      data_.push_back(
          std::make_unique<CollectiveData>(schedule, cut_, layout_.buffers(), r,
                                           reinterpret_cast<float*>(links_.back()->staging())));
      in_place_.push_back(std::make_unique<InPlace>(schedule, r));
      runners_.push_back(
          std::make_unique<PartRunner>(schedule, cut_, layout_, *in_place_.back(), r, size.window));
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

  // Messages of a transfer: those of all parts, those sent out of buffers, and those that land
  // there.
  struct Copies {
    std::uint64_t all = 0;
    std::uint64_t sent_in_place = 0;
    std::uint64_t landed_in_place = 0;
  };
  std::vector<Copies> copies() const {
    const std::uint64_t buffers = layout_.buffers().elements() * sizeof(float);
    std::vector<Copies> copies(schedule_.transfers.size());
    for (const loopback::Message& m : network_.written) {
      Copies& of = copies[m.word & (kMostTransfers - 1)];
      ++of.all;
      if (m.own_offset < buffers) ++of.sent_in_place;
      if (m.peer_offset < buffers) ++of.landed_in_place;
    }
    return copies;
  }
  std::uint64_t parts() const { return cut_.parts(); }

 private:
  // A rank's queues have room for everything in flight.
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
  std::vector<std::unique_ptr<InPlace>> in_place_;
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

TEST_CASE("part runner: a ring copies nothing but its sums", "[collective]") {
  const Schedule schedule = built(workload::CollectiveOp::all_reduce, "ring", {5, 1});
  Group group(schedule, {103, 10, 2}, 1);
  group.run(0, true);
  REQUIRE(group.parts() == 3);
  const std::vector<Group::Copies> copies = group.copies();
  for (std::size_t t = 0; t < copies.size(); ++t) {
    CAPTURE(t);
    CHECK(copies[t].all == group.parts());
    CHECK(copies[t].sent_in_place == group.parts());
    CHECK(copies[t].landed_in_place == (schedule.transfers[t].sum ? 0 : group.parts()));
  }
}

TEST_CASE("part runner: pieces that are apart are copied", "[collective]") {
  // Both blocks in one message: apart in the buffer where there are parts.
  Schedule schedule;
  schedule.op = workload::CollectiveOp::broadcast;
  schedule.ranks = 2;
  schedule.blocks = 2;
  schedule.pieces = {{.block = 0, .source = 0, .target = 0},
                     {.block = 1, .source = 1, .target = 1}};
  schedule.transfers = {{.from = 0, .to = 1, .pieces = 2}};
  const std::uint64_t parts = GENERATE(1U, 2U);
  Group group(schedule, {40, 40 / parts, 1}, 1);
  group.run(0, true);
  REQUIRE(group.parts() == parts);
  const Group::Copies copies = group.copies()[0];
  CHECK(copies.all == parts);
  CHECK(copies.sent_in_place == (parts == 1 ? 1 : 0));
  CHECK(copies.landed_in_place == (parts == 1 ? 1 : 0));
}

TEST_CASE("part runner: what an arrival can change before it has been sent is copied",
          "[collective]") {
  // Rank 0 sends its contribution, to which that of rank 1 is added at any time.
  Schedule schedule;
  schedule.op = workload::CollectiveOp::all_reduce;
  schedule.ranks = 2;
  schedule.blocks = 1;
  schedule.scratch = 1;
  schedule.pieces = {{.target_buffer = workload::ScheduleBuffer::scratch},
                     {},
                     {.source_buffer = workload::ScheduleBuffer::scratch}};
  schedule.waits = {0, 1};
  schedule.transfers = {
      {.from = 0, .to = 1, .first_piece = 0, .pieces = 1},
      {.from = 1, .to = 0, .first_piece = 1, .pieces = 1, .sum = true},
      {.from = 1, .to = 1, .first_piece = 2, .pieces = 1, .waits = 2, .sum = true}};
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Group group(schedule, {20, 5, 4}, seed);
    group.run(0, seed % 2 == 0);
    const std::vector<Group::Copies> copies = group.copies();
    REQUIRE(copies[0].all == 4);
    REQUIRE(copies[0].sent_in_place == 0);
    REQUIRE(copies[0].landed_in_place == 4);
    REQUIRE(copies[1].sent_in_place == 4);
    REQUIRE(copies[1].landed_in_place == 0);
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
  const BufferLayout layout(schedule, cut, 1);
  std::vector<float> memory(layout.elements());
  CollectiveData data(schedule, cut, layout, 0, memory.data());
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
