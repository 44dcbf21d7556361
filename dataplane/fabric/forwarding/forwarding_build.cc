// Construction of links, switches and ports from a spec.
#include <algorithm>
#include <stdexcept>

#include "dataplane/fabric/forwarding/forwarding.h"

namespace paceline::fabric {

namespace {

// Streams of the run's seed: one per owner.
constexpr std::uint64_t kMarkingStream = 0xFAB1'0000'0000'0000;
constexpr std::uint64_t kImpairmentStream = 0xFAB2'0000'0000'0000;
constexpr std::uint64_t kControlLossStream = 0xFAB3'0000'0000'0000;
constexpr std::uint64_t kSprayStream = 0xFAB4'0000'0000'0000;

// alpha in 1/65536. Ports faster than the hosts' get twice the share for every doubling (HPCC
// simulator, third.cc: pfc_a_shift is one less).
std::uint32_t alpha_of(const FabricSpec& spec, Rate port_rate, Rate host_rate) {
  std::uint64_t alpha = static_cast<std::uint64_t>(spec.pfc.alpha * 65536.0 + 0.5);
  if (spec.pfc.scale_alpha_with_rate) {
    for (std::uint64_t ratio = port_rate.bps / host_rate.bps; ratio > 1; ratio /= 2) alpha *= 2;
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(alpha, 64U << 16));
}

}  // namespace

Forwarding::Forwarding(const FabricSpec& spec, Topology& topology, PacketPool& pool,
                       EventWheel& wheel, std::uint32_t first_actor,
                       std::pmr::memory_resource& memory)
    : spec_(spec),
      topology_(topology),
      wheel_(wheel),
      first_actor_(first_actor),
      pool_(pool),
      links_(&memory),
      egresses_(&memory),
      hosts_(spec.hosts, memory),
      trim_above_(spec.trim.enabled ? spec.trim.threshold_bytes : ~std::uint64_t{0}),
      mark_at_enqueue_(!spec.ecn.mark_at_dequeue),
      moves_answers_(spec.ack_class != kControlClass || spec.cnp_class != kControlClass),
      control_loss_(spec.seed, kControlLossStream) {
  if (spec_.credit.enabled) credits_ = std::make_unique<CreditBook>(spec_);
  build_switches();
  build_links();
  build_marking();
  build_choices();
  build_events();
}

void Forwarding::build_switches() {
  const Rate host_rate =
      spec_.links.empty() ? Rate{1} : spec_.links[topology_.host_uplink(0) / 2].rate;
  std::vector<std::vector<SharedBuffer::PortLimits>> limits(spec_.switches);
  std::vector<std::vector<std::uint32_t>> ports(spec_.switches);
  for (std::uint32_t i = 0; i < spec_.links.size(); ++i) {
    const LinkSpec& link = spec_.links[i];
    const std::uint32_t ends[2] = {link.a, link.b};
    for (std::uint32_t side = 0; side < 2; ++side) {
      if (ends[side] < spec_.hosts) continue;
      const std::uint32_t index = ends[side] - spec_.hosts;
      ports[index].push_back(2 * i + side);
      const std::uint64_t headroom =
          credits_ != nullptr ? credit_buffer_of(spec_, link) : headroom_of(spec_, link);
      limits[index].push_back(
          {static_cast<std::uint32_t>(headroom), alpha_of(spec_, link.rate, host_rate)});
    }
  }
  switches_.reserve(spec_.switches);
  const std::uint8_t lossless =
      spec_.pfc.enabled || credits_ != nullptr ? spec_.pfc.lossless_classes : std::uint8_t{0};
  const std::uint32_t reserve = credits_ != nullptr
                                    ? SharedBuffer::kGranted
                                    : static_cast<std::uint32_t>(spec_.pfc.reserve_bytes);
  for (std::uint32_t i = 0; i < spec_.switches; ++i) {
    const std::size_t count = ports[i].size();
    Switch& sw = switches_.emplace_back(
        SharedBuffer(spec_.buffer_bytes, std::move(limits[i]), lossless, reserve,
                     static_cast<std::uint32_t>(spec_.pfc.xon_offset_bytes)));
    sw.port_links = std::move(ports[i]);
    sw.backlogged.assign((count + 63) / 64, 0);
    sw.paused_ingress.assign(count, 0);
    sw.use_step_bytes = kBufferUseStep;
  }
}

void Forwarding::build_links() {
  links_.resize(2 * spec_.links.size());
  details_.resize(links_.size());
  for (std::uint32_t id = 0; id < links_.size(); ++id) {
    const LinkSpec& from = spec_.links[id / 2];
    Link& link = links_[id];
    link.id = id;
    link.delay = from.delay;
    link.ps_per_byte = picos_per_byte(from.rate);
    const std::uint32_t to = (id & 1U) == 0 ? from.b : from.a;
    link.to = to < spec_.hosts ? to : (to - spec_.hosts) | Link::kToSwitch;
    if (credits_ != nullptr) {
      link.impaired = Link::kCredits;
      link.notable = Link::kGrants;
    }
    LinkDetail& detail = details_[id];
    detail.rate = from.rate;
    detail.loss = from.loss;
    detail.error_rate = from.error_rate;
    detail.duplicate = from.duplicate;
    detail.reorder = from.reorder;
    refresh_impairments(link);
    detail.impairment = Random(spec_.seed, kImpairmentStream + id);
  }
  std::size_t ports = 0;
  for (const Switch& sw : switches_) ports += sw.port_links.size();
  egresses_.reserve(ports);
  for (std::uint32_t index = 0; index < switches_.size(); ++index) {
    const Switch& sw = switches_[index];
    if (spec_.exact_departures) set_exact(sw, true);
    for (std::size_t port = 0; port < sw.port_links.size(); ++port) {
      const std::uint32_t id = sw.port_links[port];
      links_[id].egress = static_cast<std::uint32_t>(egresses_.size());
      if (spec_.telemetry) {
        links_[id].impaired = static_cast<std::uint8_t>(links_[id].impaired | Link::kRecords);
      }
      links_[id ^ 1U].to_port = static_cast<std::uint16_t>(port);
      Egress& egress = egresses_.emplace_back();
      egress.switch_index = index;
      egress.link = id;
      egress.port = static_cast<std::uint16_t>(port);
      egress.last_hop = (links_[id].to & Link::kToSwitch) == 0;
      egress.marking = Random(spec_.seed, kMarkingStream + id);
    }
  }
}

Forwarding::Curve::Curve(const MarkingCurve& of) : kmin(of.kmin_bytes), kmax(of.kmax_bytes) {
  if (kmax > kmin) slope = of.pmax / static_cast<double>(kmax - kmin);
}

void Forwarding::build_marking() {
  const std::vector<EcnSpec::AtRate>& at_rates = spec_.ecn.at_rates;
  curves_.emplace_back(spec_.ecn);
  for (const EcnSpec::AtRate& at_rate : at_rates) curves_.emplace_back(at_rate.curve);
  if (!spec_.ecn.enabled) return;
  for (Egress& egress : egresses_) {
    const Rate rate = spec_.links[egress.link / 2].rate;
    const auto own = std::find_if(at_rates.begin(), at_rates.end(),
                                  [&](const EcnSpec::AtRate& at) { return at.rate == rate; });
    egress.curve =
        own == at_rates.end() ? 0 : static_cast<std::uint8_t>(1 + (own - at_rates.begin()));
    ecn_kmin_ = std::min(ecn_kmin_, curves_[egress.curve].kmin);
  }
}

// What decides between links and between classes.
void Forwarding::build_choices() {
  for (std::size_t c = 0; c < kTrafficClasses; ++c) {
    quantum_[c] = spec_.class_weights[c] * kDwrrQuantum;
    if (quantum_[c] != 0) strict_classes_ &= ~(1U << c);
  }
  if (strict_classes_ != 0xFF) dwrr_.resize(egresses_.size());
  if (spec_.load_balance == LoadBalance::spray) {
    // Groups begin at different members: switches that began in step would stay in step.
    spray_next_.resize(links_.size());
    for (std::uint32_t id = 0; id < spray_next_.size(); ++id) {
      spray_next_[id] =
          static_cast<std::uint32_t>(mix64(spec_.seed ^ (kSprayStream + id)) & 0xFFFF);
    }
  }
  for (std::uint32_t i = 0; i < switches_.size(); ++i) {
    switches_[i].spray = mix64(spec_.seed ^ (kSprayStream + i));
  }
}

// Events in order, each failure and return followed by the switches' learning of it.
void Forwarding::build_events() {
  for (const LinkEvent& event : spec_.events) {
    agenda_.push_back({event.at, false, event});
    if (event.action == LinkAction::down || event.action == LinkAction::up) {
      agenda_.push_back({event.at + spec_.reroute_delay, true, event});
    }
  }
  std::stable_sort(agenda_.begin(), agenda_.end(),
                   [](const Agenda& a, const Agenda& b) { return a.at < b.at; });
  if (agenda_.empty()) return;
  failed_.assign(spec_.links.size(), false);
  wheel_.schedule(first_actor_ + links(), agenda_.front().at);
}

}  // namespace paceline::fabric
