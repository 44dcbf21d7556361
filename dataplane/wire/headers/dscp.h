// One table maps DSCP to traffic class (and so to PFC priority and queue), for engines and switches
// alike. The default is the class selector of RFC 2474, 4.2.2: class = DSCP / 8. On the way out
// each class has one DSCP; class 3 uses 26 and class 6 uses 48, what RoCE NICs use for data and for
// CNPs when configured the usual way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/units.h"

namespace paceline::wire {

inline constexpr std::size_t kDscpValues = 64;

struct DscpMap {
  std::array<std::uint8_t, kDscpValues> class_of{};
  std::array<std::uint8_t, kTrafficClasses> dscp_of{};

  constexpr std::uint8_t traffic_class(std::uint8_t dscp) const { return class_of[dscp & 63U]; }
  constexpr std::uint8_t dscp(std::uint8_t traffic_class) const {
    return dscp_of[traffic_class % kTrafficClasses];
  }
  // A packet must be received in the class in which it was sent.
  constexpr bool is_consistent() const {
    for (std::size_t c = 0; c < kTrafficClasses; ++c) {
      if (dscp_of[c] >= kDscpValues || class_of[dscp_of[c]] != c) return false;
    }
    return true;
  }
};

constexpr DscpMap default_dscp_map() {
  DscpMap map;
  for (std::size_t d = 0; d < kDscpValues; ++d) map.class_of[d] = static_cast<std::uint8_t>(d / 8);
  map.dscp_of = {0, 8, 16, 26, 32, 40, 48, 56};
  return map;
}
inline constexpr DscpMap kDefaultDscpMap = default_dscp_map();
static_assert(kDefaultDscpMap.is_consistent());

}  // namespace paceline::wire
