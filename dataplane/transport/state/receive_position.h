// The position of a responder in the sequence of requests.
#pragma once

#include <cstdint>
#include <utility>

#include "dataplane/base/protocol/psn.h"

namespace paceline::transport {

// Message sequence numbers have 24 bits (vol. 1, 9.7.7.1).
constexpr std::uint32_t next_msn(std::uint32_t msn) { return (msn + 1) & 0xFF'FFFF; }

class ReceivePosition {
 public:
  Psn expected() const { return expected_; }
  std::uint32_t msn() const { return msn_; }  // messages completed, modulo 2^24

  // `psn` is the next packet, whatever came before.
  void start(Psn psn) {
    expected_ = psn;
    gap_told_ = false;
  }
  // The expected packet was accepted; a READ request takes `count` numbers, one for each response.
  void accept(std::uint32_t count = 1) { start(expected_ + count); }
  void complete_message() { msn_ = next_msn(msn_); }
  // A packet has come, but not the expected one. True: tell the peer, which is done once per gap.
  bool tell_gap() { return !std::exchange(gap_told_, true); }
  // The expected packet was put off (RNR): packets behind it are not a gap.
  void put_off() { gap_told_ = true; }

 private:
  Psn expected_;
  std::uint32_t msn_ = 0;
  bool gap_told_ = false;
};

}  // namespace paceline::transport
