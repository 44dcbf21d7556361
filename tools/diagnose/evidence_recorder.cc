#include "tools/diagnose/evidence_recorder.h"

#include <algorithm>
#include <optional>

#include "dataplane/telemetry/segment.h"
#include "tools/diagnose/pair_evidence.h"

namespace paceline::tools {

namespace {

using diagnosis::PairEvidence;

constexpr double kGlanceUs = static_cast<double>(EvidenceRecorder::kGlance.count) / 1e6;

// The number of the NIC that has this address.
std::uint32_t nic_of(const fabric::FabricSpec& spec, const wire::IpAddress& ip) {
  return fabric::host_of(spec, ip) % spec.nics();
}

}  // namespace

EvidenceRecorder::Look EvidenceRecorder::look_at(VirtualWorld& world, Picos at) const {
  Look look;
  look.at = at;
  look.nics.resize(world.hosts());
  for (std::uint32_t nic = 0; nic < world.hosts(); ++nic) {
    const transport::EngineView view = world.engine(nic).view();
    telemetry::QueuePairRecord record;
    for (std::uint32_t qp = view.next_qp(0); qp != 0; qp = view.next_qp(qp)) {
      if (!view.describe_qp(at, qp, record)) continue;
      Counters& counters = look.nics[nic].emplace_back();
      counters.bytes = record.tx_bytes;
      counters.timeouts = static_cast<std::uint32_t>(record.timeouts);
      counters.losses = static_cast<std::uint32_t>(losses_of(world.scenario(), record));
      counters.marks = static_cast<std::uint32_t>(record.cnps_received);
      counters.rtt_ns = static_cast<std::uint32_t>(record.srtt_ns);
    }
  }
  look_at_ports(world, look);
  return look;
}

// What `ethtool -S` shows of a NIC: how long it told its switch to pause, and data by class.
void EvidenceRecorder::look_at_ports(VirtualWorld& world, Look& look) const {
  const fabric::Network& network = world.network();
  const fabric::FabricSpec& spec = network.spec();
  look.ports.resize(world.hosts());
  for (std::uint32_t endpoint = 0; endpoint < spec.hosts; ++endpoint) {
    const std::uint32_t uplink = network.topology().host_uplink(endpoint);
    PortCounters& counters = look.ports[endpoint % spec.nics()];
    counters.pausing += network.link_pause_time(uplink ^ 1U, look.at);
    counters.reclassed += network.reclassed_packets(uplink);
  }
  for (std::uint32_t nic = 0; nic < world.hosts(); ++nic) {
    const telemetry::EngineCounters& counters = world.engine(nic).counters();
    const std::uint64_t control = spec.wire.wire_bytes(64, 0);
    look.ports[nic].sent_bytes = counters.tx_wire_bytes + counters.tx_control_packets * control;
    look.ports[nic].received_bytes = counters.rx_data_bytes;
    look.ports[nic].received = counters.rx_data_packets;
    look.ports[nic].marked = counters.rx_ce_packets;
    look.ports[nic].glances = nic < sending_.size() ? sending_[nic] : 0;
  }
}

// Whether the transmitter of a NIC is at a packet now. NICs of several ports are not measured:
// which port a packet leaves by is decided before it does.
void EvidenceRecorder::glance(VirtualWorld& world, Picos at) {
  if (world.network().spec().hosts != world.hosts()) return;
  sending_.resize(world.hosts());
  for (std::uint32_t nic = 0; nic < world.hosts(); ++nic) {
    const Picos ready = world.network().host_port(nic).tx_ready_at(0);
    if (ready != kNever && at < ready) ++sending_[nic];
  }
}

// Queues lengthen round trips for a while, so the shortest of a window tells most about the path.
void EvidenceRecorder::keep_least(const Look& dropped, Look& kept) {
  for (std::size_t nic = 0; nic < dropped.nics.size(); ++nic) {
    for (std::size_t qp = 0; qp < dropped.nics[nic].size(); ++qp) {
      const Counters& before = dropped.nics[nic][qp];
      Counters& now = kept.nics[nic][qp];
      if (before.rtt_ns != 0 && before.rtt_ns < now.rtt_ns) now.rtt_ns = before.rtt_ns;
    }
  }
}

void EvidenceRecorder::look(VirtualWorld& world, Picos at) {
  glance(world, at);
  if (at < next_) return;
  looks_.push_back(look_at(world, at));
  if (looks_.size() == kMostWindows) {
    std::size_t kept = 0;
    for (std::size_t i = 1; i < looks_.size(); i += 2) {
      keep_least(looks_[i - 1], looks_[i]);
      looks_[kept++] = std::move(looks_[i]);
    }
    looks_.resize(kept);
    distance_ = distance_ + distance_;
  }
  next_ = looks_.back().at + distance_;
}

void EvidenceRecorder::finish(VirtualWorld& world, diagnosis::Evidence& out) {
  if (looks_.empty() || looks_.back().at < world.now()) {
    looks_.push_back(look_at(world, world.now()));
  }
  for (const Look& look : looks_) out.window_ends.push_back(look.at);
  for (std::uint32_t nic = 0; nic < world.hosts(); ++nic) {
    PortCounters before;
    for (const Look& look : looks_) {
      const PortCounters& now = look.ports[nic];
      out.nics[nic].windows.push_back(
          {static_cast<double>((now.pausing - before.pausing).count) / 1e6,
           now.reclassed - before.reclassed,
           static_cast<double>(now.sent_bytes - before.sent_bytes),
           static_cast<double>(now.glances - before.glances) * kGlanceUs,
           now.received_bytes - before.received_bytes, now.received - before.received,
           now.marked - before.marked});
      before = now;
    }
  }
  const fabric::FabricSpec& spec = world.network().spec();
  const DescribedPaths paths(world.scenario(), spec);
  for (std::uint32_t nic = 0; nic < world.hosts(); ++nic) {
    const transport::Engine& engine = world.engine(nic);
    std::size_t place = 0;
    for (std::uint32_t qp = engine.view().next_qp(0); qp != 0; qp = engine.view().next_qp(qp)) {
      const std::size_t at = place++;
      if (looks_.back().nics[nic][at].bytes == 0) continue;
      const auto attributes = engine.query_qp(qp);
      if (!attributes) continue;
      PairEvidence& pair = out.pairs.emplace_back();
      pair.src = nic;
      pair.dst = nic_of(spec, attributes->path.ip);
      paths.describe(attributes->path.source_port, pair);
      Counters before;
      for (const Look& look : looks_) {
        const Counters now = at < look.nics[nic].size() ? look.nics[nic][at] : Counters{};
        diagnosis::PairWindow& window = pair.windows.emplace_back();
        window.bytes = now.bytes - before.bytes;
        window.losses = now.losses - before.losses;
        window.timeouts = now.timeouts - before.timeouts;
        window.marks = now.marks - before.marks;
        window.rtt_ns = window.bytes == 0 ? 0 : now.rtt_ns;
        before = now;
      }
    }
  }
}

}  // namespace paceline::tools
