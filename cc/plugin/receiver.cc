#include "cc/plugin/receiver.h"

#include <algorithm>

#include "cc/param_block.h"
#include "cc/plugin/plugin.h"
#include "cc/plugin/timed.h"
#include "cc/registry.h"

namespace paceline::cc::plugin {
namespace {

constexpr std::uint64_t kSenseless = std::uint64_t{1} << 48;
constexpr std::uint64_t kPlainBdps = 2;  // what the host's own rule keeps in flight

}  // namespace

PluginReceiver::PluginReceiver(const Plugin& plugin, const PluginParams& params)
    : GrantReceiver(rules_of(params).port, rules_of(params).reclaim_ns),
      plugin_(plugin),
      params_(params),
      guard_(params.guard != nullptr ? params.guard : &own_guard_),
      port_state_(plugin.receiver.port_bytes),
      sender_states_(plugin.receiver.sender_bytes) {
  port_state_.begin(0);
  put_fence(reinterpret_cast<std::byte*>(&grants_.back()));
  if (left() || plugin.receiver.start == nullptr) return;
  plugin.receiver.start(port_state_.at(0), params_.derived);
  look_after(0);
}

void PluginReceiver::set_params(const ParamBlock& params) {
  params_ = params.as<PluginParams>();
  take_port(rules_of(params_).port, rules_of(params_).reclaim_ns);
}

void PluginReceiver::opened(std::uint32_t peer) {
  if (views_.size() <= peer) {
    views_.resize(peer + 1);
    senders_.resize(peer + 1);
  }
  sender_states_.begin(peer);
}

void PluginReceiver::quarantine(Offence offence) {
  guard_->quarantine(offence);
  guard_->by_receiver = true;
}

void PluginReceiver::show(std::uint32_t peer, paceline_cc_sender& v) const {
  const Channel& c = channel(peer);
  const ChannelCounters& n = counters(peer);
  v.number = peer;
  v.received_packets = n.rx_packets;
  v.marked_packets = n.ce_packets;
  v.reserved = 0;
  v.received_bytes = n.rx_bytes;
  v.wanted_bytes = wanted(c);
  v.outstanding_bytes = under_way(peer);
  v.wanting_since_ns = c.born_at;
  v.heard_at_ns = c.req_at;
  v.state = sender_states_.at(peer);
}

// Whether all that lies behind the plug-in's memory is as it was: the first of `senders` views.
void PluginReceiver::look_after(std::size_t senders) {
  bool kept = port_state_.intact(0) && has_fence(reinterpret_cast<std::byte*>(&grants_.back()));
  for (std::size_t i = 0; i < senders; ++i) {
    kept = kept && sender_states_.intact(listed()[i]);
  }
  if (!kept) quarantine(Offence::overrun);
}

ChannelCounters* PluginReceiver::on_request(Nanos now, std::uint32_t peer,
                                            const RequestMessage& request) {
  ChannelCounters* const result = GrantReceiver::on_request(now, peer, request);
  if (left() || request.close || !is_listed(peer)) return result;
  // A sender with demand is not bound by a wait that it got while it had none.
  next_at_ = std::min(next_at_, std::max(now.count, round_at_ + packet_ns()));
  if (plugin_.receiver.on_request == nullptr) return result;
  paceline_cc_sender& view = views_.front();
  show(peer, view);
  timed_by(*guard_, [&] {
    plugin_.receiver.on_request(port_state_.at(0), params_.derived, &view, now.count);
  });
  if (!sender_states_.intact(peer)) quarantine(Offence::overrun);
  look_after(0);
  return result;
}

void PluginReceiver::call(std::int64_t now, paceline_cc_round& round) {
  const auto peers = listed();
  for (std::size_t i = 0; i < peers.size(); ++i) {
    show(peers[i], views_[i]);
    senders_[i] = &views_[i];
  }
  const std::uint64_t most = rules_of(params_).outstanding_bytes;
  round.now_ns = now;
  round.state = port_state_.at(0);
  round.derived = params_.derived;
  round.senders = senders_.data();
  round.sender_count = static_cast<std::uint32_t>(peers.size());
  round.outstanding_bytes = used_;
  round.room_bytes = most > used_ ? most - used_ : 0;
  round.grants = grants_.data();
  round.grant_most =
      static_cast<std::uint32_t>(std::min<std::size_t>(room_left(), PACELINE_CC_GRANTS));
  round.next_ns = now + packet_ns();
  timed_by(*guard_, [&] { plugin_.receiver.on_round(&round); });
  look_after(peers.size());
}

void PluginReceiver::pay(std::int64_t now, const paceline_cc_grant& g) {
  if (!is_listed(g.sender) || g.bytes == 0 || g.bytes >= kSenseless) {
    guard_->count_nonsense();
    return;
  }
  const std::uint64_t packet = port().packet_bytes;
  const std::uint64_t want = wanted(channel(g.sender));
  std::uint64_t bytes = g.bytes;
  bool clamped = false;
  if (bytes > want) {
    if (bytes > want + packet) {
      guard_->count_nonsense();
    } else {
      clamped = true;
    }
    bytes = want;
  } else if (bytes < packet && bytes < want) {
    clamped = true;  // no sender can use it
    bytes = std::min(packet, want);
  }
  const std::uint64_t most = rules_of(params_).outstanding_bytes;
  const std::uint64_t free = most > used_ ? most - used_ : 0;
  if (bytes > free) {
    clamped = true;
    bytes = free < packet ? 0 : free;
  }
  if (clamped) guard_->count_clamped();
  if (bytes == 0) return;
  grant(now, g.sender, std::min(with_headers(g.sender, bytes), want));
  used_ += bytes;
  moving_at_ = now;
}

void PluginReceiver::notice_silence(std::int64_t now) {
  if (used_ == 0 && now - moving_at_ > kSilentRtts * port().rtt_ns) quarantine(Offence::starved);
}

void PluginReceiver::share(std::int64_t now) {
  if (left()) {
    share_plainly(now);
    return;
  }
  used_ = under_way();
  // If rounds are this far apart, there was no demand; the plug-in did not delay them.
  if (used_ != 0 || now - round_at_ > 2 * kLongestRtts * port().rtt_ns) moving_at_ = now;
  round_at_ = now;
  paceline_cc_round round{};
  call(now, round);
  if (!left()) {
    if (round.grant_count > round.grant_most) guard_->count_nonsense();
    const std::uint32_t count = std::min(round.grant_count, round.grant_most);
    for (std::uint32_t i = 0; i < count; ++i) pay(now, grants_[i]);
    notice_silence(now);
  }
  if (left()) {
    guard_->by_receiver = true;
    share_plainly(now);
    return;
  }
  if (!room()) {
    next_at_ = now;  // polled again at once, for there may be more to grant
    return;
  }
  const std::int64_t least = now + std::max(kLeastAheadNs, packet_ns());
  if (round.next_ns < least) guard_->count_clamped();
  next_at_ = std::clamp(round.next_ns, least, now + kLongestRtts * port().rtt_ns);
}

// In turns, as long as there is room: this does not delay the sender with the least left for long.
void PluginReceiver::share_plainly(std::int64_t now) {
  const auto peers = listed();
  const std::uint64_t packet = port().packet_bytes;
  const std::uint64_t bucket = std::max(kPlainBdps * port().bdp_bytes, packet);
  const auto hungry = static_cast<std::uint64_t>(std::count_if(
      peers.begin(), peers.end(), [this](std::uint32_t p) { return wanted(channel(p)) > 0; }));
  const std::uint64_t part = std::max(bucket / std::max<std::uint64_t>(hungry, 1), packet);
  std::uint64_t used = under_way();
  const std::uint32_t first = turn_;
  for (std::size_t i = 0; i < peers.size() && used < bucket; ++i) {
    const std::uint32_t peer = peers[(first + i) % peers.size()];
    const std::uint64_t want = wanted(channel(peer));
    const std::uint64_t has = under_way(peer);
    if (want == 0 || has >= part) continue;
    if (!room()) {
      next_at_ = now;
      return;
    }
    const std::uint64_t bytes = std::min(want, std::max(part - has, packet));
    turn_ = channel(peer).position;  // the one behind it
    grant(now, peer, std::min(with_headers(peer, bytes), want));
    used += bytes;
  }
  next_at_ = now + packet_ns();
}

std::string PluginReceiver::check_invariants(Nanos now) const {
  if (std::string broken = GrantReceiver::check_invariants(now); !broken.empty()) return broken;
  const std::int64_t wake = next_wake().count;
  if (next_at_ > now.count + kLongestRtts * port().rtt_ns && wake != kNeverNanos.count) {
    return "the next round is put off until " + std::to_string(next_at_) + " ns";
  }
  return {};
}

std::unique_ptr<DownlinkAllocator> make_receiver(const ParamBlock& block) {
  const Plugin* const plugin = plugin_of(block.id);
  if (plugin == nullptr || plugin->table.receiver == nullptr) return nullptr;
  return std::make_unique<PluginReceiver>(*plugin, block.as<PluginParams>());
}

}  // namespace paceline::cc::plugin
