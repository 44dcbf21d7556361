#include "cc/grants/grant_receiver.h"

#include <algorithm>

namespace paceline::cc {
namespace {

// A REQUEST with an old number, this many RTTs after the last one, means that the sender has
// restarted its numbering.
constexpr std::int64_t kFreshRtts = 16;
// A channel is dead after this many of the longest REQUEST intervals without data or a REQUEST.
constexpr std::int64_t kDeadIntervals = 4;

std::int32_t number_ahead(std::uint16_t a, std::uint16_t b) {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(a - b));
}

}  // namespace

GrantReceiver::GrantReceiver(const GrantPort& port, std::int64_t reclaim_ns) {
  take_port(port, reclaim_ns);
}

void GrantReceiver::take_port(const GrantPort& port, std::int64_t reclaim_ns) {
  port_ = port;
  reclaim_ns_ = std::max(reclaim_ns, 2 * port.rtt_ns);
  packet_ns_ = std::max<std::int64_t>(1, std::int64_t{port.packet_bytes} * 8000 / port.link_mbps);
}

void GrantReceiver::add(std::uint32_t peer) {
  if (peer < channels_.size()) return;
  channels_.resize(peer + 1);
  while (blocks_.size() * kPerBlock <= peer) {
    blocks_.push_back(std::make_unique<std::array<ChannelCounters, kPerBlock>>());
  }
  listed_.reserve(channels_.size());
}

void GrantReceiver::list(std::int64_t now, std::uint32_t peer) {
  Channel& c = channels_[peer];
  if (c.position != 0) return;
  listed_.push_back(peer);
  c.position = static_cast<std::uint32_t>(listed_.size());
  scan_at_ = std::min(scan_at_, now + port_.rtt_ns);
}

void GrantReceiver::unlist(std::uint32_t peer) {
  Channel& c = channels_[peer];
  if (c.position == 0) return;
  const std::uint32_t last = listed_.back();
  listed_[c.position - 1] = last;
  channels_[last].position = c.position;
  listed_.pop_back();
  c.position = 0;
}

std::uint64_t GrantReceiver::outstanding(std::uint32_t peer) const {
  const std::uint64_t here = arrived(peer);
  const std::uint64_t limit = channels_[peer].limit_total;
  return limit > here ? limit - here : 0;
}

std::uint64_t GrantReceiver::outstanding() const {
  std::uint64_t sum = 0;
  for (const std::uint32_t peer : listed_) sum += outstanding(peer);
  return sum;
}

void GrantReceiver::arrive_at_least(Channel& c, std::uint32_t peer, std::uint64_t total) {
  const std::uint64_t here = arrived(peer);
  if (here < total) c.rx_base += total - here;
}

void GrantReceiver::open(std::int64_t now, Channel& c, std::uint32_t peer,
                         const RequestMessage& r) {
  unlist(peer);
  const std::uint16_t number = c.grant_seq;
  c = Channel{};
  c.known = true;
  c.channel = r.channel;
  c.req_seq = static_cast<std::uint16_t>(r.req_seq - 1);
  // Numbering continues from the later of the numbers that the two ends know.
  c.grant_seq = number_ahead(r.grant_echo, number) > 0 ? r.grant_echo : number;
  c.round = r.round;
  // The total covers all unscheduled bytes ever sent; only the newest prefix can be in flight.
  c.unscheduled_total =
      r.unscheduled_total - std::min<std::uint64_t>(r.unscheduled_total, port_.prefix_bytes);
  c.sent_known = r.sent_total;
  c.limit_total = r.sent_total;
  c.final_total = r.sent_total;
  c.seen_rx = counters(peer).rx_bytes;
  c.rx_base = r.sent_total - c.seen_rx;
  c.arrived_at = now;
  c.window_at = r.sent_total;
  c.window_packets = counters(peer).rx_packets;
  c.window_ce = counters(peer).ce_packets;
  opened(peer);
}

ChannelCounters* GrantReceiver::on_request(Nanos now_ns, std::uint32_t peer,
                                           const RequestMessage& r) {
  const std::int64_t now = now_ns.count;
  add(peer);
  Channel& c = channels_[peer];
  ChannelCounters* const result = &counters(peer);
  const bool fresh = !c.known || c.channel != r.channel;
  const bool old = !fresh && number_ahead(r.req_seq, c.req_seq) <= 0;
  if (old && now - c.req_at < kFreshRtts * port_.rtt_ns) return result;
  if (r.close) {
    unlist(peer);
    c.known = false;
    c.final_total = c.limit_total = 0;
    c.answer_at = kNeverNanos.count;
    return result;
  }
  if (fresh || old) open(now, c, peer, r);
  c.req_seq = r.req_seq;
  c.req_stamp = r.timestamp_ns;
  c.req_at = now;
  c.congested = r.congested;

  const std::uint64_t sent = extend_total(c.sent_known, r.sent_total);
  const std::uint64_t announced = extend_total(c.unscheduled_total, r.unscheduled_total);
  const std::uint64_t start = announced > c.unscheduled_total ? announced - c.unscheduled_total : 0;
  c.unscheduled_total += start;
  // At most `sent` bytes can have arrived, because a REQUEST overtakes data.
  if (const std::uint64_t here = arrived(peer); here > sent) c.rx_base -= here - sent;
  if (r.lost) arrive_at_least(c, peer, sent);
  // The sender has dropped its ceiling. The next ceiling starts from what it had sent by then.
  if (c.round != r.round) c.limit_total = c.sent_known = sent;
  c.round = r.round;
  const std::uint64_t before_start = outstanding(peer);
  c.limit_total = std::max(c.limit_total, sent) + start;
  c.sent_known = std::max(c.sent_known, sent + start);

  const std::uint64_t before = wanted(c);
  c.final_total = sent + r.demand_bytes;
  if (before == 0 && wanted(c) > 0) c.born_at = now;
  if (r.demand_bytes == 0) {
    c.final_total = c.limit_total;
    c.answer_at = kNeverNanos.count;
  } else {
    // There is nothing to grant: either the sender's unscheduled start covers everything, or it
    // waits for a lost GRANT.
    const bool covered = wanted(c) == 0 && start > 0;
    c.answer_at = covered ? kNeverNanos.count : now + port_.rtt_ns;
    answer_at_ = std::min(answer_at_, c.answer_at);
  }
  if (before_start == 0) c.arrived_at = now;
  if (wanted(c) > 0 || outstanding(peer) > 0) list(now, peer);
  wants_more_ = wants_more_ || wanted(c) > 0;
  return result;
}

