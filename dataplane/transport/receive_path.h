// Incoming packets: each is parsed, counted, and given to the machine that it is for.
#pragma once

#include <cstddef>
#include <span>

#include "dataplane/transport/congestion/congestion_manager.h"
#include "dataplane/transport/congestion/grant_exchange.h"
#include "dataplane/transport/congestion/migration.h"
#include "dataplane/transport/congestion/peer_directory.h"
#include "dataplane/transport/core/engine_core.h"
#include "dataplane/transport/ends/requester.h"
#include "dataplane/transport/ends/responder.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class ReceivePath {
 public:
  ReceivePath(EngineCore& core, Requester& requester, Responder& responder, GrantExchange& grants,
              CongestionManager& congestion, PeerDirectory& peers, Migration& migration)
      : core_(core),
        requester_(requester),
        responder_(responder),
        grants_(grants),
        congestion_(congestion),
        peers_(peers),
        migration_(migration) {}

  // Takes ownership of the packet.
  void receive(Packet* packet) {
    take(packet);
    congestion_.perform();
  }
  // The same for packets that carry their time of arrival.
  void receive_stamped(std::span<Packet* const> burst);

 private:
  void take(Packet* packet);
  void receive_trimmed(const Packet& packet);
  void receive_control(const wire::ParsedPacket& parsed, const Packet& packet);
  void receive_datagram(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet);
  bool ends_target(QueuePair& qp, wire::Aeth aeth, Psn psn);
  bool from_peer(const QueuePair& qp, const wire::ParsedPacket& parsed) const;
  void count_data(const QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);

  EngineCore& core_;
  Requester& requester_;
  Responder& responder_;
  GrantExchange& grants_;
  CongestionManager& congestion_;
  PeerDirectory& peers_;
  Migration& migration_;
};

}  // namespace paceline::transport
