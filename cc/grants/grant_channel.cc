#include "cc/grants/grant_channel.h"

#include <algorithm>
#include <cassert>

namespace paceline::cc {
namespace {

// GRANTs cannot be older than this; timestamps wrap after 4.29 s.
constexpr std::int64_t kGrantStampValidNs = 1'000'000'000;
// A channel that the fallback serves begins at this part of the link.
constexpr std::uint32_t kFallbackPart = 128;

std::uint32_t grant_stamp(std::int64_t now) { return static_cast<std::uint32_t>(now); }

std::int32_t number_distance(std::uint16_t a, std::uint16_t b) {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(a - b));
}

std::uint64_t wire_of(const GrantPort& p, std::uint64_t payload, std::uint64_t packets) {
  return payload + packets * p.overhead_bytes;
}

}  // namespace

GrantPort make_grant_port(const PortFacts& facts, double probe_limit, double probe_max_us) {
  assert(facts.link_rate.bps >= 1'000'000 && facts.mtu_bytes > 0);
  GrantPort p;
  p.link_mbps = static_cast<std::uint32_t>(facts.link_rate.bps / 1'000'000);
  p.mtu_bytes = facts.mtu_bytes;
  p.packet_bytes =
      facts.full_packet_bytes > facts.mtu_bytes ? facts.full_packet_bytes : facts.mtu_bytes + 82;
  p.overhead_bytes = p.packet_bytes - p.mtu_bytes;
  p.rtt_ns = facts.base_rtt_ns != 0 ? facts.base_rtt_ns : 10'000;
  const std::uint64_t fills = std::uint64_t{p.link_mbps} * static_cast<std::uint64_t>(p.rtt_ns);
  p.bdp_bytes = static_cast<std::uint32_t>(std::max<std::uint64_t>(fills / 8000, p.packet_bytes));
  p.probe_limit = static_cast<std::uint32_t>(probe_limit);
  p.request_max_ns = static_cast<std::uint32_t>(
      std::max<std::int64_t>(static_cast<std::int64_t>(probe_max_us * 1000), 2 * p.rtt_ns));
  return p;
}

// Bytes that a message may send before any grant.
std::uint64_t GrantChannel::start_wish(const GrantPort& p, std::uint64_t payload) const {
  if (taken_over) return 0;
  const std::uint64_t packets = (payload + p.mtu_bytes - 1) / p.mtu_bytes;
  const std::uint64_t wire = wire_of(p, payload, packets) + kGrantMessageExtra;
  return wire > p.prompt_bytes ? 0 : std::min<std::uint64_t>(wire, p.prefix_bytes);
}

// Wire bytes of the backlog. Its messages are assumed to be as long as those posted lately; each
// may end in a packet that is not full.
void GrantChannel::count_backlog(const GrantPort& p, const Event& e) {
  std::uint64_t packets = (e.backlog_bytes + p.mtu_bytes - 1) / p.mtu_bytes;
  std::uint64_t each = messages == 0 ? e.backlog_bytes : message_bytes / messages;
  each = std::max<std::uint64_t>(each, 1);
  const std::uint64_t count = e.backlog_bytes == 0 ? 0 : (e.backlog_bytes + each - 1) / each;
  packets = each < p.mtu_bytes ? std::max(packets, count) : packets + (count > 0 ? count - 1 : 0);
  backlog_wire = wire_of(p, e.backlog_bytes, packets) + count * kGrantMessageExtra;
}

void GrantChannel::begin(const GrantPort& p, const Event& e) {
  ceiling = start_end = told_final = e.sent_total;
  requested_at = e.now.count - p.rtt_ns;
  probe_ns = static_cast<std::uint32_t>(2 * p.rtt_ns);
  rate_mbps = p.link_mbps;
  taken_over = e.handover != nullptr && e.handover->rate.bps > 0;
  phase = Phase::idle;
}

void GrantChannel::drop(std::int64_t now) {
  ceiling = start_end = sent_total;
  dropped_at = now;
  ++round;
  rate_mbps = 0;
}

void GrantChannel::leave(std::int64_t now) {
  drop(now);
  phase = Phase::idle;
  backlog_wire = 0;
}

