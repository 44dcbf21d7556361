// A bound on the rate of what a requester sends, set by its owner. After a rest, as much as fits
// into the burst may go at once.
#pragma once

#include <cstdint>

#include "dataplane/base/units.h"

namespace paceline::transport {

class RateLimit {
 public:
  RateLimit() = default;
  // rate: not 0. burst: as time at the rate; all of it may go at first.
  RateLimit(Rate rate, Picos burst, Picos now) : rate_(rate), burst_(burst), next_(now - burst) {}

  // So many bytes on the wire go out. Returns when the next may.
  Picos charge(std::uint32_t bytes, Picos now) {
    next_ = later(next_, now - burst_) + serialization_time(bytes, rate_);
    return next_;
  }

 private:
  Rate rate_{};
  Picos burst_{0};
  Picos next_{0};  // when all that was sent would have been sent at the rate
};

}  // namespace paceline::transport
