// Two ports on one cable, for one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataplane/port/dpdk/dpdk_port.h"
#include "tests/support/dpdk_ring_cable.h"

namespace paceline::test {

struct RingPairConfig {
  std::uint32_t packets = 512;
  unsigned slots = 64;
  std::uint16_t payload_room = 1024;
  std::uint32_t thread_cache = 0;
};

struct RingPair {
  // Throws std::runtime_error with the reason when something cannot be made.
  explicit RingPair(const RingPairConfig& config = {});
  ~RingPair();

  // A RoCE SEND Only with so many bytes of payload, which count up from `first`, and a right ICRC.
  Packet* make(DpdkPort& port, std::uint16_t payload, unsigned first = 1) const;
  // One packet, or nullptr.
  static Packet* receive(DpdkPort& port);
  static bool payload_is(const Packet& packet, std::uint16_t bytes, unsigned first = 1);

  std::unique_ptr<DpdkMemory> memory;
  std::unique_ptr<DpdkRingCable> cable;
  std::unique_ptr<DpdkDevice> devices[2];
  std::unique_ptr<DpdkPort> ports[2];
};

}  // namespace paceline::test
