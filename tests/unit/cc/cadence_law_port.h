// A receiving port twice: Cadence's allocator built in and the law in C, with the same REQUESTs and
// the same arrivals. Each is echoed its own numbers.
#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cc/cadence/receiver/receiver.h"
#include "tests/unit/cc/cadence_law.h"

namespace paceline::cc {

constexpr bool within_ns(std::int64_t a, std::int64_t b, std::int64_t slack) {
  return (a > b ? a - b : b - a) <= slack;
}

// What a GRANT says, and when it left.
struct LawGrant {
  std::int64_t at = 0;
  std::uint64_t limit = 0;
  std::uint32_t rate = 0, lease_us = 0, delay_us = 0;
  bool hold = false, revoke = false;

  bool repeats(const LawGrant& g) const {
    return rate == g.rate && hold == g.hold && revoke == g.revoke;
  }
  bool same(const LawGrant& law, std::int64_t late) const {
    const bool says = within(rate, law.rate, 1) && hold == law.hold && revoke == law.revoke &&
                      within(delay_us, law.delay_us, 1) && within_ns(at, law.at, late);
    return says && (rate == 0 || (within(lease_us, law.lease_us, 1 + lease_us / rate) &&
                                  within(limit, law.limit, lease_us / 8 + rate / 8 + 100)));
  }
  std::string text() const {
    return std::to_string(at) + " ns: " + std::to_string(rate) + " Mb/s to " +
           std::to_string(limit) + ", lease " + std::to_string(lease_us) + " us, delay " +
           std::to_string(delay_us) + (hold ? " HOLD" : "") + (revoke ? " REVOKE" : "");
  }
};

class CadenceLawPort {
 public:
  struct Channel {
    RequestMessage request{};
    GrantMessage grant{};  // the built-in's newest
    unsigned grants = 0;
    ChannelCounters* counters = nullptr;
    paceline_cc_request law_request{};
    paceline_cc_rate_grant law_grant{};
    unsigned law_grants = 0;
    std::vector<LawGrant> said, law_said;  // without those that repeat the one before
    paceline_cc_channel law{};
    std::uint64_t seen = 0;  // of the law's received_total
    alignas(16) std::array<std::byte, PACELINE_CC_SENDER_BYTES> state{};

    bool agree(std::uint64_t slack = 1) const {
      return within(grant.rate_mbps, law_grant.rate_mbps, slack) &&
             grant.hold == (law_grant.hold != 0);
    }
    // Empty if all GRANTs say the same but for roundings, of a Mb/s and of a us, and left at the
    // same times but for `late`. What one of both said within that time the other may be about to
    // say.
    std::string difference(std::int64_t now, std::int64_t late) const {
      const std::size_t both = std::min(said.size(), law_said.size());
      for (std::size_t i = 0; i < both; ++i) {
        if (!said[i].same(law_said[i], late)) return said[i].text() + " law " + law_said[i].text();
      }
      const auto& more = said.size() > both ? said : law_said;
      if (more.size() == both || more[both].at > now - late) return {};
      return (said.size() > both ? "without the law " : "law alone ") + more[both].text();
    }
  };

  CadenceLawPort(const CadenceLaw& law, std::size_t channels)
      : channels(channels), law_(law), receiver_(std::make_unique<CadenceReceiver>(law.p)) {
    for (std::size_t i = 0; i < channels; ++i) {
      Channel& c = this->channels[i];
      c.law.number = static_cast<std::uint32_t>(i);
      c.law.fresh = 1;
      c.law.request = &c.law_request;
      c.law.state = c.state.data();
    }
  }

  void request(std::size_t i, std::uint64_t demand, std::uint32_t cap = kCapUnlimited,
               std::uint64_t start = 0) {
    Channel& c = channels[i];
    RequestMessage& r = c.request;
    ++r.req_seq;
    r.channel = static_cast<std::uint16_t>(i);
    r.demand_bytes = demand;
    r.tx_cap_mbps = cap;
    r.timestamp_ns = static_cast<std::uint32_t>(now);
    r.unscheduled_total = r.sent_total + start;
    c.counters = receiver_->on_request(Nanos{now}, static_cast<std::uint32_t>(i), r);
    if (c.law.fresh != 0) c.law.received_total = r.sent_total;
    c.law_request = {r.sent_total,   r.unscheduled_total,      demand, cap,
                     r.timestamp_ns, c.law_request.grant_echo, 0,      0};
    c.law.heard_at_ns = now;
    c.law.listed = 1;
    paceline_cc_downlink d = downlink(0, next_);
    law_.c->rates->on_request(&d, &c.law);
    next_ = d.next_ns;
    c.law.fresh = 0;
    tell(c);
  }
  // The newest GRANT is in force at the sender, which says so.
  void echo(std::size_t i) {
    Channel& c = channels[i];
    c.request.grant_echo = c.grant.grant_seq;
    c.law_request.grant_echo = c.law_grant.number;
    request(i, c.request.demand_bytes, c.request.tx_cap_mbps);
  }
  void give_up(std::size_t i) {
    channels[i].request.grant_echo = channels[i].law_request.grant_echo = 0;
    request(i, 0);
  }
  void send(std::size_t i, std::uint64_t bytes) { channels[i].request.sent_total += bytes; }
  void arrive(std::size_t i, std::uint64_t bytes) {  // what was sent, too
    send(i, bytes);
    channels[i].counters->rx_bytes += bytes;
    channels[i].law.received_total += bytes;
  }