void GrantChannel::open(const GrantPort& p, std::int64_t now, std::uint64_t start, Decision& d) {
  phase = Phase::open;
  ceiling = std::max(ceiling, sent_total) + start;
  start_end = sent_total + start;
  unscheduled_total += start;
  probes = 0;
  probe_ns = static_cast<std::uint32_t>(2 * p.rtt_ns);
  raised_at = now;
  request_at = now + probe_ns;
  d.request = true;
}

void GrantChannel::on_message(const GrantPort& p, std::int64_t now, std::uint64_t bytes,
                              Decision& d) {
  if (!has_backlog()) return;
  if (phase == Phase::idle) {
    open(p, now, start_wish(p, bytes), d);
    return;
  }
  if (phase == Phase::fallback) {
    ask_by(now);
    return;
  }
  const std::uint64_t wish = start_wish(p, bytes);
  if (wish > 0 && unused() + wish <= p.prefix_bytes) {
    // On top of the grant; the receiver adds the same when it is told.
    ceiling = std::max(ceiling, sent_total) + wish;
    start_end = ceiling;
    unscheduled_total += wish;
    ask_by(std::max(now, requested_at + p.rtt_ns / 4));
  }
  const std::uint64_t told = told_final > sent_total ? told_final - sent_total : 0;
  const std::int64_t patience = told < p.bdp_bytes ? p.rtt_ns / 4 : p.rtt_ns;
  ask_by(std::max(now, requested_at + patience));
}

void GrantChannel::on_idle(const GrantPort& p, std::int64_t now, Decision& d) {
  messages = 0;
  message_bytes = 0;
  taken_over = false;
  if (phase != Phase::open) return;
  // No unused grant worth a message is left, and no more will come.
  const bool even = unused() < p.packet_bytes && told_final <= ceiling;
  drop(now);
  phase = Phase::idle;
  d.request = !even;
}

// Lost bytes are backlog again. They count as used, as do all bytes in flight.
void GrantChannel::on_loss(const GrantPort& p, std::int64_t now, Decision& d) {
  if (phase == Phase::fallback || !has_backlog()) return;
  if (phase == Phase::open && now - requested_at < p.rtt_ns) {
    ask_by(requested_at + p.rtt_ns);
    lost = true;
    return;
  }
  lost = true;
  drop(now);
  open(p, now, 0, d);
}

void GrantChannel::on_grant(const GrantPort& p, const Event& e, Decision& d) {
  const GrantMessage& g = *e.grant;
  const std::int64_t now = e.now.count;
  const bool voided = dropped_at != 0 && now - dropped_at < kGrantStampValidNs &&
                      static_cast<std::int32_t>(g.timestamp_echo_ns - grant_stamp(dropped_at)) < 0;
  if (seq_known && number_distance(g.grant_seq, grant_seq) < 0 &&
      now - requested_at < 16 * p.rtt_ns) {
    return;  // overtaken; a restarted receiver is believed after a while
  }
  grant_seq = g.grant_seq;
  seq_known = true;
  probes = 0;
  const std::uint64_t limit = extend_total(sent_total, g.limit_total);
  if (phase == Phase::idle || !has_backlog()) {
    if (limit > sent_total && now - requested_at >= p.rtt_ns) {
      phase = Phase::idle;
      drop(now);
      d.request = true;  // demand 0
    }
    return;
  }
  if (phase == Phase::fallback) {
    phase = Phase::open;
    ceiling = start_end = sent_total;
    request_at = now + 2 * p.rtt_ns;
  }
  if (voided) return;
  if (g.priority != 0) priority = g.priority;
  rate_mbps = g.rate_mbps == 0 ? p.link_mbps : std::min(g.rate_mbps, p.link_mbps);
  if (limit > ceiling) {
    ceiling = limit;
    // Where many channels take turns, the next GRANT is not late before this one would have been.
    const std::int64_t patience = std::max(2 * p.rtt_ns, 3 * (now - raised_at));
    probe_ns = static_cast<std::uint32_t>(std::min<std::int64_t>(patience, p.request_max_ns));
    raised_at = now;
    request_at = now + probe_ns;
  }
  // All reported demand is granted, and there is more.
  if (told_final <= ceiling && sent_total + backlog_wire > told_final) {
    ask_by(std::max(now, requested_at + p.rtt_ns / 2));
  }
}

