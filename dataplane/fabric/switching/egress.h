// The output side of one switch port: a FIFO per class, and its counters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/numbers/random.h"
#include "dataplane/base/units.h"
#include "dataplane/port/packet.h"

namespace paceline::fabric {

struct ClassQueue {
  Packet* head = nullptr;
  Packet* tail = nullptr;
  std::uint64_t bytes = 0;

  void push(Packet* packet) {
    packet->next = nullptr;
    if (head == nullptr) {
      head = packet;
    } else {
      tail->next = packet;
    }
    tail = packet;
    bytes += packet->wire_bytes;
  }
  Packet* pop() {
    Packet* packet = head;
    head = packet->next;
    bytes -= packet->wire_bytes;
    return packet;
  }
};

struct alignas(64) Egress {
  __extension__ using Integral = unsigned __int128;

  std::uint64_t queued_bytes = 0;  // all classes
  Picos changed_at{0};
  Integral byte_picos = 0;  // integral of queued_bytes up to changed_at
  std::uint64_t max_bytes = 0;
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  std::uint32_t switch_index = 0;
  std::uint16_t port = 0;  // number of the port within the switch
  bool last_hop = false;   // towards a host
  std::uint8_t curve = 0;  // by which it marks: one of the network's
  // A packet touches the line above and one of these: the queues of data (class 3) and control (7)
  // lie on one each.
  std::array<ClassQueue, kTrafficClasses> queues{};
  std::uint64_t marked = 0;
  std::uint64_t trimmed = 0;
  std::uint64_t drops = 0;
  Random marking{0};  // drawn in departure order
  std::uint32_t link = 0;

  // Before queued_bytes changes at `at`, which never goes back.
  void integrate(Picos at) {
    byte_picos += Integral{queued_bytes} * static_cast<std::uint64_t>((at - changed_at).count);
    changed_at = at;
  }
};
static_assert(sizeof(Egress) == 320);
static_assert(offsetof(Egress, queues) == 64);
static_assert((64 + kDefaultDataClass * sizeof(ClassQueue)) % 64 + sizeof(ClassQueue) <= 64);
static_assert((64 + kControlClass * sizeof(ClassQueue)) % 64 + sizeof(ClassQueue) <= 64);

}  // namespace paceline::fabric
