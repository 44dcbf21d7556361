// The parts of a proactive algorithm that exist once per port: the arbiter that divides the uplink
// among contexts, and the receiving half that grants to peers. Exchanges REQUEST and GRANT.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cc/interface/event.h"
#include "cc/interface/uplink_arbiter.h"
#include "dataplane/transport/congestion/congestion_setups.h"
#include "dataplane/transport/congestion/control_messages.h"
#include "dataplane/transport/congestion/peer_directory.h"
#include "dataplane/transport/core/engine_core.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class GrantExchange {
 public:
  // Makes the halves that the setup asks for.
  GrantExchange(EngineCore& core, const CongestionSetups& setups, const PeerDirectory& peers,
                ControlMessages& messages);

  // --- sending: the uplink; a context by its index ---
  void send_request(std::uint32_t index, const cc::Event& event, bool close);
  // The context's demand on the uplink may have changed.
  void update_want(std::uint32_t index, const CongestionContext& context);
  void forget_context(std::uint32_t index);
  bool uplink_due() const {
    return uplink_ != nullptr && uplink_->next_wake() <= to_nanos(core_.now);
  }
  // Writes new shares of the uplink for the caller to deliver. Fewer than fit: there are no more.
  std::size_t poll_uplink(std::span<cc::ShareOutput> out);
  // With EngineConfig::check_invariants: call it after all shares are delivered.
  void check_uplink();
  // The context of the channel that a GRANT is for; kNoIndex (counted): there is no such channel.
  std::uint32_t context_of(const wire::IpAddress& source, std::uint8_t traffic_class,
                           std::uint16_t channel);

  // --- receiving: the downlink ---
  void on_request(const wire::ParsedPacket& parsed, const RequestMessage& request);
  // Bytes that arrived outside any channel, for the receiver's plan.
  void count_unaccounted(std::uint32_t wire_bytes) { core_.unaccounted_bytes += wire_bytes; }
  // Counts arrived data in its channel, if its sender has one here. The sender's algorithm is
  // responsible for that channel.
  void count_data(cc::ChannelCounters* counters, const wire::ParsedPacket& parsed,
                  const Packet& packet) {
    if (counters == nullptr) {
      count_unaccounted(packet.wire_bytes);
      return;
    }
    counters->rx_bytes += packet.wire_bytes;
    ++counters->rx_packets;
    if (parsed.ecn == Ecn::ce) {
      ++counters->ce_packets;
      counters->last_marked_entropy = parsed.udp_source_port;
    }
  }
  // No queue pair or handle names the peer any more.
  void forget_peer(std::uint32_t index);
  // Sends the GRANTs and PATHs that are due.
  void poll_downlink();

  // --- another setup ---
  // The halves serve the new setup from here on. `before`: the setup that it replaced.
  void take_setup(const CongestionSetups::Before& before);
  // All contexts follow the setup now. True: the receiving half still serves peers that are late.
  bool settle();
  // Peers that still ask get no answer any more: their fallback decides for them.
  void drop_downlink();

  // At least one of the halves exists.
  bool active() const { return core_.receiver != nullptr || uplink_ != nullptr; }
  Picos next_deadline() const;
  // The first invariant that was found violated since the start, or empty. Needs check_invariants.
  const std::string& violation() const { return violation_; }

 private:
  void make_halves();

  EngineCore& core_;
  const CongestionSetups& setups_;
  const PeerDirectory& peers_;
  ControlMessages& messages_;
  std::unique_ptr<cc::UplinkArbiter> uplink_;
  std::string violation_;
};

}  // namespace paceline::transport
