// Counts messages of a NIC, and also by the cluster that their data goes to, if receivers are in
// clusters (cluster_figures.h). At most two meters count a message. One thread.
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

  // The epoch of messages posted from now on. 0: none.
  void set_epoch(std::uint8_t epoch) {
    all_.set_epoch(epoch);
    if (clusters_ == nullptr) return;
    for (MessageMeter& cluster : *clusters_) cluster.set_epoch(epoch);
  }
  // From now on messages are also counted by cluster, for this number of clusters; 0: no longer.
  // `own`: the cluster of this NIC's port. Allocates the first time. Keeps earlier counts.
  void use_clusters(std::uint32_t count, std::uint8_t own) {
    used_ = count;
    own_ = own;
    if (count == 0 || clusters_ != nullptr) return;
    clusters_ = std::make_unique<Clusters>();
    for (MessageMeter& cluster : *clusters_) {
      cluster = MessageMeter(ideal_);
      cluster.set_epoch(all_.epoch());
    }
  }
  std::uint32_t clusters() const { return used_; }
  std::uint8_t own_cluster() const { return own_; }

  // `cluster`: that the data goes to; any that is not in use: none.
  MessageBegun begin(std::uint64_t now_ns, std::uint64_t bytes, std::uint8_t cluster) {
    MessageBegun begun = all_.begin(now_ns, bytes);
    if (cluster >= used_) return begun;
    begun.cluster = cluster;
    (*clusters_)[cluster].begin(now_ns, bytes);
    return begun;
  }
  // Call it once for each message that began.
  void end(MessageBegun& message, std::uint64_t now_ns, MessageEnd how) {
    MessageBegun same = message;
    all_.end(message, now_ns, how);
    if (same.cluster == kNoCluster) return;
    (*clusters_)[same.cluster].end(same, now_ns, how);
  }

  MessageMeter& all() { return all_; }
  // Below clusters().
  MessageMeter& of(std::size_t cluster) { return (*clusters_)[cluster]; }

 private:
  using Clusters = std::array<MessageMeter, kMostClusters>;

  MessageIdeal ideal_;
  MessageMeter all_;
  std::uint32_t used_ = 0;
  std::uint8_t own_ = kNoCluster;
  std::unique_ptr<Clusters> clusters_;
};

}  // namespace paceline::telemetry
