#include "dataplane/service/nics/emulated_nics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "cc/registry.h"
#include "dataplane/driver/scenario/real_time_defaults.h"
#include "dataplane/service/nics/nic_info.h"

namespace paceline::service {

namespace {

// The most that a transmit ring holds, however fast the link: what one host sends in a turn,
// another has to take in.
constexpr std::uint64_t kRingBytes = 256 << 10;

// Pops per microsecond of a link that is busy at both ends; only the width of the wheel's slots
// depends on it.
double events_per_us(const WorldPlan& plan) {
  double rate = 0;
  for (const fabric::LinkSpec& link : plan.fabric.links) {
    rate = std::max(rate, static_cast<double>(link.rate.bps));
  }
  return 5 * rate / (8e6 * plan.engine.payload_mtu);
}

// Bytes that still arrive after a pause was sent: those on the link, a packet at either end, and
// those in the transmit ring; at most half of the buffer. 0 selects the default, if these are
// fewer.
std::uint64_t roomy_headroom(const fabric::FabricSpec& spec, std::uint64_t two_packets) {
  std::uint64_t usual = 0;
  std::uint64_t wanted = 0;
  for (const fabric::LinkSpec& link : spec.links) {
    const std::uint64_t carried = fabric::headroom_of(spec, link);
    usual = std::max(usual, carried);
    wanted = std::max(wanted, carried + two_packets + bytes_in(spec.transmit_ahead, link.rate));
  }
  const std::uint64_t most = spec.buffer_bytes / (2 * kTrafficClasses * (spec.links.size() + 1));
  const std::uint64_t given = std::min(wanted, most);
  return given > usual ? given : 0;
}

std::string nic_name(const EmulatedSettings& settings, std::uint32_t nic) {
  return nic < settings.names.size() ? settings.names[nic] : fmt::format("h{}", nic);
}

void fill(DepthReport& out, const Histogram& depth) {
  out.packets = depth.count();
  out.mean = depth.mean();
  out.p50 = depth.quantile(0.5);
  out.p99 = depth.quantile(0.99);
  out.most = depth.max();
}

}  // namespace

// With real bytes. Only the fabric itself flips bits in them, and it marks such packets: no ICRC is
// needed.
fabric::FabricSpec EmulatedNics::prepared(const WorldPlan& plan, const EmulatedSettings& settings) {
  fabric::FabricSpec spec = plan.fabric;
  spec.payload_room = static_cast<std::uint16_t>((plan.engine.payload_mtu + 3) & ~3U);
  spec.computes_icrc = true;
  spec.lends_payload = settings.lend_payload;
  spec.transmit_ahead = settings.transmit_ring;
  spec.changeable = spec.hosts_lose_when_down = true;
  for (const fabric::LinkSpec& link : spec.links) {
    spec.transmit_ahead = earlier(spec.transmit_ahead, serialization_time(kRingBytes, link.rate));
  }
  const std::uint64_t two_packets = 2 * (std::uint64_t{spec.payload_room} + 256);
  for (const fabric::LinkSpec& link : spec.links) {
    spec.transmit_ahead = later(spec.transmit_ahead, serialization_time(two_packets, link.rate));
  }
  if (spec.pfc.headroom_bytes == 0) spec.pfc.headroom_bytes = roomy_headroom(spec, two_packets);
  return spec;
}

EmulatedNics::EmulatedNics(const WorldPlan& plan, const EmulatedSettings& settings)
    : first_host_actor_(fabric::Network::actors_needed(prepared(plan, settings))),
      wheel_(first_host_actor_ + plan.fabric.nics(),
             EventWheel::slot_shift_for(events_per_us(plan)),
             EventWheel::slots_log2_for(EventWheel::slot_shift_for(events_per_us(plan)))),
      network_(prepared(plan, settings), wheel_, 0),
      hosts_(plan.fabric.nics()),
      islands_(fabric::islands(plan.fabric)) {
  due_.reserve(hosts_.size());
  algorithm_ = cc::find(plan.engine.primary.algorithm)->name;
  const fabric::FabricSpec& spec = network_.spec();
  for (std::uint32_t h = 0; h < hosts_.size(); ++h) {
    transport::EngineConfig config = plan.engine;
    config.address = wire::IpAddress::v4(spec.subnet_base + h + 1);
    config.other_address = fabric::host_address_v6(spec, h);
    config.mac = wire::MacAddress::local(h + 1);
    config.speak_control = plan.speaks_control[h];
    apply_real_time_defaults(config);
    // Takes all packets: a sender on a fast link has sent far more than a burst since the last
    // turn, and packets that wait for long are sent again.
    config.receive_bursts = 0;
    // Control packets have a class of their own on the fabric: they gain nothing by waiting.
    config.answers_last = false;
    Host& host = hosts_[h];
    host.port = &port_of(h);
    host.nic.info = nic_info(name_of(h, settings), config, host.port->info().link_rate,
                             static_cast<std::uint16_t>(h + 1));
    host.nic.congestion =
        nic_congestion(config, host.port->info(), settings.profile, settings.fallback_profile);
    host.engine = std::make_unique<transport::Engine>(std::move(config), *host.port);
    host.nic.engine = host.engine.get();
    host.ready.assign(spec.ports, Picos{0} - spec.transmit_ahead);
  }
  faults_.emplace(settings.fabric, settings.one_path, spec, named_links(settings));
  next_ = wheel_.next_time();
}

EmulatedNics::~EmulatedNics() = default;

// "h3", or "h3p1" where each port is a host of its own.
std::string EmulatedNics::name_of(std::uint32_t host, const EmulatedSettings& settings) const {
  const std::uint32_t ports = settings.shape == NicShape::separate ? settings.fabric.ports : 1;
  const auto nics = static_cast<std::uint32_t>(hosts_.size() / ports);
  std::string name = nic_name(settings, host % nics);
  if (settings.shape == NicShape::separate) name += fmt::format("p{}", host / nics);
  return name;
}

// The port of a host's engine: its only port, or all of its ports together.
Port& EmulatedNics::port_of(std::uint32_t host) {
  const std::uint32_t ports = network_.spec().ports;
  if (ports == 1) return network_.host_port(host);
  std::array<Port*, BondedPort::kMostPorts> all{};
  for (std::uint32_t p = 0; p < ports; ++p) all[p] = &network_.host_port(endpoint(host, p));
  static_assert(BondedPort::kMostPorts <= attach::kMaxPorts);
  const std::span<Port* const> links(all.data(), ports);
  if (!network_.spec().port_subnets) return bonds_.emplace_back(links);
  const wire::IpAddress first = wire::IpAddress::v4(network_.spec().subnet_base);
  return bonds_.emplace_back(links, wire::subnet_of(first));
}

// "h3", "h3.0", "h3.1", ..., and the devices where each port is one.
std::vector<NamedLinks> EmulatedNics::named_links(const EmulatedSettings& settings) const {
  const std::uint32_t ports = settings.fabric.ports;
  const std::uint32_t nics = network_.spec().hosts / ports;
  const auto link = [&](std::uint32_t nic, std::uint32_t port) {
    return network_.topology().host_uplink(port * nics + nic) / 2;
  };
  std::vector<NamedLinks> out;
  for (std::uint32_t nic = 0; nic < nics; ++nic) {
    const std::string name = nic_name(settings, nic);
    NamedLinks& all = out.emplace_back();
    all.name = name;
    for (std::uint32_t port = 0; port < ports; ++port) all.links.push_back(link(nic, port));
    for (std::uint32_t port = 0; port < ports; ++port) {
      out.push_back({fmt::format("{}.{}", name, port), {link(nic, port)}});
    }
  }
  if (settings.shape != NicShape::separate) return out;
  for (std::uint32_t h = 0; h < hosts_.size(); ++h) {
    out.push_back({name_of(h, settings), {link(h % nics, h / nics)}});
  }
  return out;
}

// `end` is an endpoint's number. To one without an address of its own there is no path.
std::optional<transport::QpPath> EmulatedNics::path_to_end(std::size_t from, std::uint32_t end,
                                                           const wire::IpAddress& address) const {
  const auto hosts = static_cast<std::uint32_t>(hosts_.size());
  const std::uint32_t ends = network_.spec().port_subnets ? network_.spec().hosts : hosts;
  if (end >= ends) return std::nullopt;
  const std::uint32_t own = endpoint(static_cast<std::uint32_t>(from), end / hosts);
  if (islands_[end] != islands_[own]) return std::nullopt;
  transport::QpPath path;
  path.ip = address;
  path.mac = {hosts_[end % hosts].nic.info.mac};
  return path;
}

std::optional<transport::QpPath> EmulatedNics::path_to(std::size_t from,
                                                       const wire::IpAddress& to) const {
  return path_to_end(from, fabric::host_of(network_.spec(), to), to);
}

std::optional<transport::QpPath> EmulatedNics::path_to_local(std::size_t from,
                                                             std::uint16_t local_id) const {
  const std::size_t host = (local_id - 1U) % attach::kMaxNics;
  const auto port = static_cast<std::uint32_t>((local_id - 1U) / attach::kMaxNics);
  if (local_id == 0 || host >= hosts_.size()) return std::nullopt;
  const attach::NicInfo& info = hosts_[host].nic.info;
  if (!attach::has_port(info, port + 1)) return std::nullopt;
  return path_to_end(from, endpoint(static_cast<std::uint32_t>(host), port),
                     {attach::gid_of(info, port + 1, 0)});
}

std::uint8_t EmulatedNics::ports_up(std::size_t index) const {
  const std::uint8_t links = hosts_[index].port->links_up();
  return network_.spec().port_subnets || links == 0 ? links : std::uint8_t{1};
}

void EmulatedNics::note(std::uint32_t host) {
  if (hosts_[host].due) return;
  hosts_[host].due = true;
  due_.push_back(host);
}

// Runs the fabric's events up to `now`, each at its own time, and notes the hosts that then have
// something to do.
void EmulatedNics::catch_up(Picos now) {
  Picos time;
  std::uint32_t actor = 0;
  while (wheel_.pop_before(now + Picos{1}, time, actor)) {
    if (actor >= first_host_actor_) {
      note(actor - first_host_actor_);
      continue;
    }
    network_.link_fired(actor, time);
    if (actor == network_.links() && network_.link_events() != link_events_) [[unlikely]]
      links_have_changed();
    if (network_.woken_hosts().empty()) continue;
    const auto hosts = static_cast<std::uint32_t>(hosts_.size());
    for (const std::uint32_t end : network_.woken_hosts()) note(end % hosts);
    network_.clear_woken();
  }
}

// Hosts send again by another port what a link has lost, and programs are told.
void EmulatedNics::links_have_changed() {
  ++link_changes_;
  link_events_ = network_.link_events();
  for (std::uint32_t h = 0; h < hosts_.size(); ++h) note(h);
}

void EmulatedNics::change_links(Picos now, std::span<const fabric::LinkEvent> events) {
  std::vector<fabric::LinkEvent> at_their_times(events.begin(), events.end());
  for (fabric::LinkEvent& event : at_their_times) {
    event.at = event.at + now;
    event.until = saturating_add(event.until, now);
  }
  network_.change(at_their_times);
  next_ = wheel_.next_time();
}

void EmulatedNics::poll(std::uint32_t index, Picos now, Picos gap) {
  Host& host = hosts_[index];
  if (gap.count > 0) host.engine->stopped(now, gap);
  const std::uint64_t sent = network_.stats().injected_bytes;
  host.engine->poll(now);
  if (network_.stats().injected_bytes != sent) {
    host.sent_wire_bytes += network_.stats().injected_bytes - sent;
    count_sending(index, now);
  }
  // Work that a poll has not finished is due at once.
  const Picos next = earlier(host.engine->next_deadline(), host.port->rx_ready_at());
  wheel_.schedule(first_host_actor_ + index, later(next, now));
}

// Packets sent by a poll follow what the port was sending before, without a gap; in between, only
// pauses for its switch are put on its link. A port whose classes are all held back sent nothing.
void EmulatedNics::count_sending(std::uint32_t index, Picos now) {
  const Picos earliest = now - network_.spec().transmit_ahead;
  Host& host = hosts_[index];
  for (std::uint32_t p = 0; p < host.ready.size(); ++p) {
    const Port& port = network_.host_port(endpoint(index, p));
    Picos ready = kNever;
    for (std::uint8_t c = 0; ready == kNever && c < kTrafficClasses; ++c) {
      ready = port.tx_ready_at(c);
    }
    if (ready == kNever || ready <= host.ready[p]) continue;
    host.sending += ready - later(host.ready[p], earliest);
    host.ready[p] = ready;
  }
}

bool EmulatedNics::turn(Picos now, Picos gap) {
  // A gap in which no thread could run is reported to all hosts, but does not count as work:
  // otherwise an idle worker would stay awake for as long as the machine is busy with something
  // else.
  const bool touched = !due_.empty();
  if (gap.count > 0) {
    for (std::uint32_t h = 0; h < hosts_.size(); ++h) note(h);
  }
  const bool fabric_was_due = next_ <= now;
  catch_up(now);
  const bool any = fabric_was_due || touched;
  // A packet from one host reaches another after the link's delay, not in this turn.
  for (const std::uint32_t host : due_) poll(host, now, gap);
  for (const std::uint32_t host : due_) hosts_[host].due = false;
  due_.clear();
  next_ = wheel_.next_time();
  return any;
}

// A testbed's host is linked to switches, by links of its own that all begin at the host.
std::string EmulatedNics::capture(std::size_t index, CaptureRingWriter* ring) {
  Host& host = hosts_[index];
  const auto each_link = [&](auto&& act) {
    for (std::uint32_t port = 0; port < network_.spec().ports; ++port) {
      act(network_.topology().host_uplink(endpoint(static_cast<std::uint32_t>(index), port)) / 2);
    }
  };
  if (host.captured != nullptr) each_link([&](std::uint32_t link) { network_.untap(link); });
  host.captured = nullptr;
  if (ring == nullptr) return {};
  ring->set_forward(CaptureDirection::outbound);
  ring->set_without_icrc(network_.spec().computes_icrc);
  each_link([&](std::uint32_t link) { network_.tap(link, *ring); });
  host.captured = ring;
  return {};
}

// Reports of emulated NICs and of the fabric between them.

NicSetReport EmulatedNics::blank_report() const {
  NicSetReport report;
  report.algorithm = algorithm_;
  for (const Host& host : hosts_) {
    NicReport& nic = report.nics.emplace_back();
    nic.name = host.nic.info.name.data();
    nic.links_up.assign(network_.spec().ports, true);
  }
  FabricReport& out = report.fabric;
  out.emulated = true;
  for (std::size_t i = 0; i < fabric::kDropReasons; ++i) {
    out.drops.push_back({fabric::to_string(static_cast<fabric::DropReason>(i)), 0});
  }
  const fabric::FabricSpec& spec = network_.spec();
  const auto node = [&](std::uint32_t number) {
    if (number < spec.hosts) {
      std::string name(hosts_[number % hosts_.size()].nic.info.name.data());
      if (spec.ports > 1) name += fmt::format(".{}", number / hosts_.size());
      return name;
    }
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
    report.nics[h].pausing = {};
    report.nics[h].reclassed_packets = 0;
    report.nics[h].sent_wire_bytes = hosts_[h].sent_wire_bytes;
    report.nics[h].sending = hosts_[h].sending;
    for (std::uint32_t port = 0; port < network_.spec().ports; ++port) {
      const std::uint32_t end = endpoint(static_cast<std::uint32_t>(h), port);
      report.nics[h].links_up[port] = network_.host_port(end).links_up() != 0;
      const std::uint32_t uplink = network_.topology().host_uplink(end);
      report.nics[h].pausing += network_.link_pause_time(uplink ^ 1U, now);
      report.nics[h].reclassed_packets += network_.reclassed_packets(uplink);
    }
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
  LastHop out;
  for (std::uint32_t port = 0; port < network_.spec().ports; ++port) {
    const std::uint32_t end = endpoint(static_cast<std::uint32_t>(index), port);
    const std::uint32_t down = network_.topology().host_downlink(end);
    out.queue_bytes += network_.queue_bytes(down, now);  // decides what left before now
    const auto egress = network_.egress_stats(down);
    if (!egress) return std::nullopt;  // the other end is a host
    out.queue_max_bytes = std::max(out.queue_max_bytes, egress->max_bytes);
    out.marked += egress->marked;
    out.drops += egress->drops;
    out.paused += network_.link_pause_time(network_.topology().host_uplink(end), now);
  }
  next_ = wheel_.next_time();
  return out;
}

}  // namespace paceline::service
