// A congestion context: the unit that an algorithm decides for. Queue pairs point to one and share
// it by deficit round robin. The first two cache lines are what the scheduler reads on every
// packet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cc/interface/algorithm.h"
#include "cc/interface/decision.h"
#include "dataplane/base/containers/pointer_table.h"
#include "dataplane/base/units.h"

namespace paceline::transport {

// State of a context in the scheduler.
enum class ContextPlace : std::uint8_t {
  idle,     // nothing to send
  ready,    // in the ready ring of its class
  paced,    // in the deadline queue until next_send
  blocked,  // window, ceiling or rate 0: an event must free it
};

struct alignas(64) CongestionContext {
  Picos next_send{0};
  cc::Decision decision{};           // in force
  std::uint64_t inflight_bytes = 0;  // wire bytes

  std::uint64_t sent_total = 0;  // wire bytes since start, retransmissions included
  std::uint64_t sent_since_event = 0;
  std::uint64_t backlog_bytes = 0;  // payload bytes posted and not yet sent
  Picos pace_from{0};               // next_send = pace_from + pace_bytes at the rate in force
  std::uint32_t pace_bytes = 0;
  std::uint32_t active_head = 0xFFFF'FFFF;  // ring of queue pairs with work
  std::uint32_t queue_pairs = 0;            // attached
  std::uint32_t wants = 0;                  // signal mask of the algorithm in charge
  ContextPlace place = ContextPlace::idle;
  cc::AlgorithmId algorithm{};
  cc::AlgorithmId fallback{};  // while on_fallback: which it is
  std::uint8_t traffic_class = 0;
  cc::Limiter limiter = cc::Limiter::application;
  bool in_use = false;
  bool on_fallback = false;   // `fallback` decides
  std::uint8_t in_rings = 0;  // bit per class: has an entry in its ready ring (maybe a stale one)
  bool timer_set = false;     // has an entry in the scheduler's timers
  bool told_idle = false;     // the algorithm was told that nothing is left; no work came since
  bool answers = false;       // one of its queue pairs has had READ responses to send
  std::uint8_t arm = 0;
  std::uint8_t epoch = 0;
  bool proactive = false;       // `algorithm` is proactive, and the context is one of its channels
  std::uint8_t generation = 0;  // of the last setup that it was told of, low bits
  std::uint8_t setup_slot = 0;  // which of the two setups' values it reads

  Picos limiter_since{0};
  std::uint32_t peer = 0xFFFF'FFFF;
  std::uint32_t sharers = 0;  // of its rate, before the first left in the current change
  std::uint16_t channel = 0;  // wire channel number, proactive only
  std::array<std::int64_t, cc::kLimiters> limiter_picos{};
  cc::Decision proactive_decision{};  // while on_fallback: the proactive algorithm's own

  // The algorithm in charge wants to hear of an acknowledgement with this round trip (0: none).
  bool wants_ack(std::uint32_t rtt_ns, std::uint32_t base_rtt_ns) const {
    constexpr std::uint32_t kAll = cc::signal_bit(cc::Signal::ack);
    const std::uint32_t wanted = wants & (kAll | cc::kWantsRoundTrips);
    if (wanted == 0) return false;
    // Algorithms that want only round trips get those above twice the base RTT.
    return (wanted & kAll) != 0 || rtt_ns / 2 > base_rtt_ns;
  }

  // Time under each limiter; the one in force counts until now.
  std::array<std::int64_t, cc::kLimiters> limiter_picos_until(Picos now) const {
    auto picos = limiter_picos;
    picos[static_cast<std::size_t>(limiter)] += (now - limiter_since).count;
    return picos;
  }

  alignas(64) std::array<std::byte, cc::kStateBytes> state{};
  // A fallback is a second sender algorithm; its state follows in the same block.
  alignas(64) std::array<std::byte, cc::kStateBytes> fallback_state{};
};

// Contexts by index. Does not own them; adding is a control operation.
class ContextTable {
 public:
  CongestionContext& operator[](std::uint32_t index) { return *contexts_[index]; }
  const CongestionContext& operator[](std::uint32_t index) const { return *contexts_[index]; }
  std::uint32_t size() const { return contexts_.size(); }
  std::uint32_t add(CongestionContext& context) {
    contexts_.push_back(&context);
    return size() - 1;
  }

 private:
  PointerTable<CongestionContext> contexts_;
};

}  // namespace paceline::transport