void GrantChannel::on_timer(const GrantPort& p, std::int64_t now, Decision& d) {
  if (!timer_runs() || now < request_at) return;
  d.request = true;
  if (lost && phase == Phase::open) {
    drop(now);
    return;
  }
  if (now - requested_at >= std::int64_t{probe_ns}) {
    if (probes < 255) ++probes;
    probe_ns = std::min(2 * probe_ns, p.request_max_ns);
    if (phase == Phase::open && probes > p.probe_limit) {
      drop(now);
      phase = Phase::fallback;
      probe_ns = static_cast<std::uint32_t>(std::min<std::int64_t>(8 * p.rtt_ns, p.request_max_ns));
    }
  }
}

void GrantChannel::decide(const GrantPort& p, std::int64_t now, Decision& d) const {
  d.window_bytes = kUnlimited;
  d.wake_bytes = kUnlimited;
  d.fallback = phase == Phase::fallback;
  d.ceiling = d.fallback ? kUnlimited : std::max(ceiling, sent_total);
  d.urgent = !d.fallback && sent_total < start_end;
  std::uint32_t rate = rate_mbps == 0 ? p.link_mbps : rate_mbps;
  if (d.fallback) rate = std::max(1U, p.link_mbps / kFallbackPart);
  // Nothing may be sent: the algorithm that takes the channel over must not assume line rate.
  if (!d.fallback && unused() == 0) rate = 0;
  d.rate = rate_from_mbps(rate);
  d.limiter = !has_backlog()              ? Limiter::application
              : unused() < p.packet_bytes ? Limiter::grant
                                          : Limiter::port;
  const std::int64_t wake = timer_runs() ? std::max(request_at, now + 1) : kNeverNanos.count;
  d.wake_at = Nanos{wake};
  d.timed = wake != kNeverNanos.count;
}

void GrantChannel::on_event(const GrantPort& p, const Event& e, Decision& d) {
  const std::int64_t now = e.now.count;
  d.request = false;
  if (e.signal == Signal::start) begin(p, e);
  sent_total = e.sent_total;
  if (e.signal == Signal::message) {
    ++messages;
    message_bytes += e.message_bytes;
  }
  count_backlog(p, e);
  on_timer(p, now, d);
  switch (e.signal) {
    case Signal::start:
      on_message(p, now, e.backlog_bytes, d);
      break;
    case Signal::message:
      on_message(p, now, e.message_bytes, d);
      break;
    case Signal::idle:
      on_idle(p, now, d);
      break;
    case Signal::nack:
    case Signal::timeout:
      on_loss(p, now, d);
      break;
    case Signal::grant:
      on_grant(p, e, d);
      break;
    default:
      break;
  }
  if (congested != told_congested && phase == Phase::open && has_backlog()) {
    ask_by(std::max(now + 1, requested_at + p.rtt_ns));
  }
  if (d.request) {
    requested_at = now;
    request_at = now + probe_ns;
    told_final = sent_total + backlog_wire;
    told_congested = congested;
  } else if (timer_runs() && request_at <= now) {
    on_timer(p, now, d);
    if (d.request) {
      requested_at = now;
      request_at = now + probe_ns;
      told_final = sent_total + backlog_wire;
      told_congested = congested;
    }
  }
  decide(p, now, d);
}

void GrantChannel::fill_request(const Event& e, RequestMessage& r) {
  r.req_seq = ++req_seq;
  r.grant_echo = grant_seq;
  r.sent_total = sent_total & kTotalMask;
  r.unscheduled_total = unscheduled_total & kTotalMask;
  r.demand_bytes = backlog_wire;
  r.tx_cap_mbps = 0xFFFF'FFFF;  // no limit
  r.timestamp_ns = grant_stamp(e.now.count);
  r.round = round;
  r.lost = lost;
  r.congested = congested;
  lost = false;
}

}  // namespace paceline::cc
