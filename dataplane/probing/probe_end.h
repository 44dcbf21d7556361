// The state of one NIC that probes and is probed: its queue pair, the peers that it may answer, the
// probes that it sends, and the clock by which it tells times. For the engine's thread. Functions
// allocate nothing unless they are marked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/probing/datagram_pair.h"
#include "dataplane/probing/host_clock.h"
#include "dataplane/probing/probe_message.h"
#include "dataplane/probing/prober.h"
#include "dataplane/transport/engine.h"

namespace paceline::probing {

// Another NIC with a ProbeEnd.
struct ProbePeer {
  transport::QpPath path;  // its class and source port are not looked at
  std::uint32_t qp_number = 0;
  std::uint32_t qkey = 0;
};

class ProbeEnd {
 public:
  // The source port of path i is that plus i.
  static constexpr std::uint16_t kFirstPort = 0xC000;
  static constexpr std::uint16_t kMostPaths = 64;

  // --- control operations: may allocate ---
  // `pd`: a domain that nobody else uses. `qkey`: a secret, which peers are told.
  ProbeEnd(Picos now, transport::Engine& engine, std::uint32_t pd, std::uint32_t qkey,
           const HostClock& clock);
  ~ProbeEnd();
  ProbeEnd(const ProbeEnd&) = delete;
  ProbeEnd& operator=(const ProbeEnd&) = delete;

  // 0: the engine has no more queue pairs.
  std::uint32_t qp_number() const { return pair_->number(); }
  std::uint32_t qkey() const { return pair_->qkey(); }
  // From now on probes these peers, and answers only them. Does not use `plan.peers`. Call it once.
  void begin(Picos now, const ProbePlan& plan, std::span<const ProbePeer> peers,
             std::uint8_t traffic_class);
  const Prober* prober() const { return prober_ ? &*prober_ : nullptr; }
  const HostClock& clock() const { return clock_; }
  void change_clock(std::vector<ClockChange> changes) { clock_.changes = std::move(changes); }
  // From the latest probe to this peer; nothing: there was none, or the address is not a peer's.
  std::optional<OneWay> one_way_to(const wire::IpAddress& peer) const;
  // Datagrams that came from no peer, were not probes, or could not be answered.
  std::uint64_t refused() const { return refused_; }

  // --- the data path ---
  // Sends what is due and takes in arrivals, with the present time as their time of arrival: the
  // clock is read after the engine's poll. True when the engine has something to send: poll it
  // next, at this time or later.
  bool poll(Picos now) {
    return prober_ && (prober_->next_deadline() <= now || pair_->has_news()) && work(now);
  }
  Picos next_deadline() const { return prober_ ? prober_->next_deadline() : kNever; }

 private:
  // Every second message is in the class in which clocks are compared.
  static constexpr std::size_t kClasses = 2;
  static constexpr std::uint16_t kAtOnce = 512;
  struct Known {
    ProbePeer peer;
    std::vector<std::uint32_t> handles;  // by class, then path
  };
  // An answer in flight: the times to report when it has left.
  struct Answer {
    std::uint32_t peer = 0;
    ProbeMessage message;
    bool in_use = false;
  };
  static constexpr std::uint64_t kSilent = std::uint64_t{1} << 62;  // wr_ids of no interest
  static constexpr std::uint64_t kAnswer = std::uint64_t{1} << 32;  // ...and of answers, plus place

  bool send(Picos now, std::uint32_t to, const ProbeMessage& message, std::uint64_t wr_id);
  bool answer(Picos now, std::uint32_t to, const ProbeMessage& probe);
  bool has_left(Picos now, const transport::Completion& completion);
  bool take(Picos now, const DatagramPair::Arrival& arrival);
  bool work(Picos now);
  bool send_due(Picos now);

  transport::Engine& engine_;
  HostClock clock_;
  Picos now_;
  std::optional<DatagramPair> pair_;
  std::vector<Known> peers_;
  std::unordered_map<wire::IpAddress, std::uint32_t, wire::IpAddressHash> by_address_;
  std::optional<Prober> prober_;
  std::array<Answer, kAtOnce> answers_{};
  std::size_t last_answer_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace paceline::probing
