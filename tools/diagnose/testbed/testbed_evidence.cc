#include "tools/diagnose/testbed/testbed_evidence.h"

#include <algorithm>
#include <cstring>

#include "cc/interface/decision.h"
#include "control/diagnosis/robust.h"
#include "tools/diagnose/fabric_evidence.h"

namespace paceline::tools {

namespace {

using diagnosis::Evidence;

// A time over the ideal: how long something was busy, and how long its bytes take at a rate.
double slowness(double busy_ns, double bytes, double rate_bps) {
  return bytes == 0 || rate_bps == 0 ? 0 : busy_ns * rate_bps / (8e9 * bytes);
}

std::uint64_t growth(std::uint64_t before, std::uint64_t now) {
  return now < before ? 0 : now - before;
}

// What a NIC sent, or received, in a part of the time.
struct NicLoad {
  double bytes = 0;
  std::vector<double> busy_ns;  // by queue pair

  void add(double more, double busy) {
    bytes += more;
    busy_ns.push_back(busy);
  }
  double pace(double rate_bps) {
    return busy_ns.empty() ? 0 : slowness(diagnosis::median(busy_ns), bytes, rate_bps);
  }
};

}  // namespace

TestbedEvidence::TestbedEvidence(const config::Scenario& scenario, const fabric::FabricSpec& spec)
    : scenario_(scenario),
      spec_(spec),
      known_(spec.nics()),
      last_(spec.nics()),
      counted_(spec.nics()),
      ports_(spec.nics()) {}

TestbedEvidence::Counters TestbedEvidence::counters_of(
    const telemetry::QueuePairRecord& record) const {
  Counters out;
  out.bytes = record.tx_bytes;
  out.losses = losses_of(scenario_, record);
  out.timeouts = record.timeouts;
  out.marks = record.cnps_received;
  for (std::size_t i = 0; i < record.limiter_ns.size(); ++i) {
    if (i != static_cast<std::size_t>(cc::Limiter::application))
      out.busy_ns += record.limiter_ns[i];
  }
  out.completions = record.completions;
  out.rtt_ns = record.srtt_ns;
  out.inflight = record.inflight_bytes;
  return out;
}

TestbedEvidence::Counters TestbedEvidence::since(const Counters& before, const Counters& now) {
  Counters out = now;
  if (before.bytes <= now.bytes) {  // else the number has gone to another queue pair
    out = {now.bytes - before.bytes,
           growth(before.losses, now.losses),
           growth(before.timeouts, now.timeouts),
           growth(before.marks, now.marks),
           growth(before.busy_ns, now.busy_ns),
           growth(before.completions, now.completions),
           now.rtt_ns,
           now.inflight};
  }
  // Sent and unanswered data may wait in a queue of the fabric: count a round trip for each
  // message.
  out.busy_ns += out.completions * out.rtt_ns;
  return out;
}

// A host that did not answer for some looks counted all along: to each of these windows its part.
void TestbedEvidence::spread(const Counters& grown, std::size_t over,
                             std::vector<Counters>& windows) {
  for (std::size_t i = 0; i < over; ++i) {
    const auto part = [&](std::uint64_t all) { return all * (i + 1) / over - all * i / over; };
    windows[windows.size() - over + i] = {
        part(grown.bytes),   part(grown.losses),      part(grown.timeouts), part(grown.marks),
        part(grown.busy_ns), part(grown.completions), grown.rtt_ns,         grown.inflight};
  }
}

void TestbedEvidence::take(std::uint32_t nic, const telemetry::QueuePairRecord& record) {
  const Key key{nic, std::uint64_t{record.number} << 32U | record.peer_number};
  const auto [at, fresh] = pairs_.try_emplace(key);
  Pair& pair = at->second;
  const Counters now = counters_of(record);
  if (fresh) {
    pair.src = nic;
    static_assert(sizeof(pair.peer.bytes) == sizeof(record.peer));
    std::memcpy(pair.peer.bytes.data(), record.peer.data(), record.peer.size());
    // Counts in the first look are from before it.
    if (!known_[nic].seen) pair.last = now;
  }
  pair.source_port = static_cast<std::uint16_t>(record.source_port);
  if (!ends_.empty() && known_[nic].seen) {
    pair.windows.resize(ends_.size());
    spread(since(pair.last, now), known_[nic].missed + 1, pair.windows);
  }
  pair.last = now;
}

// Sees the NIC for the first time, or behind another service than before.
void TestbedEvidence::meet(std::uint32_t nic, const Sight& sight) {
  Known& known = known_[nic];
  known.name = sight.name;
  known.instance = sight.instance;
  known.hash_known = sight.hash_known;
  for (const wire::IpAddress& address : sight.addresses) owners_.emplace(address, nic);
  if (!known.seen) {
    last_[nic] = sight.status;
    return;
  }
  for (auto& [key, pair] : pairs_) {
    if (key.first == nic) pair.last = {};
  }
  const bool up = last_[nic].up;
  last_[nic] = {};
  last_[nic].up = up;
}

void TestbedEvidence::read_nic(Picos at, std::uint32_t nic, const NicStatus& now) {
  const NicStatus& before = last_[nic];
  if (now.up != before.up) ports_[nic].changes.push_back({at, now.up});
  if (!ends_.empty()) {
    counted_[nic].resize(ends_.size());
    counted_[nic].back() = {
        std::max(0.0, now.pausing_us - before.pausing_us),
        growth(before.reclassed_packets, now.reclassed_packets),
        static_cast<double>(growth(before.sent_wire_bytes, now.sent_wire_bytes)),
        std::max(0.0, now.sending_us - before.sending_us),
        growth(before.received_bytes, now.received_bytes),
        growth(before.received_packets, now.received_packets),
        growth(before.marked_packets, now.marked_packets)};
  }
  last_[nic] = now;
}

void TestbedEvidence::look(Picos at, const std::vector<Sight>& nics) {
  if (begun_) ends_.push_back(at);
  begun_ = true;
  for (std::uint32_t nic = 0; nic < nics.size(); ++nic) {
    const Sight& sight = nics[nic];
    Known& known = known_[nic];
    if (!sight.seen) {
      ++known.missed;
      continue;
    }
    if (!known.seen || known.instance != sight.instance) meet(nic, sight);
    read_nic(at, nic, sight.status);
    for (const telemetry::QueuePairRecord& record : sight.queue_pairs) take(nic, record);
    known.seen = true;
    known.missed = 0;
  }
}

// Which NIC each queue pair sends to. Pairs of UD, and those not connected yet, have no peer.
void TestbedEvidence::find_peers() {
  for (auto at = pairs_.begin(); at != pairs_.end();) {
    const auto owner = owners_.find(at->second.peer);
    if (owner == owners_.end()) {
      at = pairs_.erase(at);
      continue;
    }
    at->second.dst = owner->second;
    ++at;
  }
}

void TestbedEvidence::write_pair(const Pair& from, const DescribedPaths& paths,
                                 Evidence& out) const {
  std::uint64_t bytes = 0, busy_ns = 0;
  for (const Counters& window : from.windows) {
    bytes += window.bytes;
    busy_ns += window.busy_ns;
  }
  if (bytes == 0) return;
  diagnosis::PairEvidence& pair = out.pairs.emplace_back();
  pair.src = from.src;
  pair.dst = from.dst;
  const Known& near = known_[pair.src];
  const Known& far = known_[pair.dst];
  paths.describe(from.source_port, pair,
                 near.hash_known && far.hash_known && near.instance == far.instance);
  for (std::size_t w = 0; w < ends_.size(); ++w) {
    const Counters now = w < from.windows.size() ? from.windows[w] : Counters{};
    diagnosis::PairWindow& window = pair.windows.emplace_back();
    window.bytes = now.bytes;
    window.losses = static_cast<std::uint32_t>(now.losses);
    window.timeouts = static_cast<std::uint32_t>(now.timeouts);
    window.marks = static_cast<std::uint32_t>(now.marks);
    window.rtt_ns = now.bytes == 0 ? 0 : static_cast<std::uint32_t>(now.rtt_ns);
  }
  double& slow = out.slowness[std::size_t{pair.src} * nics() + pair.dst];
  slow = std::max(slow, slowness(static_cast<double>(busy_ns), static_cast<double>(bytes),
                                 out.nics[pair.src].rate_bps));
}

// The queue pairs of a NIC share it at the same time, so the NIC was busy as long as its median
// queue pair; its bytes are those of all queue pairs.
void TestbedEvidence::write_paces(Evidence& out) const {
  const Picos slice = out.until / Evidence::kSlices;
  for (std::uint32_t first = 0; first < Evidence::kSlices; ++first) {
    for (std::uint32_t last = first + 1; last < Evidence::kSlices; ++last) {
      const Picos until = last + 1 == Evidence::kSlices ? kNever : slice * (last + 1);
      out.parts.push_back({first, last});
      std::vector<NicLoad> sent(nics()), received(nics());
      for (const auto& [key, pair] : pairs_) {
        const auto [bytes, busy_ns] = load_of(pair, slice * first, until);
        if (bytes == 0) continue;
        sent[pair.src].add(bytes, busy_ns);
        received[pair.dst].add(bytes, busy_ns);
      }
      for (std::size_t nic = 0; nic < nics(); ++nic) {
        const double rate = out.nics[nic].rate_bps;
        out.nics[nic].paces.push_back({sent[nic].pace(rate), received[nic].pace(rate)});
      }
    }
  }
}

// Records of queue pairs and counters of NICs are some milliseconds apart, in which more bytes go
// than wait: what waits does not follow from what was sent and received.
void TestbedEvidence::write_under_way(Evidence& out) const {
  for (diagnosis::NicEvidence& nic : out.nics) {
    for (diagnosis::NicWindow& window : nic.windows) window.under_way_bytes = 0;
  }
  for (const auto& [key, pair] : pairs_) {
    std::vector<diagnosis::NicWindow>& windows = out.nics[pair.dst].windows;
    for (std::size_t w = 0; w < std::min(windows.size(), pair.windows.size()); ++w) {
      windows[w].under_way_bytes += static_cast<double>(pair.windows[w].inflight);
    }
  }
}

// Bytes of a queue pair in the windows within (from, until], and how long it was busy.
std::pair<double, double> TestbedEvidence::load_of(const Pair& pair, Picos from,
                                                   Picos until) const {
  std::pair<double, double> out{0, 0};
  for (std::size_t w = 0; w < pair.windows.size(); ++w) {
    const Picos begin = w == 0 ? Picos{0} : ends_[w - 1];
    if (begin < from || until < ends_[w]) continue;
    const double most_ns = static_cast<double>((ends_[w] - begin).count) / 1e3;
    out.first += static_cast<double>(pair.windows[w].bytes);
    out.second += std::min(most_ns, static_cast<double>(pair.windows[w].busy_ns));
  }
  return out;
}

Evidence TestbedEvidence::finish() {
  Evidence out;
  describe_fabric(scenario_, {}, spec_, out);
  find_peers();
  for (std::size_t nic = 0; nic < nics(); ++nic) {
    if (known_[nic].seen) out.nics[nic].name = known_[nic].name;
    counted_[nic].resize(ends_.size());
    out.nics[nic].windows = counted_[nic];
  }
  // The description calls hosts by their numbers.
  for (std::size_t i = 0; i < out.links.size(); ++i) {
    const fabric::LinkSpec& link = spec_.links[i];
    const std::uint32_t end = std::min(link.a, link.b);
    if (end >= nics() || !out.links[i].of_host) continue;
    (link.a == end ? out.links[i].first : out.links[i].second) = out.nics[end].name;
  }
  out.until = ends_.empty() ? Picos{0} : ends_.back();
  out.window_ends = ends_;
  out.slowness.assign(nics() * nics(), 0);
  const DescribedPaths paths(scenario_, spec_);
  for (const auto& [key, pair] : pairs_) write_pair(pair, paths, out);
  write_paces(out);
  write_under_way(out);
  for (std::uint32_t nic = 0; nic < ports_.size(); ++nic) {
    if (ports_[nic].changes.empty()) continue;
    ports_[nic].name = out.nics[nic].name;
    ports_[nic].nic = nic;
    out.ports.push_back(ports_[nic]);
  }
  return out;
}

}  // namespace paceline::tools
