#include "dataplane/service/nics/port_nics.h"

#include <cassert>
#include <utility>

#include "cc/registry.h"
#include "dataplane/driver/scenario/real_time_defaults.h"
#include "dataplane/service/nics/nic_info.h"

namespace paceline::service {

namespace {

// How often devices are asked whether they have a link.
constexpr Picos kLinkLook = picos_from_micros(10'000);

void take_addresses(const neighbour::HostRoutes& routes, transport::EngineConfig& config) {
  assert(routes.size() == 1 || routes.size() == 2);
  config.address = routes.address(0);
  if (routes.size() == 2) config.other_address = routes.address(1);
}

}  // namespace

PortNics::PortNics(std::vector<PortNic> ports, std::shared_ptr<PortKeeper> keeper)
    : keeper_(std::move(keeper)), ends_(ports.size()) {
  for (std::size_t i = 0; i < ports.size(); ++i) {
    End& end = ends_[i];
    end.links = std::move(ports[i].links);
    end.port = end.links.front().port;
    if (end.links.size() > 1) {
      std::vector<Port*> all;
      for (const PortNic::Link& link : end.links) all.push_back(link.port);
      end.bond = std::make_unique<BondedPort>(all);
      end.port = end.bond.get();
    }
    transport::EngineConfig config = std::move(ports[i].engine);
    take_addresses(end.routes(), config);
    config.mac = end.links.front().port->host().mac();
    apply_real_time_defaults(config);
    // Takes all packets, as emulated NICs do: other hosts have run since the last turn.
    config.receive_bursts = 0;
    if (const cc::AlgorithmInfo* const info = cc::find(config.primary.algorithm)) {
      algorithm_ = info->name;
    }
    end.nic.info = nic_info(ports[i].name, config, end.port->info().link_rate, 0);
    end.nic.congestion =
        nic_congestion(config, end.port->info(), ports[i].profile, ports[i].fallback_profile);
    end.engine = std::make_unique<transport::Engine>(std::move(config), *end.port);
    end.nic.engine = end.engine.get();
  }
}

// Engines give their packets back to ports that still are.
PortNics::~PortNics() {
  for (End& end : ends_) let_go(end);
  ends_.clear();
}

std::optional<transport::QpPath> PortNics::path_to(std::size_t from,
                                                   const wire::IpAddress& to) const {
  const neighbour::HostRoutes& routes = ends_[from].routes();
  wire::IpAddress hop;
  if (routes.next_hop(to, hop) != neighbour::HostRoutes::Hop::found) return std::nullopt;
  // An address of the family is needed to come from, and to ask with.
  if (routes.asks_as(wire::IpAddress{}, hop) == neighbour::HostRoutes::kNotOwn) return std::nullopt;
  transport::QpPath path;
  path.ip = to;
  return path;
}

void PortNics::enter_thread() {
  if (keeper_ != nullptr) thread_ = keeper_->enter_thread();
}

// Nothing tells a poll when a cable is pulled: devices are asked from time to time.
void PortNics::look_at_links(Picos now) {
  look_at_ = now + kLinkLook;
  for (End& end : ends_) {
    for (const PortNic::Link& link : end.links) {
      if (link.device != nullptr) link.device->look_at_link();
    }
    const std::uint8_t up = end.port->links_up();
    if (std::exchange(end.links_up, up) == up) continue;
    ++link_changes_;
    end.touched = true;
  }
}

bool PortNics::turn(Picos now, Picos gap) {
  if (now >= look_at_) look_at_links(now);
  bool any = false;
  for (End& end : ends_) {
    // Asked before it is told of the stop: see Worker::run_task.
    const bool due = end.touched || end.engine->next_deadline() <= now;
    if (gap.count > 0) [[unlikely]]
      end.engine->stopped(now, gap);
    if (!due && end.port->rx_ready_at() > now) continue;
    end.touched = false;
    for (RingCapturedPort& captured : end.captured) captured.tell_time(now);
    std::uint64_t received = 0;
    for (const PortNic::Link& link : end.links) {
      received -= link.port->counters().rx_packets;
      link.port->poll(now);
    }
    end.engine->poll(now);
    for (const PortNic::Link& link : end.links) received += link.port->counters().rx_packets;
    any |= due || received != 0;
  }
  return any;
}

// Ends a capture, if there is one.
void PortNics::let_go(End& end) {
  for (std::size_t i = 0; i < end.captured.size(); ++i) {
    end.links[i].port->show_drops(nullptr);
    end.links[i].port->put_behind(end.captured[i].behind());
  }
  end.captured.clear();
}

std::string PortNics::capture(std::size_t index, CaptureRingWriter* ring) {
  End& end = ends_[index];
  let_go(end);
  if (ring == nullptr) return {};
  ring->set_without_icrc(end.port->info().computes_icrc);
  for (const PortNic::Link& link : end.links) {
    link.port->put_behind(end.captured.emplace_back(link.port->behind(), *ring));
    link.port->show_drops(ring);
  }
  return {};
}

Picos PortNics::next_deadline() const {
  Picos next = kNever;
  for (const End& end : ends_) {
    if (end.touched) return Picos{0};
    next = earlier(next, end.engine->next_deadline());
    for (const PortNic::Link& link : end.links) next = earlier(next, link.port->next_deadline());
  }
  return next;
}

NicSetReport PortNics::blank_report() const {
  NicSetReport report;
  report.algorithm = algorithm_;
  for (const End& end : ends_) {
    NicReport& nic = report.nics.emplace_back();
    nic.name = end.nic.info.name.data();
    nic.links_up.assign(end.links.size(), true);
  }
  return report;
}

// For a bond: the sum over its devices, and the pause mode of the first.
void PortNics::ask_devices(NicSetReport& report) const {
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    PortReport& sum = report.nics[i].port;
    for (const PortNic::Link& link : ends_[i].links) {
      if (link.device == nullptr) continue;
      PortReport one;
      link.device->count(one);
      sum.rx_missed += one.rx_missed;
      sum.rx_no_buffer += one.rx_no_buffer;
      sum.rx_errors += one.rx_errors;
      sum.tx_errors += one.tx_errors;
      sum.pause_sent += one.pause_sent;
      sum.pause_received += one.pause_received;
      sum.priority_pause_sent += one.priority_pause_sent;
      sum.priority_pause_received += one.priority_pause_received;
      sum.counts_pause = sum.known ? sum.counts_pause && one.counts_pause : one.counts_pause;
      if (!sum.known) sum.pause = one.pause;
      sum.known |= one.known;
    }
  }
}

void PortNics::describe(Picos now, NicSetReport& report) {
  report.at = now;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    NicReport& nic = report.nics[i];
    End& end = ends_[i];
    nic.counters = end.engine->counters();
    nic.capture =
        end.captured.empty() ? CaptureReport{} : capture_report(end.captured.front().ring());
    for (std::size_t l = 0; l < end.links.size(); ++l) {
      nic.links_up[l] = end.links[l].port->links_up() != 0;
    }
    nic.arrivals.stamped = end.port->info().stamps_arrivals;
    nic.arrivals.round_trips = end.engine->view().arrival_stamps().samples;
    nic.arrivals.round_trips_refused = end.engine->view().arrival_stamps().refused;
    const PortDevice* const device = end.links.front().device;
    if (device == nullptr) continue;
    device->tell_arrivals(nic.arrivals);
    nic.loans = device->loans();
  }
}

std::optional<LoanReport> PortNics::loans(std::size_t index) const {
  const PortDevice* const device = ends_[index].links.front().device;
  if (device == nullptr) return std::nullopt;
  return device->loans();
}

}  // namespace paceline::service
