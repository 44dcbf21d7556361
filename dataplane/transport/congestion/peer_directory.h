// The peers of an engine, the features of each (HELLO), and how many peers of a traffic class have
// connections here. The peers of that class are told this number.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/transport/congestion/congestion_setups.h"
#include "dataplane/transport/congestion/control_messages.h"
#include "dataplane/transport/core/engine_core.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

// Content of a peer's HELLO.
struct PeerNews {
  std::uint32_t peer = kNoIndex;
  std::uint32_t features = 0;
  std::uint8_t peer_count_hint = 0;
};

class PeerDirectory {
 public:
  PeerDirectory(EngineCore& core, const CongestionSetups& setups, ControlMessages& messages);

  // The entry of a peer and class, made if there is none. Counts one more user. May allocate.
  std::uint32_t add(const wire::IpAddress& ip, const wire::MacAddress& mac,
                    std::uint8_t traffic_class);
  // One user less. True: it was the last one.
  bool release(std::uint32_t index);

  // The number of peers of the class with connections here, as told to them (peer_count_hint_of).
  std::uint8_t peer_count_hint(std::uint8_t traffic_class) const { return hints_[traffic_class]; }
  // This end offers selective repeat.
  bool offers_selective() const {
    return core_.config.reliability == Reliability::selective && core_.config.speak_control;
  }

  // Answers a HELLO. Returns what it says about the peer if peers are discovered and the peer has
  // an entry here.
  std::optional<PeerNews> on_hello(const wire::ParsedPacket& parsed, const Packet& packet);
  // Tells the peer that the number of peers has grown since the HELLO that it answered.
  void tell_growth(std::uint32_t index);
  // Sends HELLO to all peers again: this end can do more now.
  void resend_hellos();

  // Some HELLOs wait for an answer.
  bool waiting() const { return !waiting_hello_.empty(); }
  // Sends the HELLOs whose time has come.
  void poll();
  Picos next_deadline() const {
    Picos next = kNever;
    for (const std::uint32_t peer : waiting_hello_) {
      next = earlier(next, core_.peers[peer].next_hello);
    }
    return next;
  }

 private:
  // HELLO tells peers their number. Without HELLO, only grants do.
  bool advertises_peer_count() const {
    return core_.receiver != nullptr && core_.config.peers == PeerPolicy::discover &&
           core_.config.speak_control;
  }
  static bool awaits_hello(const Peer& peer) {
    return peer.status == PeerStatus::unknown || peer.greeting;
  }
  void begin(std::uint32_t index);
  std::uint32_t features() const;
  void send_hello(std::uint32_t index);
  void resend_hello(std::uint32_t index);
  // The number of peers of the class has changed.
  void update_hint(std::uint8_t traffic_class);
  std::uint8_t exact_hint(std::uint8_t traffic_class) const;
  std::uint8_t hint_for(const Peer& peer) const { return hints_[peer.traffic_class]; }

  EngineCore& core_;
  const CongestionSetups& setups_;
  ControlMessages& messages_;
  std::vector<std::uint32_t> waiting_hello_;
  // By class: how many entries of the peer table are named by queue pairs or handles, and the
  // number that their peers were told.
  std::array<std::uint32_t, kTrafficClasses> connected_{};
  std::array<std::uint8_t, kTrafficClasses> hints_{};
};

}  // namespace paceline::transport
