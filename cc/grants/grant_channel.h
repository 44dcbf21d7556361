// The sending half of algorithms whose receiver grants bytes, not rates (SIRD, Homa): one state
// machine per channel (source port, destination port, class). A GRANT raises a ceiling on the total
// that the channel has ever sent. Below the ceiling the channel sends at line rate, and the
// scheduler takes turns among channels. These algorithms differ in the receiver (grant_receiver.h).
//
// Bytes are wire bytes, as in cadence.h. A REQUEST carries the bytes sent, the bytes announced as
// sent without a grant (unscheduled) and the bytes waiting. It goes out when an idle channel gets
// work, when the demand last reported is about to be granted, when unscheduled bytes are announced,
// after a loss, and at intervals that double while nothing is granted.
//
// Rounds. An unused ceiling is dropped when the backlog is gone, and after a loss. `round` counts
// these drops, so that the receiver takes back what it had granted. GRANTs that answer an earlier
// REQUEST are void. A channel without backlog answers a GRANT by a REQUEST with demand 0.
//
// Fallback: after `probe_limit` REQUESTs without any GRANT the reactive algorithm takes over, as
// cadence.h describes; REQUESTs continue. A receiver answers channels that wait for their turn, too
// (hold).
//
// Events: message, idle, grant, nack, timeout; share if the algorithm has an uplink arbiter.
// Nothing per packet or ACK.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cc/interface/algorithm.h"

namespace paceline::cc {

// Facts about the port, and its rules for the first bytes of a message, known to both halves.
struct GrantPort {
  std::uint32_t link_mbps = 0;
  std::uint32_t mtu_bytes = 0;
  std::uint32_t packet_bytes = 0;    // full packet on the wire
  std::uint32_t overhead_bytes = 0;  // packet_bytes - mtu_bytes
  std::uint32_t bdp_bytes = 0;
  std::int64_t rtt_ns = 0;
  std::uint64_t prompt_bytes = 0;    // messages up to this begin without a grant
  std::uint32_t prefix_bytes = 0;    // the most that such a message, or a channel, sends ungranted
  std::uint32_t probe_limit = 0;     // REQUESTs without an answer before the fallback takes over
  std::uint32_t request_max_ns = 0;  // longest interval of REQUESTs
};

// Derives every field but prompt_bytes and prefix_bytes.
GrantPort make_grant_port(const PortFacts& facts, double probe_limit, double probe_max_us);

// Bytes once per message, beyond a packet's usual headers: RETH (16), immediate (4), padding (3).
inline constexpr std::uint64_t kGrantMessageExtra = 32;

struct GrantChannel {
  enum class Phase : std::uint8_t {
    idle,      // no backlog; what was granted is dropped
    open,      // the receiver knows of the demand
    fallback,  // the reactive algorithm decides
  };

  // Cumulative wire bytes.
  std::uint64_t ceiling;    // of sent_total
  std::uint64_t start_end;  // bytes below this total leave as the start of a message
  std::uint64_t unscheduled_total;
  std::uint64_t told_final;  // sent_total + demand of the last REQUEST
  std::uint64_t sent_total;  // as of the last event
  std::uint64_t backlog_wire;
  // Payload and number of messages since the channel was last idle. They tell how many packets the
  // backlog makes.
  std::uint64_t message_bytes;
  std::uint64_t messages;
  // ns
  std::int64_t request_at;
  std::int64_t requested_at;
  std::int64_t raised_at;   // when the ceiling last rose, or the round began
  std::int64_t dropped_at;  // GRANTs that answer an older REQUEST are void; 0: none are
  std::uint32_t probe_ns;
  std::uint32_t rate_mbps;  // of the last GRANT
  std::uint16_t grant_seq;  // newest heard
  std::uint16_t req_seq;
  Phase phase;
  std::uint8_t probes;  // REQUESTs since the last GRANT
  std::uint8_t round;
  bool seq_known;
  bool lost;        // the next REQUEST says that the round ended with a loss
  bool taken_over;  // from another algorithm: nothing leaves without a grant until idle
  bool congested;   // from the arbiter
  bool told_congested;
  std::uint8_t priority;  // of the last GRANT that had one: level plus 1

  // The rules. decision.request is written by every call: act on it before the next event.
  void on_event(const GrantPort& port, const Event& event, Decision& decision);
  // The engine sets close, traffic_class, echo_wanted, arm, epoch, channel.
  void fill_request(const Event& event, RequestMessage& request);
  // The algorithm is being replaced. Drops what was granted; the REQUEST that the caller sends next
  // says that nothing more is wanted.
  void leave(std::int64_t now);

  bool has_backlog() const { return backlog_wire > 0; }
  // Granted and not used, as of the last event.
  std::uint64_t unused() const { return ceiling > sent_total ? ceiling - sent_total : 0; }
  std::uint64_t start_wish(const GrantPort& port, std::uint64_t payload) const;

 private:
  void begin(const GrantPort& port, const Event& event);
  void count_backlog(const GrantPort& port, const Event& event);
  void drop(std::int64_t now);
  void open(const GrantPort& port, std::int64_t now, std::uint64_t start, Decision& decision);
  void on_message(const GrantPort& port, std::int64_t now, std::uint64_t bytes, Decision& decision);
  void on_idle(const GrantPort& port, std::int64_t now, Decision& decision);
  void on_loss(const GrantPort& port, std::int64_t now, Decision& decision);
  void on_grant(const GrantPort& port, const Event& event, Decision& decision);
  void on_timer(const GrantPort& port, std::int64_t now, Decision& decision);
  void ask_by(std::int64_t at) { request_at = at < request_at ? at : request_at; }
  bool timer_runs() const { return phase != Phase::idle && has_backlog(); }
  void decide(const GrantPort& port, std::int64_t now, Decision& decision) const;
};
static_assert(std::is_trivially_copyable_v<GrantChannel> && sizeof(GrantChannel) <= kStateBytes);

inline constexpr std::uint32_t kGrantWants = signal_bit(Signal::message) |
                                             signal_bit(Signal::idle) | signal_bit(Signal::grant) |
                                             signal_bit(Signal::nack) | signal_bit(Signal::timeout);

}  // namespace paceline::cc
