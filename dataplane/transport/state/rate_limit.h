// A limit on the rate at which a requester sends, set by its owner. After a pause, as much as fits
// into the burst may go at once.
#pragma once

#include <cstdint>

#include "dataplane/base/units.h"

namespace paceline::transport {

class RateLimit {
 public:
  RateLimit() = default;
  // rate: not 0. burst: as time at the rate; all of it may be used at the start.
  RateLimit(Rate rate, Picos burst, Picos now) : rate_(rate), burst_(burst), next_(now - burst) {}

  // So many wire bytes are sent. Returns when the next packet may go.
  Picos charge(std::uint32_t bytes, Picos now) {
    next_ = later(next_, now - burst_) + serialization_time(bytes, rate_);
    return next_;
  }

 private:
  Rate rate_{};
  Picos burst_{0};
  Picos next_{0};  // when everything sent would have left at the rate
};

}  // namespace paceline::transport
