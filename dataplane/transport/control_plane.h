// Congestion control from the engine's side: runs the algorithms (with the fallback of a proactive
// one), carries HELLO, REQUEST, GRANT and PATH between peers, and drives the port-level halves.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cc/event.h"
#include "cc/plugin/guard.h"
#include "cc/port_sender.h"
#include "dataplane/transport/arms.h"
#include "dataplane/transport/engine_core.h"
#include "dataplane/wire/parse.h"

namespace paceline::transport {

class Scheduler;

// Round trips over which contexts hear of another setup.
inline constexpr std::int64_t kChangeRtts = 10;

class alignas(64) ControlPlane {
 public:
  ControlPlane(EngineCore& core, Scheduler& scheduler);

  bool proactive() const { return proactive_; }

  // --- algorithms (called by the scheduler) ---
  void start_algorithm(std::uint32_t index, CongestionContext& context, cc::AlgorithmId algorithm,
                       const cc::Handover* handover);
  void dispatch(std::uint32_t index, CongestionContext& context, const cc::Event& event);
  void send_request(std::uint32_t index, const cc::Event& event, bool close);

  // --- queue pairs and peers ---
  // Finds or makes the peer entry and the context that the queue pair's data is charged to.
  void attach(QueuePair& qp, const wire::IpAddress& ip, const wire::MacAddress& mac);
  void detach(QueuePair& qp);
  // The same for an address handle, whose path is set. The context is that of all handles to the
  // peer and class.
  void attach(AddressHandle& handle);
  void detach(AddressHandle& handle);
  // Forgets what the context has learned: a fresh flow on an old queue pair. No effect on a context
  // shared by several queue pairs.
  void restart(QueuePair& qp);
  // Selective repeat with a peer that speaks XACK, where this end offers it, too.
  void offer_selective(QueuePair& qp);

  // --- another setup, under way (congestion_change.cc) ---
  // Why this engine cannot go over to `setup`; empty: it can.
  std::string refusal(const CcSetup& setup) const;
  std::string refusal(const ArmsByPeer& arms) const;
  // Values are in force from here on; contexts hear of it, and change their algorithm, one by one
  // over the next kChangeRtts round trips. `setup` is not refused.
  void reconfigure(const CcSetup& setup, std::uint8_t arm, std::uint8_t epoch);
  // The same with two arms at a time. What changes its arm does so when it hears of it.
  void reconfigure(const ArmsByPeer& arms, std::uint8_t epoch);
  // Of two: the one that this port's own cluster has.
  const CcSetup& setup() const { return setup_on(own_arm_); }
  std::uint64_t generation() const { return generation_; }
  // Some contexts have not heard of the newest setup.
  bool changing() const { return change_.visited != change_.places(); }
  // Why a plug-in is not called any more; `none`: it is, or never was asked.
  cc::plugin::Offence quarantined(cc::AlgorithmId id) const {
    if (!cc::is_plugin(id)) return cc::plugin::Offence::none;
    const auto& guard = guards_[static_cast<unsigned>(id) - cc::kAlgorithms];
    return guard == nullptr ? cc::plugin::Offence::none : guard->quarantined;
  }
  // What the context of this peer's traffic shall run.
  cc::AlgorithmId algorithm_for(const Peer& peer) const {
    const CcSetup& setup = setup_on(peer.arm);
    return proactive_ && peer.status != PeerStatus::native && is_proactive(setup.primary.algorithm)
               ? setup.fallback.algorithm
               : setup.primary.algorithm;
  }

  // --- messages ---
  void on_control(const wire::ParsedPacket& parsed, const Packet& packet);
  // A CNP for a UD queue pair, from a peer that datagrams were sent to.
  void on_datagram_cnp(const wire::IpAddress& source);
  // How many peers have connections here, as they are told (crowd_of).
  std::uint8_t crowd() const { return crowd_; }
  // What a peer says of its own. Peers that are not known here are none of ours.
  void hear_crowd(const wire::IpAddress& ip, std::uint8_t traffic_class, std::uint8_t crowd);
  // Bytes that came outside any channel, for the receiver's plan.
  void count_foreign(std::uint32_t wire_bytes) { core_.foreign_bytes += wire_bytes; }
  // Data that came in: into its channel, which its sender's algorithm is responsible for, as far as
  // it has one here.
  void count_data(cc::ChannelCounters* counters, const wire::ParsedPacket& parsed,
                  const Packet& packet) {
    if (counters == nullptr) {
      count_foreign(packet.wire_bytes);
      return;
    }
    counters->rx_bytes += packet.wire_bytes;
    ++counters->rx_packets;
    if (parsed.ecn == Ecn::ce) {
      ++counters->ce_packets;
      counters->last_marked_entropy = parsed.udp_source_port;
    }
  }
  bool sender_due() const {
    return sender_ != nullptr && sender_->next_wake() <= to_nanos(core_.now);
  }

  // Runs HELLO retries and the port-level halves. poll_sender again after events.
  void poll();
  void poll_sender();
  Picos next_deadline() const;

  // First invariant found broken since start, or empty. Filled only with check_invariants.
  const std::string& violation() const { return violation_; }

 private:
  bool offers_selective() const {
    return core_.config.reliability == Reliability::selective && core_.config.speak_control;
  }
  // A change of setup under way: which queue pair is next to hear of it, address handles after
  // them, and when.
  struct Change {
    Picos begin{0};
    std::uint32_t first = 0;    // where it began: the one before may not have come to an end
    std::uint32_t visited = 0;  // places from there on
    std::uint32_t queue_pairs = 0;
    std::uint32_t handles = 0;
    Picos resume_at{0};            // the last poll had its fill
    Picos receiver_until{kNever};  // peers that are late to leave are granted until then

