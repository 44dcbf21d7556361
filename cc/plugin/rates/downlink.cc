#include "cc/plugin/rates/downlink.h"

#include <algorithm>

#include "cc/grants/channel_units.h"
#include "cc/param_block.h"
#include "cc/plugin/plugin.h"
#include "cc/plugin/rates/context.h"
#include "cc/plugin/timed.h"
#include "cc/registry.h"

namespace paceline::cc::plugin {
namespace {

// A REQUEST that looks old after this long is not late: the sender's numbering has restarted.
constexpr std::int64_t kNumbersRtts = 16;

constexpr std::uint32_t kPlainLeaseUs = 1000;
constexpr std::int64_t kPlainRefreshNs = 500'000;
constexpr std::int64_t kPlainGrantNs = 100;         // of a round, for each grant that it sends
constexpr std::int64_t kPlainSilentNs = 4'000'000;  // a sender that is silent for this long is gone

constexpr std::uint16_t number_after(std::uint16_t number) {
  return number == 0xFFFF ? std::uint16_t{1} : static_cast<std::uint16_t>(number + 1);
}

std::uint32_t port_mbps(const PluginParams& p) {
  return static_cast<std::uint32_t>(p.link_bps / 1'000'000);
}

}  // namespace

PluginDownlink::PluginDownlink(const paceline_cc_rates& rates, const PluginParams& params)
    : rates_(rates),
      params_(params),
      guard_(params.guard != nullptr ? params.guard : &own_guard_),
      port_(rates.port_bytes),
      states_(rates.sender_bytes) {
  port_.begin(0);
}

void PluginDownlink::set_params(const ParamBlock& params) {
  params_ = params.as<PluginParams>();
  if (listed_.size() != 0) next_at_ = 0;
}

void PluginDownlink::quarantine(Offence offence) {
  guard_->quarantine(offence);
  guard_->by_receiver = true;
}

// --- channels ---

void PluginDownlink::grow(std::uint32_t peer) {
  listed_.grow(peer);
  while (senders_.size() <= peer) {
    const auto number = static_cast<std::uint32_t>(senders_.size());
    states_.begin(number);
    senders_.emplace_back();
  }
}

void PluginDownlink::list(std::uint32_t peer, bool in) {
  listed_.put(peer, in);
  senders_[peer].view.listed = in ? 1 : 0;
}

void PluginDownlink::push(std::uint32_t peer) {
  Sender& s = senders_[peer];
  if (s.due) return;
  s.due = true;
  due_.push_back(peer);
}

void PluginDownlink::open(std::uint32_t peer, const RequestMessage& r) {
  Sender& s = senders_[peer];
  if (listed_.has(peer)) ++gone_;
  states_.begin(peer);
  s.view.fresh = 1;
  s.known = true;
  s.channel = r.channel;
  s.asked_at = kNeverNanos.count;
  s.lease_us = 0;
  s.number = r.grant_echo;
  s.sent_known = r.sent_total;
  s.rx_base = r.sent_total - s.counters.rx_bytes;
  s.packets_base = s.counters.rx_packets;
  s.marks_base = s.counters.ce_packets;
  s.request = {};
}

void PluginDownlink::read(Sender& s, const RequestMessage& r) {
  const std::uint64_t sent = extend_total(s.sent_known, r.sent_total);
  // REQUESTs overtake data, so no more has arrived than was sent: an excess was charged to another
  // algorithm, which had the connection before.
  const std::uint64_t arrived = s.rx_base + s.counters.rx_bytes;
  if (arrived > sent) s.rx_base -= arrived - sent;
  s.request.sent_total = sent;
  s.request.start_total = std::max(sent, extend_total(sent, r.unscheduled_total));
  s.request.demand_bytes = r.demand_bytes;
  s.request.cap_mbps = r.tx_cap_mbps;
  s.request.stamp_ns = r.timestamp_ns;
  s.request.grant_echo = r.grant_echo;
  s.request.degree = r.hint ? r.hint_degree : std::uint16_t{0};
  s.sent_known = std::max(s.sent_known, s.request.start_total);
}

ChannelCounters* PluginDownlink::on_request(Nanos now_ns, std::uint32_t peer,
                                            const RequestMessage& r) {
  const std::int64_t now = now_ns.count;
  if (peer >= senders_.size()) grow(peer);
  Sender& s = senders_[peer];
  const bool fresh = !s.known || s.channel != r.channel;
  const bool old = !fresh && seq_distance(r.req_seq, s.req_seq) <= 0;
  if (old && now - s.req_at < kNumbersRtts * params_.rtt_ns) return &s.counters;
  if (r.close) {
    if (fresh || old) return &s.counters;
    if (listed_.has(peer)) ++gone_;
    list(peer, false);
    s.known = false;
    return &s.counters;
  }
  if (fresh || old) open(peer, r);
  const std::int64_t heard_before = s.req_at;
  s.req_seq = r.req_seq;
  s.req_at = now;
  read(s, r);
  ask_and_watch(now, s, heard_before);
  list(peer, true);
  if (!left()) call_request(now, peer);
  if (left()) {
    list(peer, r.demand_bytes != 0);
    push(peer);
    plain_at_ =
        std::min(plain_at_,
                 std::max(now, plain_last_ + std::max<std::int64_t>(
                                                 params_.rtt_ns, kPlainGrantNs * listed_.size())));
  }
  return &s.counters;
}

void PluginDownlink::forget(Nanos, std::uint32_t peer) {
  if (peer >= senders_.size()) return;
  Sender& s = senders_[peer];
  if (listed_.has(peer)) ++gone_;
  list(peer, false);
  s.known = false;
  s.number = 0;
  s.counters = {};
}

// --- silence ---

std::int64_t PluginDownlink::silence_of(const Sender& s) const {
  return kSilentRtts * params_.rtt_ns + 2000 * std::int64_t{s.lease_us};
}

// A sender that keeps asking must be answered.
void PluginDownlink::ask_and_watch(std::int64_t now, Sender& s, std::int64_t heard_before) {
  if (s.request.demand_bytes == 0) {
    s.asked_at = kNeverNanos.count;
    return;
  }
  const bool waits = s.asked_at != kNeverNanos.count && now - heard_before <= silence_of(s);
  if (!waits) {
    s.asked_at = now;
  } else if (now - s.asked_at > silence_of(s) && !left()) {
    quarantine(Offence::starved);
  }
  watch_at_ = std::min(watch_at_, s.asked_at + silence_of(s) + 1);
}

void PluginDownlink::look_for_silence(std::int64_t now) {
  watch_at_ = kNeverNanos.count;
  listed_.each([&](std::uint32_t peer) {
    const Sender& s = senders_[peer];
    if (s.asked_at == kNeverNanos.count) return;
    if (now - s.asked_at > silence_of(s)) quarantine(Offence::starved);
    watch_at_ = std::min(watch_at_, s.asked_at + silence_of(s) + 1);
  });
}

// --- calls ---

std::int64_t PluginDownlink::heard_at(std::int64_t now, Sender& s) {
  if (s.seen_rx != s.counters.rx_bytes) s.moved_at = now;
  s.seen_rx = s.counters.rx_bytes;
  return std::max(s.req_at, s.moved_at);
}

void PluginDownlink::show(std::int64_t now, std::uint32_t peer) {
  Sender& s = senders_[peer];
  s.view.number = peer;
  s.view.request = &s.request;
  s.view.state = states_.at(peer);
  s.view.received_packets = s.counters.rx_packets - s.packets_base;
  s.view.marked_packets = s.counters.ce_packets - s.marks_base;
  s.view.received_total = s.rx_base + s.counters.rx_bytes;
  s.view.heard_at_ns = heard_at(now, s);
  s.view.tell = 0;
}

paceline_cc_downlink PluginDownlink::port_at(std::int64_t now) {
  paceline_cc_downlink port{};
  port.now_ns = now;
  port.state = port_.at(0);
  port.derived = params_.derived;
  port.next_ns = next_at_;
  return port;
}

// Applies the findings and the answer of a call.
void PluginDownlink::set_next(std::int64_t now, std::int64_t before, std::int64_t said) {
  if (said >= before) return;
  if (said < now + kLeastAheadNs) guard_->count_clamped();
  next_at_ = std::min(before, std::max(said, now + kLeastAheadNs));
}

void PluginDownlink::call_request(std::int64_t now, std::uint32_t peer) {
  Sender& s = senders_[peer];
  show(now, peer);
  paceline_cc_downlink port = port_at(now);
  timed_by(*guard_, [&] { rates_.on_request(&port, &s.view); });
  s.view.fresh = 0;
  if (!port_.intact(0) || !states_.intact(peer)) quarantine(Offence::overrun);
  set_next(now, next_at_, port.next_ns);
  list(peer, s.view.listed != 0);
  if (s.view.tell != 0) push(peer);
}

void PluginDownlink::call_round(std::int64_t now) {
  shown_.clear();
  listed_.each([this, now](std::uint32_t peer) {
    show(now, peer);
    shown_.push_back(&senders_[peer].view);
  });
  next_at_ = kNeverNanos.count;
  paceline_cc_downlink port = port_at(now);
  port.channels = shown_.data();
  port.channel_count = static_cast<std::uint32_t>(shown_.size());
  port.gone = gone_;
  gone_ = 0;
  timed_by(*guard_, [&] { rates_.on_downlink(&port); });
  bool kept = port_.intact(0);
  listed_.each([&](std::uint32_t peer) { kept = kept && states_.intact(peer); });
  if (!kept) quarantine(Offence::overrun);
  set_next(now, kNeverNanos.count, port.next_ns);
  listed_.each([this](std::uint32_t peer) {
    const paceline_cc_channel& view = senders_[peer].view;
    if (view.tell != 0) push(peer);
    list(peer, view.listed != 0);
  });
}

void PluginDownlink::mend(const Sender& s, paceline_cc_rate_grant& g) {
  const std::uint32_t link = port_mbps(params_);
  bool nonsense = g.number == 0 || g.hold > 1 || g.revoke > 1;
  bool clamped = false;
  if (g.number == 0) g.number = number_after(s.number);
  if (g.hold != 0 && g.rate_mbps != 0) {
    nonsense = true;
    g.rate_mbps = 0;
  }
  if (g.rate_mbps > link) {
    (g.rate_mbps / kSenseFactor > link ? nonsense : clamped) = true;
    g.rate_mbps = link;
  }
  if (g.rate_mbps != 0 && g.lease_us == 0) {
    nonsense = true;
    g.lease_us = kPlainLeaseUs;
  }
  for (std::uint32_t* const time : {&g.lease_us, &g.delay_us}) {
    if (*time <= kMostLeaseUs) continue;
    nonsense = true;
    *time = kMostLeaseUs;
  }
  if (g.limit_total > s.sent_known + kMostAheadBytes) {
    nonsense = true;
    g.limit_total = s.sent_known + kMostAheadBytes;
  }
  if (nonsense) {
    guard_->count_nonsense();
    guard_->by_receiver = guard_->by_receiver || left();
  } else if (clamped) {
    guard_->count_clamped();
  }
}

paceline_cc_rate_grant PluginDownlink::call_grant(std::int64_t now, std::uint32_t peer) {
  Sender& s = senders_[peer];
  show(now, peer);
  paceline_cc_downlink port = port_at(now);
  paceline_cc_rate_grant grant{};
  grant.stamp_ns = s.request.stamp_ns;
  timed_by(*guard_, [&] { rates_.fill_grant(&port, &s.view, &grant); });
  if (!port_.intact(0) || !states_.intact(peer)) quarantine(Offence::overrun);
  set_next(now, next_at_, port.next_ns);
  mend(s, grant);
  if (grant.rate_mbps != 0 || grant.hold != 0 || grant.revoke != 0) {
    s.asked_at = kNeverNanos.count;
  }
  return grant;
}

// --- the host's own rule ---

void PluginDownlink::share_plainly(std::int64_t now) {
  if (now < plain_at_) return;
  if (!plain_) {  // those that the plug-in left out, too
    plain_ = true;
    for (std::uint32_t peer = 0; peer < senders_.size(); ++peer) list(peer, senders_[peer].known);
  }
  std::uint32_t hungry = 0;
  listed_.each([&](std::uint32_t peer) {
    Sender& s = senders_[peer];
    const std::int64_t silent = now - heard_at(now, s);
    const bool wants = s.request.demand_bytes != 0 && silent < kPlainSilentNs;
    list(peer, wants);
    hungry += wants ? 1 : 0;
  });
  plain_last_ = now;
  plain_at_ = kNeverNanos.count;
  if (hungry == 0) return;
  plain_at_ = now + kPlainRefreshNs;
  plain_mbps_ = std::max(port_mbps(params_) / 10 * 9 / hungry, 1U);
  listed_.each([this](std::uint32_t peer) { push(peer); });
}

paceline_cc_rate_grant PluginDownlink::plain_grant(const Sender& s) const {
  paceline_cc_rate_grant grant{};
  const bool wants = s.view.listed != 0 && s.request.demand_bytes != 0;
  const std::int64_t span = std::int64_t{kPlainLeaseUs} * 1000 + 2 * std::int64_t{params_.rtt_ns};
  grant.rate_mbps = wants ? plain_mbps_ : 0;
  grant.limit_total = std::max(s.sent_known, s.rx_base + s.counters.rx_bytes);
  if (wants) grant.limit_total += bytes_at(plain_mbps_, span) + 2 * params_.packet_bytes;
  grant.lease_us = kPlainLeaseUs;
  grant.number = number_after(s.number);
  return grant;
}

// --- polls ---

void PluginDownlink::write(std::int64_t now, std::uint32_t peer, ReceiverOutput& out) {
  Sender& s = senders_[peer];
  paceline_cc_rate_grant g = left() ? plain_grant(s) : call_grant(now, peer);
  if (left()) g = plain_grant(s);
  s.number = g.number;
  s.lease_us = g.lease_us;
  out.peer = peer;
  out.grant = GrantMessage{};
  out.grant.hold = g.hold != 0;
  out.grant.revoke = g.revoke != 0;
  out.grant.channel = s.channel;
  out.grant.grant_seq = g.number;
  out.grant.rate_mbps = g.rate_mbps;
  out.grant.limit_total = g.limit_total & kTotalMask;
  out.grant.lease_us = g.lease_us;
  out.grant.effective_delay_us = g.delay_us;
  out.grant.active_senders = static_cast<std::uint16_t>(std::min(listed_.size(), 0xFFFFU));
  out.grant.timestamp_echo_ns = s.request.stamp_ns;
  out.grant.receiver_hold_ns =
      static_cast<std::uint32_t>(std::min<std::int64_t>(now - s.req_at, 0xFFFF'FFFF));
}

std::size_t PluginDownlink::poll(Nanos now_ns, std::span<ReceiverOutput> out) {
  const std::int64_t now = now_ns.count;
  if (!left() && now >= watch_at_) look_for_silence(now);
  if (!left() && (now >= next_at_ || gone_ != 0)) call_round(now);
  if (left()) share_plainly(now);
  std::size_t n = 0;
  while (n < out.size() && due_head_ < due_.size()) {
    const std::uint32_t peer = due_[due_head_++];
    Sender& s = senders_[peer];
    s.due = false;
    if (s.known) write(now, peer, out[n++]);
  }
  if (due_head_ == due_.size()) {
    due_.clear();
    due_head_ = 0;
  }
  return n;
}

Nanos PluginDownlink::next_wake() const {
  if (due_head_ < due_.size()) return Nanos{0};
  if (left()) return Nanos{plain_at_};
  if (gone_ != 0) return Nanos{0};
  return Nanos{std::min(next_at_, watch_at_)};
}

std::string PluginDownlink::check_invariants(Nanos) const {
  std::uint32_t listed = 0;
  for (std::uint32_t peer = 0; peer < senders_.size(); ++peer) {
    const Sender& s = senders_[peer];
    listed += listed_.has(peer) ? 1 : 0;
    if (listed_.has(peer) != (s.view.listed != 0) || (listed_.has(peer) && !s.known)) {
      return "plug-in downlink: sender " + std::to_string(peer) + " is listed wrongly";
    }
    if (s.known && s.rx_base + s.counters.rx_bytes > s.sent_known + kMostAheadBytes) {
      return "plug-in downlink: more arrived of sender " + std::to_string(peer) + " than it sent";
    }
  }
  if (listed != listed_.size()) return "plug-in downlink: counts differ";
  return {};
}

std::unique_ptr<DownlinkAllocator> make_downlink(const ParamBlock& block) {
  const Plugin* const plugin = plugin_of(block.id);
  if (plugin == nullptr || plugin->table.rates == nullptr) return nullptr;
  return std::make_unique<PluginDownlink>(plugin->rates, block.as<PluginParams>());
}

}  // namespace paceline::cc::plugin
