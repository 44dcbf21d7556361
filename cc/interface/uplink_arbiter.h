// The uplink half of a proactive algorithm: one per NIC instance and class, it shares the port's
// transmit rate among the contexts, so that every context can tell its receiver how much of a grant
// it could use. It also hands out the bytes that may leave without a grant: what the uplink can
// send in one round trip, divided among the contexts that start together.
//
// Called on the engine's thread; nothing per packet. The engine's part, in this order:
//   1. It delivers an event to a context: A::on_event(state, params, event, decision).
//   2. If decision.request is set: A::fill_request. The REQUEST goes out at once in the control
//      class, ahead of any data that this event allows.
//   3. update(now, context, A::uplink_want(state, params)). Cheap when nothing changed.
//   4. After the events of one poll, before it transmits data: poll(now, out), and for every entry
//      Signal::share to that context (steps 1-3 with event.share = &entry.share); again while poll
//      fills the whole of `out`. Then next_wake() joins the engine's deadlines.
// Step 4 in the same poll as the Signal::message matters: the first bytes of a message wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "dataplane/base/units.h"

namespace paceline::cc {

struct ParamBlock;  // param_block.h

// A context's demand on the uplink.
struct UplinkWant {
  std::uint32_t limit_mbps = 0;   // min of grant and path rate; 0 while no grant is in force
  std::uint32_t start_bytes = 0;  // wire bytes it asks to send without a grant, now
  bool asks_start = false;        // start_bytes is a question that waits for its answer
  bool active = false;            // scheduled bytes wait, or will once the start bytes are gone
  bool awaits_grant = false;      // active, and the limit is not known yet
  std::uint8_t weight = 1;        // share of the uplink relative to other contexts, >= 1
  std::uint8_t traffic_class =
      0;              // set by the transport: the higher of two waiting ones is sent first
  bool bulk = false;  // has enough bytes left that other contexts' weights apply
  std::uint32_t credit_bytes = 0;  // granted bytes that have piled up unused
  std::uint64_t left_bytes = 0;    // of plug-ins: to be sent
  friend constexpr bool operator==(const UplinkWant&, const UplinkWant&) = default;
};

// The arbiter's answer.
struct UplinkShare {
  std::uint32_t rate_mbps = 0;    // the context's share of the uplink; at or above link rate: free
  std::uint32_t cap_mbps = 0;     // what it could use if its grant were larger (REQUEST tx_cap)
  std::uint32_t start_bytes = 0;  // wire bytes it may send without a grant (answers the ask)
  std::uint32_t request_spacing_ns = 0;  // least interval of its refreshing REQUESTs
  bool answers_start = false;            // start_bytes is an answer, even when it is 0
  bool announce = false;                 // the cap changed enough to tell the receiver now
  bool congested = false;                // more is granted than the uplink can use
};

struct ShareOutput {
  std::uint32_t context = 0;
  UplinkShare share{};
};

class UplinkArbiter {
 public:
  UplinkArbiter() = default;
  UplinkArbiter(const UplinkArbiter&) = delete;
  UplinkArbiter& operator=(const UplinkArbiter&) = delete;
  virtual ~UplinkArbiter() = default;

  // `context` is the engine's index, dense and stable. A new index grows the table (the only
  // allocation). Every ask (want.asks_start) is answered by the next poll.
  virtual void update(Nanos now, std::uint32_t context, const UplinkWant& want) = 0;

  // The context is gone, or runs another algorithm now.
  virtual void forget(Nanos now, std::uint32_t context) = 0;

  // Runs what is due and fills up to out.size() changes; returns the number filled. Call again at
  // once when it equals out.size().
  virtual std::size_t poll(Nanos now, std::span<ShareOutput> out) = 0;

  // Other values of the same algorithm; in force with the next poll.
  virtual void set_params(const ParamBlock& /*params*/) {}

  // When poll has work next; kNeverNanos when idle. <= now after an ask.
  virtual Nanos next_wake() const = 0;

  // The first invariant found broken, in words, or an empty string. O(contexts).
  virtual std::string check_invariants(Nanos /*now*/) const { return {}; }
};

}  // namespace paceline::cc
