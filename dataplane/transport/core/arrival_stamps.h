// Counts the use of arrival times that a port reports (PortInfo::stamps_arrivals).
#pragma once

#include <cstdint>

namespace paceline::transport {

struct ArrivalStamps {
  std::uint64_t samples =
      0;  // round trips that end with an arrival, not with the poll that found it
  std::uint64_t refused =
      0;  // an answer that came before what it answers was sent: the poll's time
};

}  // namespace paceline::transport
