// Construction of links, switches and ports from a spec.
#include <algorithm>
#include <stdexcept>

#include "dataplane/fabric/egress.h"
#include "dataplane/fabric/host_port.h"
#include "dataplane/fabric/link.h"
#include "dataplane/fabric/network.h"
#include "dataplane/fabric/switch.h"

namespace paceline::fabric {

namespace {

// Streams of the run's seed: one per owner.
constexpr std::uint64_t kMarkingStream = 0xFAB1'0000'0000'0000;
constexpr std::uint64_t kImpairmentStream = 0xFAB2'0000'0000'0000;
constexpr std::uint64_t kControlLossStream = 0xFAB3'0000'0000'0000;

const FabricSpec& buildable(const FabricSpec& spec) {
  for (const std::string& error : check(spec)) {
    if (error.starts_with(kUnreachablePrefix)) continue;
    throw std::invalid_argument("fabric: " + error);
  }
  return spec;
}

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

Network::Network(const FabricSpec& spec, EventWheel& wheel, std::uint32_t first_actor_id)
    : spec_(buildable(spec)),
      topology_(spec_),
      wheel_(wheel),
      first_actor_(first_actor_id),
      pool_(spec.initial_packets, spec.payload_room, true),
      ecn_kmin_(spec.ecn.enabled ? spec.ecn.kmin_bytes : ~std::uint64_t{0}),
      ecn_kmax_(spec.ecn.kmax_bytes),
      mark_at_enqueue_(!spec.ecn.mark_at_dequeue),
      control_loss_(spec.seed, kControlLossStream) {
  if (std::uint64_t{first_actor_id} + actors_needed(spec) > wheel.actors()) {
    throw std::invalid_argument("fabric: the event wheel has too few actors");
  }
  if (spec_.ecn.kmax_bytes > spec_.ecn.kmin_bytes) {
    ecn_slope_ = spec_.ecn.pmax / static_cast<double>(spec_.ecn.kmax_bytes - spec_.ecn.kmin_bytes);
  }
  build_switches();
  build_links();
  ports_.reserve(spec_.hosts);
  for (std::uint32_t host = 0; host < spec_.hosts; ++host) {
    ports_.push_back(std::make_unique<HostPort>(*this, links_[topology_.host_uplink(host)], host));
  }
  woken_.reserve(spec_.hosts);
}

Network::~Network() = default;

Port& Network::host_port(std::uint32_t host) { return *ports_.at(host); }

void Network::build_switches() {
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
      limits[index].push_back({static_cast<std::uint32_t>(headroom_of(spec_, link)),
                               alpha_of(spec_, link.rate, host_rate)});
    }
  }
  switches_.reserve(spec_.switches);
  const std::uint8_t lossless = spec_.pfc.enabled ? spec_.pfc.lossless_classes : std::uint8_t{0};
  for (std::uint32_t i = 0; i < spec_.switches; ++i) {
    const std::size_t count = ports[i].size();
    Switch& sw = switches_.emplace_back(
        SharedBuffer(spec_.buffer_bytes, std::move(limits[i]), lossless,
                     static_cast<std::uint32_t>(spec_.pfc.reserve_bytes),
                     static_cast<std::uint32_t>(spec_.pfc.xon_offset_bytes)));
    sw.port_links = std::move(ports[i]);
    sw.backlogged.assign((count + 63) / 64, 0);
    sw.paused_ingress.assign(count, 0);
    sw.use_step_bytes = kBufferUseStep;
  }
}

void Network::build_links() {
  links_.resize(2 * spec_.links.size());
  details_.resize(links_.size());
  for (std::uint32_t id = 0; id < links_.size(); ++id) {
    const LinkSpec& from = spec_.links[id / 2];
    Link& link = links_[id];
    link.id = id;
    link.delay = from.delay;
    constexpr std::uint64_t kPicosBitsPerByte = 8'000'000'000'000;
    // A rate of 1 Mb/s takes 8e6 ps for a byte: fits.
    if (kPicosBitsPerByte % from.rate.bps == 0) {
      link.ps_per_byte = static_cast<std::uint32_t>(kPicosBitsPerByte / from.rate.bps);
    }
    link.impaired = from.loss > 0 || from.error_rate > 0 ? 1 : 0;
    const std::uint32_t to = (id & 1U) == 0 ? from.b : from.a;
    link.to = to < spec_.hosts ? to : (to - spec_.hosts) | Link::kToSwitch;
    LinkDetail& detail = details_[id];
    detail.rate = from.rate;
    detail.loss = from.loss;
    detail.error_rate = from.error_rate;
    detail.impairment = Random(spec_.seed, kImpairmentStream + id);
  }
  for (std::uint32_t index = 0; index < switches_.size(); ++index) {
    const Switch& sw = switches_[index];
    for (std::size_t port = 0; port < sw.port_links.size(); ++port) {
      const std::uint32_t id = sw.port_links[port];
      links_[id].egress = static_cast<std::uint32_t>(egresses_.size());
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

}  // namespace paceline::fabric
