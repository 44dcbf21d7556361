// A sender's context of Cadence, with an arbiter that grants every request and a wire that only
// counts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cc/cadence/cadence.h"
#include "tests/unit/cc/cadence_params.h"

namespace paceline::cc {

struct Sender {
  CadenceParams p = cadence_params_100g();
  Cadence::State s{};
  Decision d{};
  std::int64_t now = 1'000'000;
  std::uint64_t sent = 0, backlog = 0, inflight = 0;
  unsigned requests = 0;
  RequestMessage last{};
  std::uint32_t uplink_room = 0xFFFF'FFFF;

  Sender() { event({.signal = Signal::start}); }

  void event(Event e) {
    e.now = Nanos{now};
    e.sent_total = sent;
    e.backlog_bytes = backlog;
    e.inflight_bytes = inflight;
    Cadence::on_event(s, p, e, d);
    if (d.request) {
      ++requests;
      last = RequestMessage{};
      Cadence::fill_request(s, p, e, last);
    }
    const UplinkWant want = Cadence::uplink_want(s, p);
    if (!want.asks_start) return;
    UplinkShare share;
    share.rate_mbps = share.cap_mbps = 100'000;
    share.start_bytes = std::min(want.start_bytes, uplink_room);
    share.answers_start = true;
    event({.signal = Signal::share, .share = &share});
  }
  void post(std::uint64_t bytes) {
    backlog += bytes;
    event({.message_bytes = bytes, .signal = Signal::message});
  }
  void send(std::uint64_t payload) {  // as whole packets
    sent += message_wire_bytes(p, payload);
    backlog -= payload;
    if (backlog == 0) event({.signal = Signal::idle});
  }
  void tick() { event({.signal = Signal::tick}); }
  void tick_at(std::int64_t ns) {
    now = ns;
    tick();
  }
  GrantMessage grant(std::uint16_t seq, std::uint32_t mbps) {
    GrantMessage g;
    g.grant_seq = seq;
    g.rate_mbps = mbps;
    g.limit_total = sent + 1'000'000;
    g.lease_us = 100;
    g.timestamp_echo_ns = last.timestamp_ns;
    return g;
  }
  void deliver(const GrantMessage& g) { event({.signal = Signal::grant, .grant = &g}); }
};

inline std::uint64_t mbps(const Decision& d) { return d.rate.bps / 1'000'000; }

}  // namespace paceline::cc
