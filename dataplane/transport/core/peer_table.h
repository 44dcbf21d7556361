// Peers: one entry per (peer address, traffic class). Remembers what the far side speaks, its
// proactive channel, and where its data is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include "cc/interface/downlink_allocator.h"
#include "dataplane/base/units.h"
#include "dataplane/telemetry/cluster_figures.h"
#include "dataplane/wire/headers/addresses.h"
#include "dataplane/wire/packet/build.h"

namespace paceline::transport {

enum class PeerStatus : std::uint8_t {
  unknown,   // HELLO not answered yet; treated as roce meanwhile
  paceline,  // speaks the control protocol
  roce,      // plain RoCEv2: reactive algorithm, go-back-N, one path
};

struct Peer {
  wire::IpAddress ip{};
  wire::MacAddress mac{};
  std::uint8_t traffic_class = 0;
  PeerStatus status = PeerStatus::unknown;
  bool selective = false;       // it speaks XACK
  bool telemetry = false;       // and returns records of switches in them
  EcnEcho echo = EcnEcho::cnp;  // what it expects in return for CE-marked data
  std::uint8_t hellos_sent = 0;
  Picos next_hello{0};
  std::uint32_t queue_pairs = 0;        // local queue pairs and address handles that name it
  std::uint32_t context = 0xFFFF'FFFF;  // proactive channel to it, shared by those queue pairs
  std::uint32_t datagram_context = 0xFFFF'FFFF;  // of its address handles, if it differs
  cc::ChannelCounters* counters = nullptr;       // its channel towards us
  wire::HeaderTemplate control;                  // control packets to it
  std::uint32_t features = 0;                    // of its HELLO
  bool heard = false;                            // it said HELLO
  bool greeting = false;                         // is to be told again what this end can do
  std::uint8_t peer_count_hint = 0;  // how many peers it said that it has; 0: it said nothing
  std::uint8_t told = 0;             // our peer-count hint that it was last told
  // If receivers are in clusters, each with a setup (arms.h): the peer's cluster, and the number of
  // its setup.
  std::uint8_t cluster = telemetry::kNoCluster;
  std::uint8_t setup_slot = 0;
};

class PeerTable {
 public:
  explicit PeerTable(std::pmr::memory_resource& memory) : peers_(&memory) {}

  // Index of the entry, created if new (then status is unknown and `created` true).
  std::uint32_t find_or_add(const wire::IpAddress& ip, const wire::MacAddress& mac,
                            std::uint8_t traffic_class, bool& created) {
    const Key key{ip, traffic_class};
    const auto [it, inserted] = index_.try_emplace(key, static_cast<std::uint32_t>(peers_.size()));
    created = inserted;
    if (inserted) {
      Peer& peer = peers_.emplace_back();
      peer.ip = ip;
      peer.mac = mac;
      peer.traffic_class = traffic_class;
    }
    return it->second;
  }

  // 0xFFFFFFFF when no local queue pair ever named it.
  std::uint32_t find(const wire::IpAddress& ip, std::uint8_t traffic_class) const {
    const auto it = index_.find(Key{ip, traffic_class});
    return it == index_.end() ? 0xFFFF'FFFF : it->second;
  }

  Peer& operator[](std::uint32_t index) { return peers_[index]; }
  const Peer& operator[](std::uint32_t index) const { return peers_[index]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(peers_.size()); }

 private:
  struct Key {
    wire::IpAddress ip;
    std::uint8_t traffic_class;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return static_cast<std::size_t>(wire::hash_value(key.ip) + key.traffic_class);
    }
  };
  std::pmr::vector<Peer> peers_;
  std::unordered_map<Key, std::uint32_t, KeyHash> index_;  // looked up, never iterated
};

}  // namespace paceline::transport
