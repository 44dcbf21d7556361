// The clock that says the times an engine is polled with, for a port that knows better than the
// poll when packets arrived (PortInfo::stamps_arrivals).
#pragma once

#include "dataplane/base/units.h"

namespace paceline {

struct PollClock {
  Picos (*read)(const void* of) = nullptr;  // any thread; null: no clock
  const void* of = nullptr;

  explicit operator bool() const { return read != nullptr; }
  Picos now() const { return read(of); }
};

}  // namespace paceline