void GrantReceiver::forget(Nanos, std::uint32_t peer) {
  if (peer >= channels_.size()) return;
  unlist(peer);
  channels_[peer] = Channel{};
  counters(peer) = ChannelCounters{};
}

void GrantReceiver::write_grant(std::int64_t now, std::uint32_t peer, bool hold) {
  Channel& c = channels_[peer];
  ReceiverOutput& o = out_[filled_++];
  o.peer = peer;
  GrantMessage& g = o.grant;
  g = GrantMessage{};
  g.hold = hold;
  g.channel = c.channel;
  g.grant_seq = ++c.grant_seq;
  g.rate_mbps = hold ? 0 : port_.link_mbps;
  g.limit_total = c.limit_total & kTotalMask;
  // Read only by senders that are still migrating away from an algorithm whose grants are rates.
  g.lease_us = static_cast<std::uint32_t>(std::max<std::int64_t>(reclaim_ns_ / 1000, 1));
  g.unscheduled_budget = port_.prefix_bytes;
  g.priority = c.priority;
  g.active_senders = static_cast<std::uint16_t>(std::min<std::size_t>(listed_.size(), 0xFFFF));
  g.timestamp_echo_ns = c.req_stamp;
  g.receiver_hold_ns =
      static_cast<std::uint32_t>(std::min<std::int64_t>(now - c.req_at, 0xFFFF'FFFF));
  c.answer_at = kNeverNanos.count;
}

void GrantReceiver::grant(std::int64_t now, std::uint32_t peer, std::uint64_t bytes) {
  Channel& c = channels_[peer];
  if (outstanding(peer) == 0) c.arrived_at = now;
  c.limit_total += bytes;
  list(now, peer);
  write_grant(now, peer, false);
}

// Answers waiting REQUESTs: with a hold if nothing is granted yet, else with the same ceiling
// again.
void GrantReceiver::answer(std::int64_t now) {
  if (now < answer_at_) return;
  answer_at_ = kNeverNanos.count;
  for (const std::uint32_t peer : listed_) {
    Channel& c = channels_[peer];
    if (c.answer_at <= now && room())
      write_grant(now, peer, wanted(c) > 0 && outstanding(peer) == 0);
    answer_at_ = std::min(answer_at_, c.answer_at);
  }
}

void GrantReceiver::scan(std::int64_t now) {
  for (std::size_t i = listed_.size(); i-- > 0;) {
    const std::uint32_t peer = listed_[i];
    Channel& c = channels_[peer];
    const std::uint64_t rx = counters(peer).rx_bytes;
    if (rx != c.seen_rx) {
      c.seen_rx = rx;
      c.arrived_at = now;
    }
    scanned(now, peer);
    if (now - std::max(c.arrived_at, c.req_at) >
        kDeadIntervals * std::max<std::int64_t>(port_.request_max_ns, reclaim_ns_)) {
      arrive_at_least(c, peer, c.limit_total);
      c.final_total = c.limit_total;
    } else if (now - c.arrived_at > reclaim_ns_) {
      // A sender without demand has dropped the unused part of its ceiling.
      arrive_at_least(c, peer,
                      wanted(c) == 0 ? c.limit_total : std::min(c.sent_known, c.limit_total));
    }
    if (wanted(c) == 0 && outstanding(peer) == 0 && c.answer_at == kNeverNanos.count) unlist(peer);
  }
  scan_at_ = listed_.empty() ? kNeverNanos.count : now + port_.rtt_ns;
}

std::size_t GrantReceiver::poll(Nanos now_ns, std::span<ReceiverOutput> out) {
  const std::int64_t now = now_ns.count;
  out_ = out;
  filled_ = 0;
  if (now >= scan_at_) scan(now);
  if (wants_more_ && now >= share_at()) share(now);
  answer(now);
  wants_more_ = false;
  for (const std::uint32_t peer : listed_) wants_more_ = wants_more_ || wanted(channels_[peer]) > 0;
  out_ = {};
  return filled_;
}

Nanos GrantReceiver::next_wake() const {
  std::int64_t next = std::min(scan_at_, answer_at_);
  if (wants_more_) next = std::min(next, share_at());
  return Nanos{next};
}

std::string GrantReceiver::check_invariants(Nanos) const {
  for (const std::uint32_t peer : listed_) {
    const Channel& c = channels_[peer];
    if (c.limit_total < c.sent_known) {
      return "channel " + std::to_string(peer) + ": ceiling " + std::to_string(c.limit_total) +
             " below what was sent and announced, " + std::to_string(c.sent_known);
    }
  }
  return {};
}

}  // namespace paceline::cc
