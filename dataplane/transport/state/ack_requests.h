// When a requester last asked for an acknowledgement, and how many packets ago.
#pragma once

#include <cstdint>

#include "dataplane/base/units.h"

namespace paceline::transport {

class AckRequests {
 public:
  // A packet that asks is sent.
  void asked(Picos now) {
    packets_ = 0;
    asked_at_ = now;
  }
  // Another packet is sent. True: it is one of `every`, and must ask.
  bool due(std::uint32_t every) { return ++packets_ >= every; }
  // The next packet asks, if every `every`-th does.
  void ask_next(std::uint32_t every) { packets_ = every; }
  Picos asked_at() const { return asked_at_; }

 private:
  Picos asked_at_{0};
  std::uint32_t packets_ = 0;
};

}  // namespace paceline::transport
