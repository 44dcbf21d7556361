// What the unit tests of SIRD and Homa share: a port of 100 Gb/s with a round trip of 4.7 us, a
// sender's channel driven by hand, and a receiver whose senders are numbers.
#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "cc/grants/grant_channel.h"
#include "cc/grants/grant_receiver.h"
#include "tests/unit/cc/cc_support.h"

namespace paceline::cc::test {

inline constexpr std::uint64_t kPacket = 4178;

inline PortFacts grant_facts() {
  PortFacts facts = facts_at(100);
  facts.mtu_bytes = 4096;
  facts.full_packet_bytes = kPacket;
  facts.base_rtt_ns = 4'700;
  return facts;
}

template <class Algorithm>
typename Algorithm::Params grant_params(std::string_view name,
                                        const std::vector<ParamOverride>& overrides = {}) {
  return Algorithm::make_params(values_of(name, "", overrides, grant_facts()), grant_facts());
}

// Senders of a receiver: what they were granted, what they have sent, and what has arrived. Data
// arrives when the test says so.
class Senders {
 public:
  explicit Senders(GrantReceiver& receiver) : receiver_(receiver) {}

  // Tells of so much more to send. Returns the request, to be changed and sent again.
  RequestMessage& ask(std::int64_t now, std::uint32_t peer, std::uint64_t bytes,
                      std::uint64_t unscheduled = 0) {
    Sender& s = senders_[peer];
    s.request.channel = static_cast<std::uint16_t>(peer);
    s.request.demand_bytes += bytes;
    s.request.unscheduled_total += unscheduled;
    s.ceiling = std::max(s.ceiling, s.request.sent_total) + unscheduled;
    tell(now, peer);
    return s.request;
  }
  void tell(std::int64_t now, std::uint32_t peer) {
    Sender& s = senders_[peer];
    ++s.request.req_seq;
    s.request.timestamp_ns = static_cast<std::uint32_t>(now);
    s.counters = receiver_.on_request(Nanos{now}, peer, s.request);
  }
  // Polls as the engine does. Returns the GRANTs of this instant that raised a ceiling.
  std::size_t poll(std::int64_t now) {
    std::size_t raised = 0;
    std::array<ReceiverOutput, 16> out;
    std::size_t n = 0;
    do {
      n = receiver_.poll(Nanos{now}, out);
      for (std::size_t i = 0; i < n; ++i) {
        Sender& s = senders_[out[i].peer];
        ++s.heard;
        s.last = out[i].grant;
        if (out[i].grant.hold) ++s.held;
        if (out[i].grant.limit_total > s.ceiling) {
          s.ceiling = out[i].grant.limit_total;
          order_.push_back(out[i].peer);
          ++raised;
        }
      }
    } while (n == out.size());
    REQUIRE(receiver_.check_invariants(Nanos{now}) == "");
    return raised;
  }
  // Until nothing is granted any more although time advances, `span` at most.
  std::int64_t run(std::int64_t now, std::int64_t span) {
    const std::int64_t end = now + span;
    while (now <= end) {
      poll(now);
      now = std::max(now + 1, std::min(receiver_.next_wake().count, end + 1));
    }
    return end;
  }
  void send(std::uint32_t peer, std::uint64_t bytes, bool marked = false) {
    Sender& s = senders_[peer];
    s.request.sent_total += bytes;
    s.request.demand_bytes -= std::min(s.request.demand_bytes, bytes);
    s.counters->rx_bytes += bytes;
    ++s.counters->rx_packets;
    if (marked) ++s.counters->ce_packets;
  }
  std::uint64_t granted(std::uint32_t peer) {
    Sender& s = senders_[peer];
    return s.ceiling > s.request.sent_total ? s.ceiling - s.request.sent_total : 0;
  }
  unsigned heard(std::uint32_t peer) { return senders_[peer].heard; }
  unsigned held(std::uint32_t peer) { return senders_[peer].held; }
  RequestMessage& request(std::uint32_t peer) { return senders_[peer].request; }
  const GrantMessage& last(std::uint32_t peer) { return senders_[peer].last; }
  const std::vector<std::uint32_t>& order() const { return order_; }

 private:
  struct Sender {
    RequestMessage request;
    ChannelCounters* counters = nullptr;
    std::uint64_t ceiling = 0;
    unsigned heard = 0;
    unsigned held = 0;
    GrantMessage last;
  };
  GrantReceiver& receiver_;
  std::map<std::uint32_t, Sender> senders_;
  std::vector<std::uint32_t> order_;
};

}  // namespace paceline::cc::test
