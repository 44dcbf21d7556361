#include "dataplane/fabric/wire/host_queues.h"

#include <array>
#include <catch2/catch.hpp>
#include <vector>

namespace paceline::fabric {
namespace {

std::vector<std::uint32_t> woken(const HostQueues& queues) {
  return {queues.woken().begin(), queues.woken().end()};
}

TEST_CASE("host queues: packets are taken in the order of arrival, as many as there is room for") {
  HostQueues queues(2, *std::pmr::new_delete_resource());
  std::array<Packet, 3> packets{};
  for (Packet& packet : packets) queues.deliver(1, &packet);
  std::array<Packet*, 2> burst{};
  CHECK(queues[0].take(burst) == 0);
  REQUIRE(queues[1].take(burst) == 2);
  CHECK(burst[0] == &packets[0]);
  CHECK(burst[1] == &packets[1]);
  CHECK(burst[1]->next == nullptr);
  queues.deliver(1, &packets[0]);
  REQUIRE(queues[1].take(burst) == 2);
  CHECK(burst[0] == &packets[2]);
  CHECK(burst[1] == &packets[0]);
  CHECK(queues[1].head == nullptr);
}

TEST_CASE("host queues: each host is woken once, in order, until it is cleared") {
  HostQueues queues(3, *std::pmr::new_delete_resource());
  Packet packet{};
  queues.wake(2);
  queues.deliver(0, &packet);
  queues.wake(2);
  queues.wake(0);
  CHECK(woken(queues) == std::vector<std::uint32_t>{2, 0});
  queues.clear_woken();
  CHECK(woken(queues).empty());
  queues.wake(0);
  CHECK(woken(queues) == std::vector<std::uint32_t>{0});
}

TEST_CASE("host queues: one host's packets are taken over from another part") {
  HostQueues mine(2, *std::pmr::new_delete_resource());
  HostQueues theirs(2, *std::pmr::new_delete_resource());
  Packet packet{};
  theirs.deliver(1, &packet);
  mine.take_over(theirs, 1);
  CHECK(mine[1].head == &packet);
  CHECK(mine[0].head == nullptr);
  CHECK(woken(mine).empty());
}

}  // namespace
}  // namespace paceline::fabric
