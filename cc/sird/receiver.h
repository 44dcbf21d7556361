// SIRD's receiver (sird.h): one per port and class. It grants credit at a little less than line
// rate, to the senders in turns (or to the one with the least remaining demand first), as long as
// the bucket B and the sender's SB have room. A bucket has room while it is not full: the last
// GRANT may exceed it by less than its own size.
//
// Each sender's SB is the smaller of two, moved once per window (SB bytes arrived, a round trip at
// least) by the share of it that was marked: by the sender's csn, and by CE marks. alpha <- (1-g)
// alpha + g F; any mark: SB <- SB (1 - alpha/2); otherwise SB grows by a packet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cc/grants/grant_receiver.h"
#include "cc/sird/sird.h"

namespace paceline::cc {

class SirdReceiver final : public GrantReceiver {
 public:
  explicit SirdReceiver(const SirdParams& params);

  void set_params(const ParamBlock& params) override;
  std::string check_invariants(Nanos now) const override;

  std::uint32_t bucket_of(std::uint32_t peer) const {
    return std::min(senders_[peer].host.bytes, senders_[peer].net.bytes);
  }

 private:
  // One of the two loops of a sender.
  struct Loop {
    std::uint32_t bytes = 0;
    double alpha = 0;
  };
  struct Sender {
    Loop host;                          // SBsender
    Loop net;                           // SBnet
    std::uint64_t congested_bytes = 0;  // of this window, arrived while csn was set
    std::uint64_t looked_at = 0;        // bytes that had arrived at the last scan
  };

  void share(std::int64_t now) override;
  std::int64_t share_at() const override { return blocked_until_; }
  void opened(std::uint32_t peer) override;
  void scanned(std::int64_t now, std::uint32_t peer) override;
  std::uint32_t pick() const;
  bool eligible(std::uint32_t peer) const;
  void turn(Loop& loop, double marked) const;

  static constexpr std::uint32_t kNobody = 0xFFFF'FFFF;

  SirdParams params_;
  std::vector<Sender> senders_;     // by peer
  std::uint32_t turn_ = 0;          // place in the list after the sender granted last
  std::int64_t next_ps_ = 0;        // when the next GRANT may go
  std::int64_t blocked_until_ = 0;  // ns; no look before that
};

}  // namespace paceline::cc
