// The position of a requester in the sequence of its packets.
#pragma once

#include <cstdint>

#include "dataplane/base/protocol/psn.h"

namespace paceline::transport {

class SendPosition {
 public:
  Psn next() const { return next_; }      // the next packet to go out
  Psn oldest() const { return oldest_; }  // the oldest unacknowledged
  Psn end() const { return end_; }        // one past the highest ever sent
  // The place in the send queue of the request that next() belongs to, and the packet's index in
  // it.
  std::uint32_t request() const { return request_; }
  std::uint32_t packet() const { return packet_; }

  // Nothing is in flight. `psn` is sent next: the first packet of the request at `request`.
  void start(Psn psn, std::uint32_t request) {
    next_ = oldest_ = end_ = psn;
    request_ = request;
    packet_ = 0;
  }
  // The packet next() was sent; `last`: it ends its request. True: for the first time.
  bool sent(bool last) {
    const bool first_time = next_ == end_;
    if (first_time) ++end_;
    ++next_;
    if (last) {
      ++request_;
      packet_ = 0;
    } else {
      ++packet_;
    }
    return first_time;
  }
  // One packet that asks for `count` responses was sent; it takes as many numbers. `last`: now the
  // whole request has been asked for. True: some of the numbers are used for the first time.
  bool asked(std::uint32_t count, bool last) {
    next_ = next_ + count;
    packet_ += count;
    if (last) {
      ++request_;
      packet_ = 0;
    }
    if (!before(end_, next_)) return false;
    end_ = next_;
    return true;
  }
  // Everything before `psn` is acknowledged; it lies in (oldest(), next()].
  void acknowledge(Psn psn) { oldest_ = psn; }
  // The next packet is `psn`, packet `packet` of the request at `request`.
  void move(Psn psn, std::uint32_t request, std::uint32_t packet) {
    next_ = psn;
    request_ = request;
    packet_ = packet;
  }

 private:
  Psn next_;
  Psn oldest_;
  Psn end_;
  std::uint32_t request_ = 0;
  std::uint32_t packet_ = 0;
};

}  // namespace paceline::transport
