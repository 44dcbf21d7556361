// Counts messages of a NIC, and beside that by the cluster that their data goes to, where receivers
// are in clusters (cluster_figures.h). Two meters at most hear of a message. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "dataplane/telemetry/cluster_figures.h"
#include "dataplane/telemetry/message_meter.h"

namespace paceline::telemetry {

class NicMeter {
 public:
  explicit NicMeter(const MessageIdeal& ideal) : ideal_(ideal), all_(ideal) {}

  // Of messages posted from now on. 0: none.
  void set_epoch(std::uint8_t epoch) {
    all_.set_epoch(epoch);
    if (clusters_ == nullptr) return;
    for (Cluster& cluster : *clusters_) cluster.meter.set_epoch(epoch);
  }
  // From now on messages are counted by so many clusters, too; 0: no more. `own`: that of this
  // NIC's port. Allocates the first time. What was counted stays.
  void use_clusters(std::uint32_t count, std::uint8_t own) {
    used_ = count;
    own_ = own;
    if (count == 0 || clusters_ != nullptr) return;
    clusters_ = std::make_unique<Clusters>();
    for (Cluster& cluster : *clusters_) {
      cluster.meter = MessageMeter(ideal_);
      cluster.meter.set_epoch(all_.epoch());
    }
  }
  std::uint32_t clusters() const { return used_; }
  std::uint8_t own_cluster() const { return own_; }

  // `cluster`: that the data goes to; any that is not in use: none.
  MessageBegun begin(std::uint64_t now_ns, std::uint64_t bytes, std::uint8_t cluster) {
    MessageBegun begun = all_.begin(now_ns, bytes);
    if (cluster >= used_) return begun;
    begun.cluster = cluster;
    Cluster& of = (*clusters_)[cluster];
    of.meter.begin(now_ns, bytes);
    of.packets += packets_of(bytes);
    return begun;
  }
  // Once for each that began.
  void end(MessageBegun& message, std::uint64_t now_ns, MessageEnd how) {
    MessageBegun same = message;
    all_.end(message, now_ns, how);
    if (same.cluster == kNoCluster) return;
    (*clusters_)[same.cluster].meter.end(same, now_ns, how);
  }

  MessageMeter& all() { return all_; }
  // Below clusters().
  MessageMeter& of(std::size_t cluster) { return (*clusters_)[cluster].meter; }
  // Data packets of the messages that began, each once.
  std::uint64_t packets_to(std::size_t cluster) const { return (*clusters_)[cluster].packets; }

 private:
  struct Cluster {
    MessageMeter meter;
    std::uint64_t packets = 0;
  };
  using Clusters = std::array<Cluster, kMostClusters>;

  // A message without payload is a packet, too.
  std::uint64_t packets_of(std::uint64_t bytes) const {
    const std::uint64_t mtu = ideal_.mtu_bytes == 0 ? 1 : ideal_.mtu_bytes;
    return bytes == 0 ? 1 : (bytes + mtu - 1) / mtu;
  }

  MessageIdeal ideal_;
  MessageMeter all_;
  std::uint32_t used_ = 0;
  std::uint8_t own_ = kNoCluster;
  std::unique_ptr<Clusters> clusters_;
};

}  // namespace paceline::telemetry
