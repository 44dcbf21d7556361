// Times at which the host was stopped and could not poll the engine (Engine::stopped).
#pragma once

#include <cstdint>

#include "dataplane/base/units.h"

namespace paceline::transport {

struct HostStops {
  std::uint64_t count = 0;
  Picos total{0};                     // all of them
  Picos until{0};                     // end of the latest
  std::uint64_t samples_dropped = 0;  // round trips that were not reported because of a stop
};

}  // namespace paceline::transport
