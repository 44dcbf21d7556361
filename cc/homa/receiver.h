// Homa's receiver (homa.h): one per port and class. Senders with ungranted demand are ranked by
// their remaining bytes; the first K are active. Each may have max_incoming / (active + 1) granted
// bytes that have not arrived, and all together max_incoming, so that the others fill the link when
// one of them leaves its grant unused. A GRANT is for a packet or more; the last one is for the
// rest.
//
// With priorities, each GRANT names the level of the granted bytes, by rank
// (HomaPriorities::level_of). A sender with bytes in flight cannot rise above their level.
//
// A share of all granted bytes is put aside for the sender that has waited longest. Once enough has
// gathered, that sender gets it as an extra grant, at the highest level that it can use: at a lower
// level it would still wait in the network.
#pragma once

#include <cstdint>
#include <vector>

#include "cc/grants/grant_receiver.h"
#include "cc/homa/homa.h"

namespace paceline::cc {

class HomaReceiver final : public GrantReceiver {
 public:
  explicit HomaReceiver(const HomaParams& params);

  void set_params(const ParamBlock& params) override;

  std::uint32_t active() const { return active_; }  // at the last look

 private:
  struct Ranked {
    std::uint64_t left = 0;  // of its demand
    std::uint32_t peer = 0;
    unsigned level = 0;  // of its present grant, with priorities
  };

  void share(std::int64_t now) override;
  std::int64_t share_at() const override { return next_at_; }
  void rank();
  bool pay(std::int64_t now, const Ranked& to, std::uint64_t most);
  void pay_oldest(std::int64_t now);
  unsigned most_level(std::uint32_t peer);
  void put_level(std::uint32_t peer, unsigned level);
  void put_levels();

  HomaParams params_;
  std::vector<Ranked> ranked_;  // the active ones, fewest left first
  std::uint32_t active_ = 0;
  double aside_bytes_ = 0;  // for the oldest
  std::int64_t next_at_ = 0;
};

}  // namespace paceline::cc
