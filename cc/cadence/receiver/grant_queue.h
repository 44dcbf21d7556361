// GRANTs and PATHs to be sent, in order, and the budget for them: a token bucket in time, which
// earns one message per t_control, and more while the port has idle capacity. The queue accepts
// everything; paid_at() tells when the bucket is no longer overdrawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cc/cadence/params.h"
#include "cc/cadence/receiver/channel_table.h"
#include "cc/cadence/receiver/virtual_queue.h"

namespace paceline::cc::cadence {

class GrantQueue {
 public:
  struct Due {
    enum class Kind : std::uint8_t { grant, revoke, alpha, quick } kind = Kind::grant;
    std::uint32_t peer = 0;
    std::uint32_t value = 0;  // grant: effective delay in us; alpha in 1/65536; quick in Mb/s
  };

  explicit GrantQueue(const CadenceParams& p);
  void reserve(std::size_t channels) { due_.reserve(channels); }

  // At most one GRANT per channel is queued; its content is filled in when it leaves.
  void push_grant(Channel& ch, std::uint32_t peer, std::uint32_t delay_us = 0);
  void push(const Due& due) { due_.push_back(due); }
  bool empty() const { return head_ == due_.size(); }
  Due pop();  // of a queue that is not empty
  void forget(std::uint32_t peer);

  // Must be called before the load changes, because the load sets the speed at which credit grows.
  void earn(std::int64_t now, const CadenceParams& p, const PortLoad& load);
  void spend(std::size_t messages, const CadenceParams& p);
  bool overdrawn() const { return credit_ns_ < 0; }
  // When credit is no longer negative. Only for an overdrawn queue.
  std::int64_t paid_at(const CadenceParams& p, const PortLoad& load) const;

 private:
  std::vector<Due> due_;
  std::size_t head_ = 0;
  std::int64_t credit_ns_ = 0;  // may be negative
  std::int64_t credit_at_ = 0;
};

}  // namespace paceline::cc::cadence
