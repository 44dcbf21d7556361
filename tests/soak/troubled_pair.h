// A connection that is in trouble all the time: requests that are refused, receives that are
// missing, too short or late, SQD, errors, windows bound again while they are used; and its queue
// pairs are reset, or destroyed and made again, under traffic. Of each life every request completes
// once, in order, and nothing is written where nobody may write.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>

#include "tests/soak/stage.h"

namespace paceline::soak {

class TroubledPair {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{1} << 16;  // of both memories

  // `base`: offset of its bytes.
  TroubledPair(Stage& stage, std::uint64_t base, std::uint16_t source_port, Random random);

  std::uint32_t qp(unsigned side) const { return qp_[side]; }
  // The stream that `side` sends.
  std::unique_ptr<Stream> stream(unsigned side);

 private:
  class Direction;
  static constexpr std::uint64_t kHalf = kBytes / 2;  // from here on only the owner may write
  static constexpr std::uint64_t kWindow = 8192;
  static constexpr std::uint64_t kReceive = 1024;

  Host& host(unsigned side) { return *stage_.hosts[side]; }
  transport::QpState state(unsigned side) { return host(side).engine.view().state_of(qp_[side]); }
  bool change(unsigned side, transport::QpState to);
  void make(unsigned side);
  void join();
  void renew();
  void bind(unsigned side);
  void step();

  Stage& stage_;
  std::uint64_t base_;
  std::uint16_t source_port_;
  Random random_;
  std::uint64_t life_ = 0;  // of the two queue pairs together
  std::array<std::uint32_t, 2> qp_{};
  std::array<std::unique_ptr<transport::ReceiveQueue>, 2> receives_;
  // Keys to the memory of each side: the first half, for windows to bind to; the second half, to be
  // read; and the window's newest key and the one before it.
  std::array<std::uint32_t, 2> bindable_{};
  std::array<std::uint32_t, 2> readable_{};
  std::array<std::uint32_t, 2> window_{};
  std::array<std::uint32_t, 2> stale_{};
};

}  // namespace paceline::soak
