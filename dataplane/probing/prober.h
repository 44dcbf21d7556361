// Which probes one host sends, and their results: which peer it probes when, within a budget, and
// by which paths; and what answers tell about round trips, losses and the clocks of others. Knows
// no queue pair: it says what to send, and is told what was sent and what arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/base/units.h"
#include "dataplane/probing/clock_estimate.h"
#include "dataplane/probing/probe_message.h"

namespace paceline::probing {

struct ProbePlan {
  std::uint32_t session = 0;
  std::uint32_t number = 0;  // of the host in the session
  std::uint32_t peers = 0;
  std::uint16_t paths = 1;
  // Between two probes of this host, on average: from half to one and a half of it, so that no
  // traffic that repeats itself is met at the same place every time.
  Picos interval = picos_from_micros(1000);
  Picos patience = picos_from_micros(1'000'000);  // then a probe without an answer is lost
  std::uint32_t kept = 512;                       // samples of a peer: the latest
};

// A probe that came back.
struct ProbeSample {
  ProbeTimes times;
  std::uint16_t path = 0;

  // The parts of the round trip: between the hosts, and at the host that answered.
  std::int64_t fabric() const { return round_trip() - host(); }
  std::int64_t host() const { return (times.answered - times.received).count; }
  std::int64_t round_trip() const { return (times.returned - times.sent).count; }
};

struct PathCounts {
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
  std::uint64_t lost = 0;

  PathCounts& operator+=(const PathCounts& more) {
    sent += more.sent;
    answered += more.answered;
    lost += more.lost;
    return *this;
  }
};

// How long a packet takes to a peer, and one from there: needs the clocks. In ns; where clocks are
// further off than they are known to be, it may be below 0.
struct OneWay {
  double there = 0;
  double back = 0;
};

// Figures of one peer.
struct PeerFigures {
  std::vector<PathCounts> paths;
  std::vector<ProbeSample> samples;  // in no order
  std::optional<ClockReading> clock;
};

class Prober {
 public:
  explicit Prober(const ProbePlan& plan);

  const ProbePlan& plan() const { return plan_; }

  struct Next {
    std::uint32_t peer = 0;
    ProbeMessage message;
  };
  // When next() has something to send.
  Picos next_deadline() const { return next_at_; }
  std::optional<Next> next(Picos now);
  // It was refused by the queue pair: as if it had not been.
  void not_sent(const Next& probe);

  // Times by our clock. Does nothing for a sequence number that is no longer known.
  void sent(std::uint32_t sequence, Nanos at);
  void answered(const ProbeMessage& message, std::uint32_t peer, Nanos at);

  PeerFigures figures(std::uint32_t peer) const;
  // Counts over all peers.
  const PathCounts& totals() const { return totals_; }
  // From the latest probe to a peer, or to the peer that answered last; nothing before that. For
  // occasional reading.
  std::optional<OneWay> one_way(std::uint32_t peer) const;
  std::optional<OneWay> one_way() const { return one_way(latest_peer_); }

 private:
  static constexpr std::size_t kOutstanding = 4096;  // a power of two
  struct Outstanding {
    std::uint32_t sequence = 0;
    std::uint32_t peer = 0;
    Picos began{0};
    Nanos sent{};
    Nanos returned{};
    Nanos received{};
    Nanos answered{};
    std::uint16_t path = 0;
    bool in_use = false;
    bool for_clock = false;
    bool has_sent = false;
    bool has_returned = false;
    bool has_times = false;
  };
  struct Peer {
    std::vector<PathCounts> paths;
    std::vector<ProbeSample> samples;
    std::size_t oldest = 0;
    std::optional<ProbeSample> latest;
    ClockEstimate clock;
  };

  Outstanding* find(std::uint32_t sequence);
  void complete(Outstanding& probe);
  void drop(Outstanding& probe);
  void give_up(Picos now);

  ProbePlan plan_;
  std::vector<Peer> peers_;
  std::vector<Outstanding> outstanding_;  // by sequence
  Picos next_at_;
  Random pace_;
  std::uint32_t sequence_ = 0;
  std::uint32_t oldest_ = 0;  // sequences before that are decided
  std::uint32_t peer_ = 0;    // whose turn is next
  std::uint16_t path_ = 0;
  bool for_clock_ = true;
  PathCounts totals_;
  std::uint32_t latest_peer_ = 0;
};

}  // namespace paceline::probing
