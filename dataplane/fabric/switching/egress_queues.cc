#include "dataplane/fabric/switching/egress_queues.h"

#include <algorithm>

#include "dataplane/wire/extensions/trim.h"
#include "dataplane/wire/packet/patch.h"

namespace paceline::fabric {

namespace {
constexpr std::uint64_t kMarkingStream = 0xFAB1'0000'0000'0000;  // of the run's seed
constexpr std::size_t kMostMarkings = 255;                       // Egress::curve has a byte
}  // namespace

EgressQueues::Curve::Curve(const MarkingCurve& of) : kmin(of.kmin_bytes), kmax(of.kmax_bytes) {
  if (kmax > kmin) slope = of.pmax / static_cast<double>(kmax - kmin);
}

EgressQueues::EgressQueues(const FabricSpec& spec, PacketPool& pool, NetworkStats& stats,
                           std::pmr::memory_resource& memory)
    : spec_(spec),
      pool_(pool),
      stats_(stats),
      egresses_(&memory),
      trim_above_(spec.trim.enabled ? spec.trim.threshold_bytes : ~std::uint64_t{0}),
      mark_at_enqueue_(!spec.ecn.mark_at_dequeue) {
  egresses_.reserve(2 * spec.links.size());
  curves_.emplace_back(spec.ecn);
  for (const EcnSpec::AtRate& at_rate : spec.ecn.at_rates) curves_.emplace_back(at_rate.curve);
  no_marks_ = static_cast<std::uint8_t>(curves_.size());
  constexpr std::uint64_t kNoQueue = ~std::uint64_t{0};
  curves_.emplace_back(MarkingCurve{.kmin_bytes = kNoQueue, .kmax_bytes = kNoQueue, .pmax = 0});
  for (std::size_t c = 0; c < kTrafficClasses; ++c) {
    quantum_[c] = spec.class_weights[c] * kDwrrQuantum;
    if (quantum_[c] != 0) strict_classes_ &= ~(1U << c);
  }
}

std::uint32_t EgressQueues::add(std::uint32_t link, std::uint32_t switch_index, std::uint16_t port,
                                bool last_hop) {
  const auto index = static_cast<std::uint32_t>(egresses_.size());
  Egress& egress = egresses_.emplace_back();
  egress.switch_index = switch_index;
  egress.link = link;
  egress.port = port;
  egress.last_hop = last_hop;
  egress.marking = Random(spec_.seed, kMarkingStream + link);
  if (strict_classes_ != 0xFF) dwrr_.emplace_back();
  if (!spec_.ecn.enabled) return index;
  egress.curve = curve_of(link);
  least_kmin_ = std::min(least_kmin_, curves_[egress.curve].kmin);
  return index;
}

std::uint8_t EgressQueues::curve_of(std::uint32_t link) const {
  const std::vector<EcnSpec::AtRate>& at_rates = spec_.ecn.at_rates;
  const Rate rate = spec_.links[link / 2].rate;
  const auto own = std::find_if(at_rates.begin(), at_rates.end(),
                                [&](const EcnSpec::AtRate& at) { return at.rate == rate; });
  return own == at_rates.end() ? 0 : static_cast<std::uint8_t>(1 + (own - at_rates.begin()));
}

void EgressQueues::set_marking(std::uint32_t index, double factor) {
  if (!spec_.ecn.enabled) return;
  Egress& egress = egresses_[index];
  egress.curve = curve_of(egress.link);
  if (factor == 0) egress.curve = no_marks_;
  if (factor == 0 || factor == 1) return;
  const auto times = [&](std::uint64_t bytes) {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * factor);
  };
  Curve curve = curves_[egress.curve];
  curve.kmin = times(curve.kmin);
  curve.kmax = times(curve.kmax);
  curve.slope /= factor;
  auto known = std::find(curves_.begin() + no_marks_, curves_.end(), curve);
  if (known == curves_.end() && curves_.size() <= kMostMarkings) {
    known = curves_.insert(curves_.end(), curve);
  }
  if (known == curves_.end()) return;
  egress.curve = static_cast<std::uint8_t>(known - curves_.begin());
  least_kmin_ = std::min(least_kmin_, curve.kmin);
}

// queue_bytes > least_kmin_. One draw per packet between kmin and kmax that can be marked.
void EgressQueues::mark(Egress& egress, Packet* packet, std::uint64_t queue_bytes) {
  if (packet->ecn != Ecn::ect0 && (packet->ecn != Ecn::ect1 || spec_.notice.enabled)) return;
  const Curve& curve = curves_[egress.curve];
  if (queue_bytes <= curve.kmin) return;
  if (queue_bytes <= curve.kmax &&
      egress.marking.uniform() >= static_cast<double>(queue_bytes - curve.kmin) * curve.slope) {
    return;
  }
  packet->ecn = Ecn::ce;
  wire::patch_ecn(packet->header_view(), Ecn::ce);
  ++egress.marked;
  ++stats_.marked_packets;
}

bool EgressQueues::trim(Egress& egress, Packet* packet) {
  if (packet->payload_bytes == 0 || packet->bth_offset == 0 ||
      packet->traffic_class >= spec_.trim.to_class ||
      !wire::patch_trimmed(packet->header_view(), spec_.trim.to_class)) {
    return false;
  }
  const std::uint32_t before = packet->wire_bytes;
  if (packet->payload_kind == PayloadKind::lent) pool_.drop_loan(*packet);
  packet->payload_bytes = 0;
  packet->payload_kind = PayloadKind::none;
  packet->flags |= packet_flag::trimmed;
  packet->traffic_class = spec_.trim.to_class;
  packet->wire_bytes = std::min(before, spec_.wire.wire_bytes(packet->frame_bytes(), 0));
  ++egress.trimmed;
  ++stats_.trimmed_packets;
  stats_.trimmed_bytes += before - packet->wire_bytes;
  return true;
}

Packet* EgressQueues::lose(Egress& egress, std::uint8_t traffic_class) {
  ClassQueue& queue = egress.queues[traffic_class];
  if (queue.head == nullptr) return nullptr;
  Packet* packet = queue.pop();
  egress.queued_bytes -= packet->wire_bytes;
  ++egress.drops;
  return packet;
}

EgressStats EgressQueues::stats(std::uint32_t index) const {
  const Egress& egress = egresses_[index];
  EgressStats out;
  out.packets = egress.packets;
  out.bytes = egress.bytes;
  out.marked = egress.marked;
  out.trimmed = egress.trimmed;
  out.drops = egress.drops;
  out.queued_bytes = egress.queued_bytes;
  out.max_bytes = egress.max_bytes;
  if (egress.changed_at.count > 0) {
    out.mean_bytes =
        static_cast<double>(egress.byte_picos) / static_cast<double>(egress.changed_at.count);
  }
  return out;
}

std::uint64_t EgressQueues::last_hop_max_bytes() const {
  std::uint64_t most = 0;
  for (const Egress& egress : egresses_) {
    if (egress.last_hop && egress.max_bytes > most) most = egress.max_bytes;
  }
  return most;
}

void EgressQueues::take_over(const EgressQueues& other, std::uint32_t index) {
  egresses_[index] = other.egresses_[index];
  if (!dwrr_.empty()) dwrr_[index] = other.dwrr_[index];
}

void EgressQueues::gather(const EgressQueues& other) {
  last_hop_depth_.merge(other.last_hop_depth_);
  core_depth_.merge(other.core_depth_);
}

}  // namespace paceline::fabric
