// The sender of a channel twice: Cadence built in and its law in C, with the same events, and what
// they answer compared after each of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cc/cadence/cadence.h"
#include "tests/unit/cc/cadence_law.h"

namespace paceline::cc {

class CadenceLawContext {
 public:
  explicit CadenceLawContext(const CadenceLaw& law, std::uint32_t peers = 0,
                             const Handover* handover = nullptr);

  // Events. Each moves the time by itself by nothing; `pass` delivers the ticks that either of the
  // two has asked for.
  void post(std::uint64_t bytes, std::uint16_t degree = 0);
  void send(std::uint64_t payload);  // whole packets, and at the end of the backlog Signal::idle
  void acknowledge(std::uint64_t wire_bytes, std::uint32_t rtt_ns = 0);
  void lose(Signal signal, std::uint64_t payload);
  void share(std::uint32_t mbps, std::uint32_t cap_mbps, bool announce);
  void pass(std::int64_t ns);
  struct Grant {
    std::uint32_t rate_mbps = 0;
    std::uint32_t lease_us = 200;
    std::uint32_t delay_us = 0;
    std::uint64_t beyond = 1'000'000;  // what has been sent: the limit
    bool hold = false;
    bool revoke = false;
  };
  void grant(std::uint16_t number, const Grant& g);  // answers the newest REQUEST
  void grant(std::uint16_t number, const Grant& g, std::uint32_t stamp_ns);

  // What the two disagree about, first of all; empty: nothing.
  const std::string& difference() const { return difference_; }

  // What both say.
  std::uint64_t rate_mbps() const { return d_.rate.bps / 1'000'000; }
  std::uint64_t window() const { return d_.window_bytes; }
  std::uint64_t ceiling() const { return d_.ceiling; }
  bool fallback() const { return d_.fallback; }
  unsigned requests() const { return requests_; }
  unsigned law_requests() const { return law_requests_; }
  const RequestMessage& request() const { return request_; }  // the newest
  const UplinkWant& want() const { return want_; }
  // Start bytes of the last ask.
  std::uint32_t asked() const { return asked_; }
  std::uint32_t law_asked() const { return law_asked_; }

  std::int64_t now = 1'000'000;
  std::uint64_t sent = 0;
  std::uint64_t backlog = 0;
  std::uint64_t inflight = 0;
  std::uint32_t start_room = 0xFFFF'FFFF;  // of the uplink, for each ask
  std::uint32_t control_ns = 1500;         // round trip of REQUEST and GRANT, less the wait

 private:
  void deliver(Event e, paceline_cc_event c);
  void both(Event e, paceline_cc_event c);
  void answer_ask();
  void fill_requests(const Event& e, const paceline_cc_item& item);
  void compare_decisions();
  void compare_requests();
  void differ(const std::string& what, std::uint64_t built_in, std::uint64_t law);

  const CadenceLaw& law_;
  std::uint32_t peers_;
  Cadence::State s_{};
  Decision d_{};
  alignas(16) std::array<std::byte, PACELINE_CC_RATES_STATE_BYTES> state_{};
  paceline_cc_decision decision_{};
  UplinkWant want_{};
  paceline_cc_want law_want_{};
  RequestMessage request_{};
  paceline_cc_request law_request_{};
  bool said_ = false;  // the built-in sent a REQUEST since the last comparison
  bool law_said_ = false;
  unsigned requests_ = 0;
  unsigned law_requests_ = 0;
  std::uint32_t asked_ = 0;
  std::uint32_t law_asked_ = 0;
  std::string difference_;
};

}  // namespace paceline::cc
