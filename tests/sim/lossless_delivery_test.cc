// Go-back-N: over links that lose one packet in a hundred, whichever, every message still arrives,
// complete and in its place, under reactive and proactive congestion control alike.

#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

TEST_CASE("delivery: with 1 % of all packets lost every message completes", "[delivery]") {
  const std::string workloads[] = {R"(
seed = 21
[fabric]
hosts = 9
loss = 0.01
[transport]
retransmit_timeout = "100us"
[workload]
kind = "incast"
fan_in = 8
message_bytes = "1MB"
)",
                                   R"(
seed = 22
[fabric]
hosts = 8
loss = 0.01
[transport]
retransmit_timeout = "100us"
[workload]
kind = "all_to_all"
message_bytes = "100kB"
skew = 1.0
)",
                                   R"(
seed = 23
[fabric]
hosts = 4
loss = 0.01
[transport]
retransmit_timeout = "100us"
[workload]
kind = "ring_all_reduce"
all_reduce_bytes = "1MB"
chunk_bytes = "64KiB"
)"};
  for (const std::string& cc : {kDcqcnPaper, kDcqcnHpcc, kCadence}) {
    for (const std::string& workload : workloads) {
      CAPTURE(cc, workload);
      VirtualWorld world = world_of(cc + workload, checked());
      CHECK(to_string(world.run()) == std::string("completed"));
      CHECK(broken_law(world) == "");
      CHECK(world.messages_failed() == 0);
      CHECK(world.messages_completed() == world.plan().messages.size());
      const telemetry::EngineCounters counters = total_counters(world);
      CHECK(counters.retransmitted_packets > 0);
      CHECK(counters.naks_received > 0);
      CHECK(counters.digest_mismatches == 0);
      std::uint64_t bytes = 0;
      for (const PlannedMessage& message : world.plan().messages) bytes += message.bytes;
      CHECK(counters.rx_data_bytes == bytes);  // accepted in sequence: once each
    }
  }
}

}  // namespace
}  // namespace paceline::simtest
