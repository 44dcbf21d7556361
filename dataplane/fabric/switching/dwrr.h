// Deficit weighted round robin between the classes of one egress port (Shreedhar and Varghese,
// "Efficient fair queuing using deficit round robin", IEEE/ACM ToN 4(3), 1996). In its turn a class
// may send its quantum and what it did not use in earlier turns. State changes with departures
// only, so departures decided late are decided alike.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "dataplane/base/units.h"
#include "dataplane/fabric/switching/egress.h"

namespace paceline::fabric {

// Bytes a turn for weight 1: no packet is larger, so every turn sends at least one packet.
inline constexpr std::uint32_t kDwrrQuantum = 5'120;

struct Dwrr {
  std::array<std::uint32_t, kTrafficClasses> deficit{};
  std::uint32_t current = 0;  // class whose turn it is

  // The class that sends next. `eligible`: bit per class that has packets and may send, not 0;
  // quantum of each of them at least kDwrrQuantum.
  std::uint8_t pick(unsigned eligible, const std::array<ClassQueue, kTrafficClasses>& queues,
                    const std::array<std::uint32_t, kTrafficClasses>& quantum) {
    for (;;) {
      if ((eligible >> current & 1U) != 0) {
        const std::uint32_t size = queues[current].head->wire_bytes;
        if (deficit[current] >= size) {
          deficit[current] -= size;
          return static_cast<std::uint8_t>(current);
        }
      }
      const unsigned later_ones = eligible & ~((2U << current) - 1);
      current =
          static_cast<std::uint32_t>(std::countr_zero(later_ones != 0 ? later_ones : eligible));
      deficit[current] += quantum[current];
    }
  }
  // The class has nothing left: it loses its saved quantum.
  void emptied(std::uint8_t traffic_class) { deficit[traffic_class] = 0; }
};

}  // namespace paceline::fabric
