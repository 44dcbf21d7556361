// The control plane of an instance with several shards (shard_link.h), and towards peers that have
// several: a channel of theirs per shard, each of which the allocator treats as a sender.
#include <utility>

#include "dataplane/transport/control_plane.h"

namespace paceline::transport {

void ControlPlane::join_shards(std::unique_ptr<cc::PortSender> governor) {
  ShardLink& link = *core_.config.shards;
  if (core_.config.shard == 0) {
    auto leader = std::make_unique<ShardLeader>(link, std::move(governor));
    leader_ = leader.get();
    sender_ = std::move(leader);
  } else {
    auto follower = std::make_unique<ShardFollower>(link, core_.config.shard);
    follower_ = follower.get();
    sender_ = std::move(follower);
    core_.counts_apart = true;
  }
  core_.tells_shards = true;
  core_.control_active = true;
}

// Where the allocator knows the channel of this REQUEST: shard 0 of a peer by the peer's own index,
// others by entries of their own, made when first heard of.
std::uint32_t ControlPlane::entry_of(std::uint32_t peer, const RequestMessage& request) {
  if (core_.peers[peer].far == nullptr) {
    auto far = std::make_unique<FarShards>();
    far->entries.fill(kNoIndex);
    far->entries[0] = peer;
    far->counters[0] = core_.peers[peer].counters;
    core_.peers[peer].counters = nullptr;
    core_.peers[peer].far = std::move(far);
    core_.counts_apart = true;
  }
  FarShards& far = *core_.peers[peer].far;
  far.bits = request.shard_bits;
  const std::uint32_t shard = shard_of_number(request.channel, request.shard_bits);
  if (far.entries[shard] == kNoIndex) far.entries[shard] = core_.peers.add_shard_of(peer);
  return far.entries[shard];
}

void ControlPlane::count_request(std::uint32_t peer, const RequestMessage& request) {
  const std::uint32_t entry = entry_of(peer, request);
  const std::uint32_t shard = shard_of_number(request.channel, request.shard_bits);
  core_.peers[peer].far->counters[shard] =
      core_.receiver->on_request(to_nanos(core_.now), entry, request);
  if (request.close) core_.peers[peer].far->counters[shard] = nullptr;
}

// nullptr: of no channel.
cc::ChannelCounters* ControlPlane::counters_of(std::uint32_t peer, std::uint32_t far_number) {
  const Peer& of = core_.peers[peer];
  if (of.far == nullptr) return of.counters;
  return of.far->counters[shard_of_number(far_number, of.far->bits)];
}

void ControlPlane::count_apart(std::uint32_t peer, std::uint32_t far_number,
                               const wire::ParsedPacket& parsed, const Packet& packet) {
  if (follower_ != nullptr) {
    follower_->received(peer, far_number, packet.wire_bytes, parsed.ecn == Ecn::ce,
                        parsed.udp_source_port);
    return;
  }
  count_data(counters_of(peer, far_number), parsed, packet);
}

void ControlPlane::hear_shards() {
  if (leader_ != nullptr) {
    leader_->drain(to_nanos(core_.now), [this](std::uint32_t shard, const ShardMessage& message) {
      hear_follower(shard, message);
    });
  }
  if (follower_ != nullptr) {
    follower_->drain([this](const ShardMessage& message) { hear_leader(message); });
  }
}

void ControlPlane::hear_follower(std::uint32_t shard, const ShardMessage& message) {
  if (const auto* added = std::get_if<shard_message::PeerAdded>(&message)) {
    const std::uint32_t own = find_or_add_peer(added->ip, added->mac, added->traffic_class);
    leader_->map_peer(shard, added->peer, own);
    const Peer& peer = core_.peers[own];
    if (peer.echo != EcnEcho::cnp) {
      leader_->tell(shard, shard_message::Echo{added->peer, peer.echo});
    }
    if (peer.heard) {
      leader_->tell(shard, shard_message::Heard{added->peer, peer.features, peer.crowd});
    }
  } else if (const auto* gone = std::get_if<shard_message::PeerGone>(&message)) {
    const std::uint32_t own = leader_->peer_of(shard, gone->peer);
    if (own == kNoIndex) return;
    leader_->map_peer(shard, gone->peer, kNoIndex);
    forget_peer(own);
  } else if (const auto* received = std::get_if<shard_message::Received>(&message)) {
    const std::uint32_t own = leader_->peer_of(shard, received->peer);
    cc::ChannelCounters* const counters =
        own == kNoIndex ? nullptr : counters_of(own, received->far_bits);
    if (counters == nullptr) {
      core_.foreign_bytes += received->bytes;
      return;
    }
    counters->rx_bytes += received->bytes;
    counters->rx_packets += received->packets;
    counters->ce_packets += received->ce_packets;
    if (received->ce_packets != 0) counters->last_marked_entropy = received->last_marked_entropy;
  } else if (const auto* foreign = std::get_if<shard_message::Foreign>(&message)) {
    core_.foreign_bytes += foreign->bytes;
  }
}

void ControlPlane::hear_leader(const ShardMessage& message) {
  if (const auto* echo = std::get_if<shard_message::Echo>(&message)) {
    core_.peers[echo->peer].echo = echo->echo;
  } else if (const auto* heard = std::get_if<shard_message::Heard>(&message)) {
    use_features(heard->peer, heard->features);
    hear_crowd(heard->peer, heard->crowd);
  }
}

void ControlPlane::tell_shards() {
  if (leader_ != nullptr) leader_->flush();
  if (follower_ != nullptr) follower_->flush(core_.foreign_bytes);
}

}  // namespace paceline::transport
