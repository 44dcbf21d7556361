// Makes the windows that a tuner sees from a running world: what the busiest NIC and the messages
// of all hosts did since the last look.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "control/tuner/online/observation/window.h"
#include "dataplane/driver/traffic/fabric_ideal.h"
#include "dataplane/driver/virtual/virtual_world.h"

namespace paceline::tools {

class WindowReader {
 public:
  // Both must outlive it.
  WindowReader(const config::Scenario& scenario, VirtualWorld& world);

  // Between windows: how deep are queues, how many senders are there now?
  void glance(Picos now);
  // Ends a window at `now`.
  tuner::online::Window window(Picos now, std::uint64_t order);

 private:
  struct Totals {
    std::uint64_t tx_bytes = 0;
    std::uint64_t rx_bytes = 0;
    std::uint64_t tx_packets = 0;
    std::uint64_t rx_packets = 0;
    std::uint64_t ce = 0;
    std::uint64_t cnps = 0;
    std::uint64_t retransmitted = 0;
  };
  void read_messages(Picos now, tuner::online::Window& window);
  void read_hosts(tuner::online::Window& window);

  const config::Scenario& scenario_;
  VirtualWorld& world_;
  FabricIdeal yardstick_;
  std::vector<std::uint32_t> switch_links_;
  std::vector<Totals> before_;  // by host
  std::uint64_t dropped_ = 0;
  Picos paused_{0};
  Picos begin_{0};
  std::uint32_t next_ = 0;            // message of the plan that may be the next to begin
  std::vector<std::uint32_t> open_;   // begun, not finished
  std::uint64_t deepest_ = 0;         // queue, in this window
  std::uint32_t senders_ = 0;         // likewise
  std::vector<std::uint32_t> pairs_;  // by (destination, source): the glance that saw it last
  std::uint32_t glances_ = 0;
};

}  // namespace paceline::tools
