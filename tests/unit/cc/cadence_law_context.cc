#include "tests/unit/cc/cadence_law_context.h"

#include <algorithm>

namespace paceline::cc {
namespace {

// What the built-in adds to a wish for start bytes, for headers of other kinds.
constexpr std::uint64_t kSlackBytes = 32;

}  // namespace

CadenceLawContext::CadenceLawContext(const CadenceLaw& law, std::uint32_t peers,
                                     const Handover* handover)
    : law_(law), peers_(peers) {
  decision_.window_bytes = decision_.ceiling = decision_.wake_bytes = PACELINE_CC_UNLIMITED;
  decision_.wake_at_ns = PACELINE_CC_NEVER;
  paceline_cc_event c{};
  paceline_cc_handover before{};
  if (handover != nullptr) {
    before.rate_bps = handover->rate.bps;
    c.handover = &before;
  }
  c.signal = PACELINE_CC_START;
  deliver({.signal = Signal::start, .handover = handover}, c);
}

void CadenceLawContext::differ(const std::string& what, std::uint64_t built_in, std::uint64_t law) {
  if (!difference_.empty()) return;
  difference_ = what + ": built in " + std::to_string(built_in) + ", law " + std::to_string(law) +
                ", at " + std::to_string(now) + " ns";
}

void CadenceLawContext::fill_requests(const Event& e, const paceline_cc_item& item) {
  if (d_.request) {
    request_ = RequestMessage{};
    Cadence::fill_request(s_, law_.p, e, request_);
    said_ = true;
    ++requests_;
  }
  if (decision_.request != 0) {
    law_request_ = paceline_cc_request{};
    law_request_.sent_total = law_request_.start_total = sent;
    law_request_.cap_mbps = PACELINE_CC_NO_CAP;
    law_.c->rates->fill_request(&item, &law_request_);
    law_said_ = true;
    ++law_requests_;
  }
}

void CadenceLawContext::both(Event e, paceline_cc_event c) {
  e.now = Nanos{now};
  e.sent_total = sent;
  e.backlog_bytes = backlog;
  e.inflight_bytes = inflight;
  e.peer_count_hint = peer_count_hint_of(peers_);
  Cadence::on_event(s_, law_.p, e, d_);
  c.now_ns = now;
  c.sent_total = sent;
  c.backlog_bytes = backlog;
  c.inflight_bytes = inflight;
  c.peers = peers_of(peer_count_hint_of(peers_));
  const paceline_cc_item item{state_.data(), law_.derived.data(), &c, &decision_};
  law_.c->on_events(&item, 1);
  fill_requests(e, item);
  want_ = Cadence::uplink_want(s_, law_.p);
  law_want_ = paceline_cc_want{};
  law_.c->rates->fill_want(&item, &law_want_);
}

// The uplink answers each ask at once. The built-in asks for a few bytes more, which may make a
// packet's difference, and also when it may start with none. What they ask for is told to both.
void CadenceLawContext::answer_ask() {
  asked_ = want_.start_bytes;
  law_asked_ = law_want_.start_bytes;
  if (!within(asked_, law_asked_, law_.p.packet_bytes)) differ("start bytes", asked_, law_asked_);
  if (!within(asked_, law_asked_, kSlackBytes + law_.p.overhead_bytes)) {
    asked_ = law_asked_ = std::min(asked_, law_asked_);
  }
  UplinkShare share;
  share.rate_mbps = share.cap_mbps = law_.p.link_mbps;
  share.start_bytes = std::min(asked_, start_room);
  share.answers_start = true;
  paceline_cc_share law_share{};
  law_share.rate_mbps = law_share.cap_mbps = law_.p.link_mbps;
  law_share.start_bytes = std::min(law_asked_, start_room);
  law_share.answers_start = law_want_.asks_start;
  paceline_cc_event c{};
  c.signal = PACELINE_CC_SHARE;
  c.share = &law_share;
  both({.signal = Signal::share, .share = &share}, c);
}

void CadenceLawContext::deliver(Event e, paceline_cc_event c) {
  both(e, c);
  if (want_.asks_start || law_want_.asks_start != 0) answer_ask();
  compare_decisions();
  compare_requests();
}

void CadenceLawContext::compare_requests() {
  if (said_ != law_said_) differ("says a REQUEST", said_, law_said_);
  if (said_ && law_said_) {
    const std::uint64_t link = law_.p.link_mbps;
    if (request_.demand_bytes != law_request_.demand_bytes) {
      differ("demand", request_.demand_bytes, law_request_.demand_bytes);
    }
    if (request_.grant_echo != law_request_.grant_echo) {
      differ("echo", request_.grant_echo, law_request_.grant_echo);
    }
    if (!within(request_.unscheduled_total, law_request_.start_total,
                4 * (kSlackBytes + law_.p.overhead_bytes))) {
      differ("unscheduled total", request_.unscheduled_total, law_request_.start_total);
    }
    if (!within(std::min<std::uint64_t>(request_.tx_cap_mbps, link),
                std::min<std::uint64_t>(law_request_.cap_mbps, link), 40)) {
      differ("cap", request_.tx_cap_mbps, law_request_.cap_mbps);
    }
    if (request_.hint_degree != law_request_.degree) {
      differ("degree", request_.hint_degree, law_request_.degree);
    }
  }
  said_ = law_said_ = false;
}

void CadenceLawContext::compare_decisions() {
  const std::uint64_t packet = law_.p.packet_bytes;
  if (d_.fallback != (decision_.fallback != 0)) {
    differ("fallback", d_.fallback, decision_.fallback);
  }
  if (d_.fallback) {
    if (!within(rate_mbps(), decision_.rate_bps / 1'000'000, 1)) {
      differ("rate of the fallback", rate_mbps(), decision_.rate_bps / 1'000'000);
    }
    return;
  }
  const std::uint64_t may = std::max(d_.ceiling, sent);
  const std::uint64_t law_may = std::max(decision_.ceiling, sent);
  // A start's wish differs by its slack, and a limit that comes later adds to it.
  if (!within(may, law_may, 4 * (kSlackBytes + law_.p.overhead_bytes)))
    differ("ceiling", may, law_may);
  if (may <= sent + packet) return;  // nothing may leave at any rate
  // P grows by whole Mb/s.
  const std::uint64_t mbps = s_.path_mbps < law_.p.link_mbps ? 30 : 2;
  if (!within(rate_mbps(), decision_.rate_bps / 1'000'000, mbps)) {
    differ("rate", rate_mbps(), decision_.rate_bps / 1'000'000);
  }
  if (rate_mbps() == 0) return;                                    // then no window holds
  const std::uint64_t window = std::max(d_.window_bytes, packet);  // the interface's least
  // So much of it lasts 100 us, the longest T' here, and times are whole ns.
  const std::uint64_t bytes = bytes_at(mbps, 100'000) + law_.p.link_mbps / 500;
  if (!within(window, decision_.window_bytes, bytes)) {
    differ("window", d_.window_bytes, decision_.window_bytes);
  }
  const bool free = want_.active == (law_want_.active != 0);
  if (!free) differ("takes part in sharing", want_.active, law_want_.active);
  if (!want_.active || !free) return;
  if (want_.awaits_grant != (law_want_.awaits_grant != 0)) {
    differ("awaits a grant", want_.awaits_grant, law_want_.awaits_grant);
  }
  if (!want_.awaits_grant && !within(want_.limit_mbps, law_want_.limit_mbps, mbps)) {
    differ("limit on the uplink", want_.limit_mbps, law_want_.limit_mbps);
  }
}

void CadenceLawContext::post(std::uint64_t bytes, std::uint16_t degree) {
  backlog += bytes;
  paceline_cc_event c{};
  c.signal = PACELINE_CC_MESSAGE;
  c.message_bytes = bytes;
  c.hint_degree = degree;
  deliver({.message_bytes = bytes, .hint_degree = degree, .signal = Signal::message}, c);
}

void CadenceLawContext::send(std::uint64_t payload) {
  payload = std::min(payload, backlog);
  const std::uint64_t bytes = law_.wire(backlog) - law_.wire(backlog - payload);
  sent += bytes;
  inflight += bytes;
  backlog -= payload;
  paceline_cc_event c{};
  c.signal = backlog == 0 ? PACELINE_CC_IDLE : PACELINE_CC_TICK;
  deliver({.signal = backlog == 0 ? Signal::idle : Signal::tick}, c);
}

void CadenceLawContext::acknowledge(std::uint64_t wire_bytes, std::uint32_t rtt_ns) {
  const std::uint64_t bytes = std::min(wire_bytes, inflight);
  inflight -= bytes;
  paceline_cc_event c{};
  c.signal = PACELINE_CC_ACK;
  c.acked_bytes = static_cast<std::uint32_t>(bytes);
  c.rtt_ns = rtt_ns;
  deliver({.acked_bytes = c.acked_bytes, .rtt_ns = rtt_ns, .signal = Signal::ack}, c);
}

void CadenceLawContext::lose(Signal signal, std::uint64_t payload) {
  const std::uint64_t bytes = std::min(law_.wire(payload), inflight);
  inflight -= bytes;
  backlog += payload;
  paceline_cc_event c{};
  c.signal = signal == Signal::nack ? PACELINE_CC_NACK : PACELINE_CC_TIMEOUT;
  c.lost_bytes = static_cast<std::uint32_t>(bytes);
  deliver({.lost_bytes = c.lost_bytes, .signal = signal}, c);
}

void CadenceLawContext::share(std::uint32_t mbps, std::uint32_t cap_mbps, bool announce) {
  UplinkShare share;
  share.rate_mbps = mbps;
  share.cap_mbps = cap_mbps;
  share.announce = announce;
  paceline_cc_share law_share{};
  law_share.rate_mbps = mbps;
  law_share.cap_mbps = cap_mbps;
  law_share.announce = announce ? 1 : 0;
  paceline_cc_event c{};
  c.signal = PACELINE_CC_SHARE;
  c.share = &law_share;
  deliver({.signal = Signal::share, .share = &share}, c);
}

void CadenceLawContext::grant(std::uint16_t number, const Grant& g) {
  grant(number, g, request_.timestamp_ns);
}

void CadenceLawContext::grant(std::uint16_t number, const Grant& g, std::uint32_t stamp_ns) {
  const auto away = static_cast<std::uint32_t>(now) - stamp_ns;
  GrantMessage m;
  m.grant_seq = number;
  m.rate_mbps = g.rate_mbps;
  m.limit_total = sent + g.beyond;
  m.lease_us = g.lease_us;
  m.effective_delay_us = g.delay_us;
  m.hold = g.hold;
  m.revoke = g.revoke;
  m.timestamp_echo_ns = stamp_ns;
  m.receiver_hold_ns = away > control_ns ? away - control_ns : 0;
  paceline_cc_rate_grant law{};
  law.limit_total = m.limit_total;
  law.rate_mbps = g.rate_mbps;
  law.lease_us = g.lease_us;
  law.delay_us = g.delay_us;
  law.stamp_ns = stamp_ns;
  law.round_trip_ns = away - m.receiver_hold_ns;
  law.number = number;
  law.hold = g.hold ? 1 : 0;
  law.revoke = g.revoke ? 1 : 0;
  paceline_cc_event c{};
  c.signal = PACELINE_CC_GRANT;
  c.rate_grant = &law;
  deliver({.signal = Signal::grant, .grant = &m}, c);
}

void CadenceLawContext::pass(std::int64_t ns) {
  const std::int64_t end = now + ns;
  while (now < end) {
    const std::int64_t wake = std::min(d_.wake_at.count, decision_.wake_at_ns);
    now = std::clamp(wake, now + 1, end);
    paceline_cc_event c{};
    c.signal = PACELINE_CC_TICK;
    deliver({.signal = Signal::tick}, c);
  }
}

}  // namespace paceline::cc
