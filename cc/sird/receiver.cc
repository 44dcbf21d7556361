#include "cc/sird/receiver.h"

#include <algorithm>

#include "cc/param_block.h"

namespace paceline::cc {
namespace {

// The time that a late poll may make up for.
constexpr std::int64_t kCatchUpUnits = 8;

}  // namespace

SirdReceiver::SirdReceiver(const SirdParams& params)
    : GrantReceiver(params.port, params.reclaim_ns), params_(params) {}

void SirdReceiver::set_params(const ParamBlock& params) {
  params_ = params.as<SirdParams>();
  take_port(params_.port, params_.reclaim_ns);
  for (Sender& s : senders_) {
    for (Loop* loop : {&s.host, &s.net}) {
      loop->bytes =
          std::clamp(loop->bytes, params_.least_bucket_bytes, params_.sender_bucket_bytes);
    }
  }
}

void SirdReceiver::opened(std::uint32_t peer) {
  if (peer >= senders_.size()) senders_.resize(peer + 1);
  Sender& s = senders_[peer];
  s = Sender{};
  s.host.bytes = s.net.bytes = params_.sender_bucket_bytes;
  s.looked_at = channel(peer).window_at;
}

bool SirdReceiver::eligible(std::uint32_t peer) const {
  return wanted(channel(peer)) > 0 && under_way(peer) < bucket_of(peer);
}

std::uint32_t SirdReceiver::pick() const {
  const auto peers = listed();
  std::uint32_t best = kNobody;
  if (!params_.smallest_first) {
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const std::uint32_t peer = peers[(turn_ + i) % peers.size()];
      if (eligible(peer)) return peer;
    }
    return kNobody;
  }
  std::uint64_t least = 0;
  for (const std::uint32_t peer : peers) {
    if (!eligible(peer)) continue;
    const Channel& c = channel(peer);
    const std::uint64_t here = arrived(peer);
    const std::uint64_t left = c.final_total > here ? c.final_total - here : 0;
    if (best == kNobody || left < least || (left == least && peer < best)) {
      best = peer;
      least = left;
    }
  }
  return best;
}

void SirdReceiver::share(std::int64_t now) {
  const double bits = params_.credit_rate * params_.port.link_mbps;
  const auto unit_ps =
      static_cast<std::int64_t>(static_cast<double>(params_.unit_bytes) * 8e6 / bits);
  next_ps_ = std::max(next_ps_, now * 1000 - kCatchUpUnits * unit_ps);
  std::uint64_t used = under_way();
  while (next_ps_ <= now * 1000) {
    if (!room()) return;  // polled again at once
    const std::uint32_t peer = used < params_.bucket_bytes ? pick() : kNobody;
    if (peer == kNobody) {
      // Arriving data makes room. Credit that is not granted now is not made up for.
      next_ps_ = std::max(next_ps_, now * 1000 - unit_ps);
      blocked_until_ = now + packet_ns();
      return;
    }
    const std::uint64_t bytes =
        std::min(with_headers(peer, params_.unit_bytes), wanted(channel(peer)));
    turn_ = channel(peer).position;  // the one behind it
    grant(now, peer, bytes);
    used += params_.unit_bytes;
    next_ps_ += static_cast<std::int64_t>(static_cast<double>(bytes) * 8e6 / bits);
  }
  blocked_until_ = std::max(now + 1, (next_ps_ + 999) / 1000);
}

void SirdReceiver::turn(Loop& loop, double marked) const {
  loop.alpha = (1 - params_.gain) * loop.alpha + params_.gain * marked;
  const std::uint32_t packet = params_.port.packet_bytes;
  double bytes = loop.bytes;
  if (marked > 0) bytes *= 1 - loop.alpha / 2;
  bytes += (1 - marked) * packet;
  loop.bytes = static_cast<std::uint32_t>(
      std::clamp<double>(bytes, params_.least_bucket_bytes, params_.sender_bucket_bytes));
}

void SirdReceiver::scanned(std::int64_t /*now*/, std::uint32_t peer) {
  Sender& s = senders_[peer];
  Channel& c = channel(peer);
  const std::uint64_t here = arrived(peer);
  if (here < s.looked_at) s.looked_at = here;  // the REQUEST knew better
  if (c.congested) s.congested_bytes += here - s.looked_at;
  s.looked_at = here;
  const std::uint64_t got = here > c.window_at ? here - c.window_at : 0;
  if (got < bucket_of(peer)) return;
  const ChannelCounters& n = counters(peer);
  const std::uint32_t packets = n.rx_packets - c.window_packets;
  const std::uint32_t marks = n.ce_packets - c.window_ce;
  turn(s.host, std::min(1.0, static_cast<double>(s.congested_bytes) / static_cast<double>(got)));
  if (packets > 0) turn(s.net, static_cast<double>(marks) / packets);
  s.congested_bytes = 0;
  c.window_at = here;
  c.window_packets = n.rx_packets;
  c.window_ce = n.ce_packets;
}

std::string SirdReceiver::check_invariants(Nanos now) const {
  if (std::string broken = GrantReceiver::check_invariants(now); !broken.empty()) return broken;
  for (const std::uint32_t peer : listed()) {
    for (const Loop* loop : {&senders_[peer].host, &senders_[peer].net}) {
      if (loop->bytes < params_.least_bucket_bytes || loop->bytes > params_.sender_bucket_bytes) {
        return "sender " + std::to_string(peer) + ": bucket of " + std::to_string(loop->bytes) +
               " bytes out of its bounds";
      }
    }
  }
  return {};
}

}  // namespace paceline::cc
