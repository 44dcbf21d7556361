#include "cc/cadence/receiver/channel_table.h"

#include <algorithm>

namespace paceline::cc::cadence {

std::string fault(std::string_view what, std::uint64_t is, std::uint64_t bound) {
  return "cadence receiver: " + std::string(what) + ": " + std::to_string(is) + " against " +
         std::to_string(bound);
}

bool ChannelTable::grow(std::uint32_t peer) {
  if (peer < channels_.size()) return false;
  channels_.resize(peer + 1);
  while (counter_blocks_.size() * kCountersPerBlock <= peer) {
    counter_blocks_.push_back(std::make_unique<std::array<ChannelCounters, kCountersPerBlock>>());
  }
  listed_.reserve(channels_.size());
  due_.reserve(channels_.size());
  return true;
}

void ChannelTable::list(std::uint32_t peer) {
  Channel& ch = channels_[peer];
  if (ch.position != 0) return;
  listed_.push_back(peer);
  ch.position = static_cast<std::uint32_t>(listed_.size());
  take_arrivals(peer);
}

void ChannelTable::unlist(std::uint32_t peer) {
  Channel& ch = channels_[peer];
  if (ch.position == 0) return;
  const std::uint32_t last = listed_.back();
  listed_[ch.position - 1] = last;
  channels_[last].position = ch.position;
  listed_.pop_back();
  ch.position = 0;
}

void ChannelTable::set_mode(std::uint32_t peer, Mode mode) {
  Channel& ch = channels_[peer];
  active_count_ = active_count_ - (ch.mode == Mode::active) + (mode == Mode::active);
  waiting_count_ = waiting_count_ - (ch.mode == Mode::waiting) + (mode == Mode::waiting);
  ch.mode = mode;
}

void ChannelTable::activate(std::int64_t now, std::uint32_t peer) {
  set_mode(peer, Mode::active);
  channels_[peer].turn_us = micros(now);
}

void ChannelTable::enqueue(std::int64_t now, std::uint32_t peer) {
  set_mode(peer, Mode::waiting);
  channels_[peer].turn_us = micros(now);
  // Compact before growing: entries before the head are spent.
  if (waiting_head_ > 64 && waiting_head_ * 2 > waiting_.size()) {
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(waiting_head_));
    waiting_head_ = 0;
  }
  waiting_.push_back(peer);
}

std::optional<std::uint32_t> ChannelTable::pop_waiting() {
  while (waiting_head_ < waiting_.size()) {
    const std::uint32_t peer = waiting_[waiting_head_++];
    if (channels_[peer].mode == Mode::waiting) return peer;  // else it left in the meantime
  }
  waiting_.clear();
  waiting_head_ = 0;
  return std::nullopt;
}

void ChannelTable::release(std::uint32_t peer) {
  Channel& ch = channels_[peer];
  if (ch.mode != Mode::unknown) set_mode(peer, Mode::idle);
  set_com(ch, 0);
  set_grant(ch, 0);
  ch.old_lease_end = 0;
}

void ChannelTable::erase(std::uint32_t peer) {
  release(peer);
  unlist(peer);
  channels_[peer] = Channel{};
  counters(peer) = ChannelCounters{};
}

void ChannelTable::lower(Channel& ch, std::uint32_t mbps) {
  ch.old_lease_end = std::max(ch.old_lease_end, ch.lease_end);
  set_grant(ch, mbps);
  ch.next_seq();
}

void ChannelTable::push_grant(std::uint32_t peer, std::uint32_t delay_us) {
  Channel& ch = channels_[peer];
  if (ch.due) return;
  ch.due = true;
  ch.delay_us = delay_us;
  due_.push_back(peer);
}

std::optional<std::uint32_t> ChannelTable::pop_grant() {
  while (due_head_ < due_.size()) {
    const std::uint32_t peer = due_[due_head_++];
    if (!channels_[peer].due) continue;
    channels_[peer].due = false;
    return peer;
  }
  due_.clear();
  due_head_ = 0;
  return std::nullopt;
}

std::uint64_t ChannelTable::known_sent(std::uint32_t peer) const {
  return std::max(channels_[peer].sent_known, arrived(peer));
}

void ChannelTable::forget_uncharged(std::uint32_t peer, std::uint64_t sent) {
  Channel& ch = channels_[peer];
  const std::uint64_t come = arrived(peer);
  if (come <= sent) return;
  ch.rx_base -= come - sent;
  ch.midway = true;
}

bool ChannelTable::take_arrivals(std::uint32_t peer) {
  const auto bytes = static_cast<std::uint32_t>(counters(peer).rx_bytes);
  const bool some = bytes != channels_[peer].last_rx;
  channels_[peer].last_rx = bytes;
  return some;
}

std::string ChannelTable::check(const CadenceParams& p) const {
  std::uint64_t com = 0;
  std::uint64_t grant = 0;
  std::uint32_t active = 0;
  std::uint32_t waiting = 0;
  std::uint32_t listed = 0;
  for (std::uint32_t peer = 0; peer < channels_.size(); ++peer) {
    const Channel& ch = channels_[peer];
    com += ch.com;
    grant += ch.grant;
    active += ch.mode == Mode::active ? 1 : 0;
    waiting += ch.mode == Mode::waiting ? 1 : 0;
    listed += ch.position != 0 ? 1 : 0;
    if (ch.com < ch.grant) return fault("I1: committed below granted, Mb/s", ch.com, ch.grant);
    if ((ch.com > 0 || ch.mode == Mode::active) && ch.position == 0) {
      return fault("I1: active or committed, but not listed", peer, ch.com);
    }
    if (ch.position != 0 && listed_[ch.position - 1] != peer) {
      return fault("list mixed up at peer", peer, ch.position);
    }
    if (ch.mode == Mode::idle && ch.com > 0) return fault("idle but committed", peer, ch.com);

    // I2: a sender that obeys our newest grant stays below the ceilings it was given. What was on
    // its way when the channel appeared may count twice: at most one start, but where another
    // algorithm had the connection before.
    const std::uint64_t come = arrived(peer);
    const std::uint64_t ceiling =
        std::max(ch.limit_total, ch.sent_known) + p.most_start_bytes + 2 * p.packet_bytes;
    if (!ch.midway && ch.mode == Mode::active && ch.echo == ch.seq && ch.seq != 0 &&
        come > ceiling) {
      return fault("I2: arrived beyond the ceiling, bytes", come, ceiling);
    }
  }
  if (grant != grant_sum_) return fault("sum of grants, Mb/s", grant_sum_, grant);
  if (com != com_sum_) return fault("I1: sum of committed rates, Mb/s", com_sum_, com);
  if (active != active_count_) return fault("active channels", active_count_, active);
  if (waiting != waiting_count_) return fault("waiting channels", waiting_count_, waiting);
  if (listed != listed_.size()) return fault("listed channels", listed_.size(), listed);
  return {};
}

}  // namespace paceline::cc::cadence
