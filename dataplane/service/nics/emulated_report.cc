// What emulated NICs tell of themselves and of the fabric between them.
#include <cassert>

#include "dataplane/service/nics/emulated_nics.h"
#include "dataplane/service/nics/nic_info.h"

namespace paceline::service {

namespace {

void fill(DepthReport& out, const Histogram& depth) {
  out.packets = depth.count();
  out.mean = depth.mean();
  out.p50 = depth.quantile(0.5);
  out.p99 = depth.quantile(0.99);
  out.most = depth.max();
}

}  // namespace

NicSetReport EmulatedNics::blank_report() const {
  NicSetReport report;
  report.algorithm = algorithm_;
  for (const Host& host : hosts_) report.nics.push_back({host.nic.info.name.data(), {}});
  FabricReport& out = report.fabric;
  out.emulated = true;
  for (std::size_t i = 0; i < fabric::kDropReasons; ++i) {
    out.drops.push_back({fabric::to_string(static_cast<fabric::DropReason>(i)), 0});
  }
  const fabric::FabricSpec& spec = network_.spec();
  const auto node = [&](std::uint32_t number) {
    if (number < spec.hosts) return std::string(hosts_[number].nic.info.name.data());
    std::string name("switch");
    name += std::to_string(number - spec.hosts);
    return name;
  };
  for (const fabric::LinkSpec& link : spec.links) {
    for (const auto& [from, to] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
      if (from < spec.hosts) continue;
      QueueReport& queue = out.queues.emplace_back();
      queue.from = node(from);
      queue.to = node(to);
    }
  }
  return report;
}

void EmulatedNics::describe(Picos now, NicSetReport& report) {
  catch_up(now);
  network_.finish(now);
  report.at = now;
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    report.nics[h].counters = hosts_[h].engine->counters();
    report.nics[h].capture = {};
    if (hosts_[h].captured != nullptr) report.nics[h].capture = capture_report(*hosts_[h].captured);
  }
  const fabric::NetworkStats& stats = network_.stats();
  FabricReport& out = report.fabric;
  out.injected_packets = stats.injected_packets;
  out.delivered_packets = stats.delivered_packets;
  out.marked_packets = stats.marked_packets;
  out.trimmed_packets = stats.trimmed_packets;
  out.corrupted_packets = stats.corrupted_packets;
  out.duplicated_packets = stats.duplicated_packets;
  out.reordered_packets = stats.reordered_packets;
  out.link_failures = stats.link_failures;
  out.pause_frames = stats.pause_frames;
  out.pause_time = stats.pause_time;
  out.buffer_most = stats.buffer_used_max;
  for (std::size_t i = 0; i < fabric::kDropReasons; ++i) out.drops[i].packets = stats.drops[i];
  fill(out.last_hop, network_.last_hop_depth());
  fill(out.core, network_.core_depth());
  std::size_t next = 0;
  for (std::uint32_t link = 0; link < network_.links(); ++link) {
    const auto egress = network_.egress_stats(link);
    if (!egress) continue;
    assert(next < out.queues.size());
    QueueReport& queue = out.queues[next++];
    queue.queued_bytes = egress->queued_bytes;
    queue.most_bytes = egress->max_bytes;
    queue.mean_bytes = egress->mean_bytes;
    queue.packets = egress->packets;
    queue.bytes = egress->bytes;
    queue.marked = egress->marked;
    queue.drops = egress->drops;
    queue.paused = egress->pause_time;
  }
  next_ = wheel_.next_time();
}

std::optional<LastHop> EmulatedNics::last_hop(Picos now, std::size_t index) {
  const auto host = static_cast<std::uint32_t>(index);
  const std::uint32_t down = network_.topology().host_downlink(host);
  const std::uint64_t queued = network_.queue_bytes(down, now);  // decides what left before now
  next_ = wheel_.next_time();
  const auto egress = network_.egress_stats(down);
  if (!egress) return std::nullopt;  // the other end is a host
  LastHop out;
  out.queue_bytes = queued;
  out.queue_max_bytes = egress->max_bytes;
  out.marked = egress->marked;
  out.drops = egress->drops;
  out.paused = network_.link_pause_time(network_.topology().host_uplink(host), now);
  return out;
}

}  // namespace paceline::service