  void run(std::int64_t ns) {
    const std::int64_t end = now + ns + 300;  // the law's rounds are 100 ns behind
    poll();
    while (now < end) {
      const std::int64_t wake = std::min(receiver_->next_wake().count, next_);
      now = std::clamp(wake, now + 1, end);
      poll();
    }
  }
  bool agree(std::uint64_t slack = 1) const {
    return std::all_of(channels.begin(), channels.end(),
                       [slack](const Channel& c) { return c.agree(slack); });
  }
  std::uint64_t granted() const { return receiver_->snapshot().granted_mbps; }
  std::uint64_t committed() const { return receiver_->snapshot().committed_mbps; }

  std::string difference(std::int64_t late) const {
    for (const Channel& c : channels) {
      const std::string text = c.difference(now, late);
      if (!text.empty()) return "channel " + std::to_string(c.law.number) + ": " + text;
    }
    return {};
  }

  std::vector<Channel> channels;
  std::int64_t now = 1'000'000'000;
  unsigned law_rounds = 0;

 private:
  paceline_cc_downlink downlink(std::uint32_t count, std::int64_t next) {
    return {now, state_.data(), law_.derived.data(), listed_.data(), count, 0, next};
  }
  static void note(std::vector<LawGrant>& said, const LawGrant& g) {
    if (said.empty() || !g.repeats(said.back())) said.push_back(g);
  }
  void tell(Channel& c) {
    if (c.law.tell == 0) return;
    c.law.tell = 0;
    c.law_grant = {};
    paceline_cc_downlink d = downlink(0, next_);
    law_.c->rates->fill_grant(&d, &c.law, &c.law_grant);
    next_ = d.next_ns;
    ++c.law_grants;
    const paceline_cc_rate_grant& g = c.law_grant;
    note(c.law_said,
         {now, g.limit_total, g.rate_mbps, g.lease_us, g.delay_us, g.hold != 0, g.revoke != 0});
  }
  void poll() {
    std::array<ReceiverOutput, 3> out;
    std::size_t n = 0;
    do {
      n = receiver_->poll(Nanos{now}, out);
      for (std::size_t i = 0; i < n; ++i) {
        Channel& c = channels[out[i].peer];
        const GrantMessage& g = c.grant = out[i].grant;
        ++c.grants;
        note(c.said,
             {now, g.limit_total, g.rate_mbps, g.lease_us, g.effective_delay_us, g.hold, g.revoke});
      }
    } while (n == out.size());
    if (now < next_) return;
    listed_.clear();
    for (Channel& c : channels) {
      if (c.seen != c.law.received_total) c.law.heard_at_ns = now;
      c.seen = c.law.received_total;
      if (c.law.listed != 0) listed_.push_back(&c.law);
    }
    paceline_cc_downlink d =
        downlink(static_cast<std::uint32_t>(listed_.size()), PACELINE_CC_NEVER);
    law_.c->rates->on_downlink(&d);
    ++law_rounds;
    next_ = d.next_ns;
    for (Channel& c : channels) tell(c);
  }

  const CadenceLaw& law_;
  std::unique_ptr<CadenceReceiver> receiver_;
  alignas(16) std::array<std::byte, PACELINE_CC_PORT_BYTES> state_{};
  std::vector<paceline_cc_channel*> listed_;
  std::int64_t next_ = PACELINE_CC_NEVER;
};

constexpr std::uint64_t kPortWorlds = 400;
// No GRANT is repeated meanwhile: the built-in does that with a scan every 2 T, the law at its
// time.
constexpr std::uint64_t kLongLease = 10'000;

inline std::uint32_t law_part(Random& random, std::uint64_t of) {
  return static_cast<std::uint32_t>(1 + random.below(of));
}

// So many that none has to wait for its turn.
inline std::size_t law_few(Random& random, const CadenceLaw& law) {
  return 1 + random.below(std::min<std::uint64_t>(law.p.max_active, 8));
}

// The first `begin` of `channels` have much to send each, and no cap.
inline CadenceLawPort law_sharing(const CadenceLaw& law, std::size_t channels, std::size_t begin) {
  CadenceLawPort port(law, channels);
  for (std::size_t i = 0; i < begin; ++i) port.request(i, 8 * std::uint64_t{law.p.bdp_bytes});
  port.run(200);
  for (std::size_t i = 0; i < begin; ++i) port.echo(i);
  port.run(2 * law.rtt());
  return port;
}

}  // namespace paceline::cc
