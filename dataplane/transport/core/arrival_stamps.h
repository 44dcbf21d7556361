// Counts the use of arrival times that a port reports (PortInfo::stamps_arrivals).
#pragma once

#include <cstdint>

namespace paceline::transport {

struct ArrivalStamps {
  std::uint64_t samples = 0;  // round trips that end at the arrival, not at the poll that found it
  std::uint64_t refused = 0;  // an answer came before its request was sent: the poll's time is used
};

}  // namespace paceline::transport
