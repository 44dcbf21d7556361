#include "tools/tuning/tuner_window.h"

#include <algorithm>

#include "dataplane/base/numbers/math.h"

namespace paceline::tools {

using tuner::online::Window;

WindowReader::WindowReader(const config::Scenario& scenario, VirtualWorld& world)
    : scenario_(scenario),
      world_(world),
      yardstick_(scenario, world.network().spec(), world.network().topology()),
      before_(world.hosts()),
      pairs_(std::size_t{world.hosts()} * world.hosts()) {
  for (std::uint32_t link = 0; link < world.network().links(); ++link) {
    if (world.network().egress_stats(link)) switch_links_.push_back(link);
  }
}

void WindowReader::glance(Picos now) {
  for (const std::uint32_t link : switch_links_) {
    deepest_ = std::max(deepest_, world_.network().queue_bytes(link, now));
  }
  // The largest number of hosts that have a message in flight to the same host.
  ++glances_;
  std::vector<std::uint32_t> senders(world_.hosts());
  for (const std::uint32_t id : open_) {
    if (world_.records()[id].completed.count >= 0) continue;
    const PlannedMessage& message = world_.plan().messages[id];
    std::uint32_t& seen = pairs_[std::size_t{message.dst} * world_.hosts() + message.src];
    if (seen == glances_) continue;
    seen = glances_;
    senders_ = std::max(senders_, ++senders[message.dst]);
  }
}

void WindowReader::read_messages(Picos now, Window& window) {
  const auto& messages = world_.plan().messages;
  const auto& records = world_.records();
  while (next_ < messages.size() && messages[next_].start < now) {
    auto& figures = window.messages[telemetry::message_size(messages[next_].bytes)];
    ++figures.begun;
    figures.begun_bytes += messages[next_].bytes;
    open_.push_back(next_++);
  }
  std::erase_if(open_, [&](std::uint32_t id) {
    if (records[id].completed.count < 0) return false;
    const PlannedMessage& message = messages[id];
    auto& figures = window.messages[telemetry::message_size(message.bytes)];
    if (records[id].failed) {
      ++figures.failed;
      return true;
    }
    // From when it was due: waiting for an earlier message to the same host is part of it.
    const Picos took = records[id].completed - message.start;
    const double slowdown = std::max(
        1.0,
        static_cast<double>(took.count) /
            static_cast<double>(yardstick_.fct(message.src, message.dst, message.bytes).count));
    const double octaves = det_log(slowdown) / det_log(2);
    ++figures.completed;
    figures.completed_bytes += message.bytes;
    figures.fct_ns += static_cast<std::uint64_t>(took.count / 1000);
    figures.log2_slowdown +=
        static_cast<std::uint64_t>(octaves * static_cast<double>(telemetry::kLogUnit));
    ++figures.slowdown[std::min(static_cast<std::size_t>(octaves * 8),
                                telemetry::kSlowdownBuckets - 1)];
    return true;
  });
}

void WindowReader::read_hosts(Window& window) {
  for (std::uint32_t host = 0; host < world_.hosts(); ++host) {
    const telemetry::EngineCounters c = world_.engine(host).counters();
    const Totals now{c.tx_data_bytes, c.rx_data_bytes, c.tx_data_packets,      c.rx_data_packets,
                     c.rx_ce_packets, c.cnps_received, c.retransmitted_packets};
    const Totals was = std::exchange(before_[host], now);
    // Load and marks are those of the NIC that received most.
    if (now.rx_bytes - was.rx_bytes >= window.rx_bytes) {
      window.rx_bytes = now.rx_bytes - was.rx_bytes;
      window.rx_packets = now.rx_packets - was.rx_packets;
      window.ce_packets = now.ce - was.ce;
    }
    window.tx_bytes = std::max(window.tx_bytes, now.tx_bytes - was.tx_bytes);
    window.tx_packets = std::max(window.tx_packets, now.tx_packets - was.tx_packets);
    window.cnps_received += now.cnps - was.cnps;
    window.retransmitted += now.retransmitted - was.retransmitted;
  }
}

Window WindowReader::window(Picos now, std::uint64_t order) {
  glance(now);
  Window out;
  out.begin_ns = begin_.count / 1000;
  out.end_ns = now.count / 1000;
  out.order = order;
  out.line_bps = scenario_.fabric.rate.bps;
  read_messages(now, out);
  read_hosts(out);
  const std::uint64_t dropped = world_.network().stats().total_drops();
  out.dropped = dropped - std::exchange(dropped_, dropped);
  const Picos paused = world_.network().pause_time(now);
  // Pauses are counted over all links; this is a host's share of them.
  out.paused_ns = static_cast<std::uint64_t>((paused - std::exchange(paused_, paused)).count /
                                             1000 / world_.hosts());
  out.queue_p99_bytes = static_cast<double>(std::exchange(deepest_, 0));
  out.senders = std::exchange(senders_, 0);
  begin_ = now;
  return out;
}

}  // namespace paceline::tools
