// A call of a plug-in's under its guard's clock, if that has one.
#pragma once

#include <cstdint>

#include "cc/plugin/guard.h"

namespace paceline::cc::plugin {

template <class Call>
void timed_by(Guard& guard, Call&& call) {
  const Clock& clock = guard.clock;
  if (clock.read == nullptr) {
    call();
    return;
  }
  const std::uint64_t begin = clock.read(clock.context);
  call();
  guard.count_time(clock.read(clock.context) - begin);
}

}  // namespace paceline::cc::plugin
