#include "cc/cadence/receiver/grant_queue.h"

#include <algorithm>

namespace paceline::cc::cadence {
namespace {

// Burst of GRANTs, per channel that may be active, before their long-run spacing holds.
constexpr std::int64_t kGrantBurst = 4;
// Beyond control_share, one part in this many of the port's idle capacity pays for GRANTs: they are
// what gets that capacity used.
constexpr std::int64_t kIdleForGrants = 32;

std::int64_t most_credit(const CadenceParams& p) {
  return kGrantBurst * p.max_active * p.control_ns;
}

// How fast credit grows, in 1/256.
std::int64_t credit_speed(const CadenceParams& p, const PortLoad& load) {
  const std::uint64_t busy = load.committed_mbps + load.unaccounted_mbps;
  const auto idle = static_cast<std::int64_t>(p.link_mbps > busy ? p.link_mbps - busy : 0);
  return 256 +
         256 * p.control_ns * idle / (std::int64_t{kControlWireBytes} * 8000 * kIdleForGrants);
}

}  // namespace

GrantQueue::GrantQueue(const CadenceParams& p) : credit_ns_(most_credit(p)) {}

void GrantQueue::push_grant(Channel& ch, std::uint32_t peer, std::uint32_t delay_us) {
  if (ch.due) return;
  ch.due = true;
  due_.push_back({Due::Kind::grant, peer, delay_us});
}

GrantQueue::Due GrantQueue::pop() {
  const Due due = due_[head_++];
  if (empty()) {
    due_.clear();
    head_ = 0;
  }
  return due;
}

void GrantQueue::forget(std::uint32_t peer) {
  std::erase_if(due_, [peer](const Due& d) { return d.peer == peer; });
  head_ = std::min(head_, due_.size());
}

void GrantQueue::earn(std::int64_t now, const CadenceParams& p, const PortLoad& load) {
  if (now <= credit_at_) return;
  const std::int64_t full = most_credit(p);
  const std::int64_t span = std::min(now - credit_at_, full - std::min(credit_ns_, full));
  credit_ns_ = std::min(credit_ns_ + span * credit_speed(p, load) / 256, full);
  credit_at_ = now;
}

void GrantQueue::spend(std::size_t messages, const CadenceParams& p) {
  credit_ns_ -= static_cast<std::int64_t>(messages) * p.control_ns;
}

std::int64_t GrantQueue::paid_at(const CadenceParams& p, const PortLoad& load) const {
  const std::int64_t speed = credit_speed(p, load);
  return credit_at_ + (-credit_ns_ * 256 + speed - 1) / speed;
}

}  // namespace paceline::cc::cadence