    std::uint32_t places() const { return queue_pairs + handles; }
    std::uint32_t next() const { return (first + visited) % places(); }
  };

  void enter_fallback(CongestionContext& context, const cc::Event& event);
  void begin_fallback(CongestionContext& context, const cc::Event& event);
  void update_sender(std::uint32_t index, const CongestionContext& context);
  std::uint32_t make_context(std::uint32_t peer, cc::AlgorithmId algorithm,
                             std::uint8_t traffic_class, std::uint8_t arm,
                             const cc::Handover* handover);
  void join_context(QueuePair& qp, cc::AlgorithmId algorithm, const cc::Handover* handover);
  static bool has_channels(cc::AlgorithmId algorithm);
  std::uint32_t find_or_add_peer(const wire::IpAddress& ip, const wire::MacAddress& mac,
                                 std::uint8_t traffic_class);
  void leave_context(QueuePair& qp);
  void leave_context(std::uint32_t index);
  void forget_peer(std::uint32_t index);
  void upgrade(std::uint32_t peer_index);
  // Two setups at a time: from the first time on that there were.
  struct SecondArm {
    CcSetup setup;
    ClusterTable clusters;
    std::array<std::uint8_t, telemetry::kMostClusters> arm_of{};
    bool in_force = false;
  };
  const CcSetup& setup_on(std::uint8_t arm) const {
    return arm != 0 && second_ != nullptr ? second_->setup : setup_;
  }
  // The number that telemetry and REQUESTs have for an arm.
  std::uint8_t number_of(std::uint8_t arm) const {
    return second_ != nullptr && second_->in_force ? arm : arm_;
  }
  static bool is_proactive(cc::AlgorithmId id);
  std::uint8_t governing_arm() const;
  void place(Peer& peer) const;
  struct Before {
    bool proactive = false;
    bool grants = false;
    cc::AlgorithmId receiving{};
    cc::AlgorithmId governing{};
  };
  Before before_change() const {
    return {proactive_, grants_, setup().primary.algorithm,
            setup_on(governing_arm()).primary.algorithm};
  }
  void begin_change(const Before& before);
  void take_values(const CcSetup& setup, ParamTable& into);
  void make_port_parts();
  Picos change_due() const;
  void go_on_changing();
  void finish_change();
  void drop_receiver();
  void greet_again();
  cc::Handover hand_over(const CongestionContext& context, const QueuePair* qp) const;
  void tell_context(std::uint32_t index, CongestionContext& context);
  void bring_home(QueuePair& qp);
  void bring_home(AddressHandle& handle);
  void convert(std::uint32_t index, cc::AlgorithmId target, const cc::Handover& handover);
  void move(QueuePair& qp, cc::AlgorithmId target);
  void move(AddressHandle& handle, cc::AlgorithmId target);
  void close_channel(std::uint32_t index);
  Rate part_of(CongestionContext& context, Rate rate);
  void settle_left(std::uint32_t index, bool had_work);
  std::uint64_t leave_datagrams(const AddressHandle& handle);
  // Peers are told of the crowd by HELLO. Without HELLO, by grants alone.
  bool tells_crowd() const {
    return core_.receiver != nullptr && core_.config.peers == PeerPolicy::discover &&
           core_.config.speak_control;
  }
  static bool awaits_hello(const Peer& peer) {
    return peer.status == PeerStatus::unknown || peer.greeting;
  }
  std::uint32_t features() const;
  void send_hello(std::uint32_t index);
  void on_hello(const wire::ParsedPacket& parsed, const Packet& packet);
  void poll_receiver();
  void watch_plugin(cc::ParamBlock& params);
  void hear_guards();
  void leave_plugin(cc::AlgorithmId id);
  void on_request(const wire::ParsedPacket& parsed, const RequestMessage& request);
  void use_features(std::uint32_t index, std::uint32_t theirs);
  void hear_crowd(std::uint32_t index, std::uint8_t crowd);
  void count_crowd();
  void greet(std::uint32_t index);

  template <class Message>
  void send_control(const wire::HeaderTemplate& header, const Message& message,
                    std::uint64_t& counter);

  EngineCore& core_;
  Scheduler& scheduler_;
  std::unique_ptr<cc::PortSender> sender_;
  std::vector<std::uint32_t> waiting_hello_;
  std::uint32_t control_sequence_ = 0;
  std::uint32_t connected_ = 0;  // entries of the peer table that queue pairs or handles name
  std::uint8_t crowd_ = 0;       // what peers are told of that
  bool proactive_ = false;       // an arm of it is: contexts may be channels
  bool grants_ = false;          // its own arm is: it has a receiving half
  std::uint8_t own_arm_ = 0;
  // Of plug-ins that have been an algorithm here, by their number; kept, so that one in quarantine
  // stays there.
  std::array<std::unique_ptr<cc::plugin::Guard>, cc::kMaxPlugins> guards_;
  bool plugin_news_ = false;  // a guard has something to say
  bool has_plugins_ = false;
  CcSetup setup_;  // the only one, or that of arm 0
  std::unique_ptr<SecondArm> second_;
  std::uint64_t generation_ = 1;
  std::uint8_t arm_ = 0;    // of contexts, from the first change on
  std::uint8_t epoch_ = 0;  // likewise
  Change change_;
  std::string violation_;
};

}  // namespace paceline::transport
