#include "dataplane/service/nics/port_nics.h"

#include <cassert>
#include <utility>

#include "cc/registry.h"
#include "dataplane/driver/scenario/real_time_defaults.h"
#include "dataplane/service/nics/nic_info.h"

namespace paceline::service {

namespace {

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
    end.port = ports[i].port;
    end.device = ports[i].device;
    transport::EngineConfig config = std::move(ports[i].engine);
    take_addresses(end.port->host().routes(), config);
    config.mac = end.port->host().mac();
    apply_real_time_defaults(config);
    // All there is, as of emulated NICs: others have run since the last turn.
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
  const neighbour::HostRoutes& routes = ends_[from].port->host().routes();
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

bool PortNics::turn(Picos now, Picos gap) {
  bool any = false;
  for (End& end : ends_) {
    // Asked before it hears of the stop: see Worker::run_task.
    const bool due = end.touched || end.engine->next_deadline() <= now;
    if (gap.count > 0) [[unlikely]]
      end.engine->stopped(now, gap);
    if (!due && end.port->rx_ready_at() > now) continue;
    end.touched = false;
    if (end.captured) [[unlikely]]
      end.captured->tell_time(now);
    const neighbour::ResolvingCounters& counters = end.port->counters();
    const std::uint64_t received = counters.rx_packets;
    end.port->poll(now);
    end.engine->poll(now);
    any |= due || counters.rx_packets != received;
  }
  return any;
}

// Ends a capture, if there is one.
void PortNics::let_go(End& end) {
  if (!end.captured) return;
  end.port->show_drops(nullptr);
  end.port->put_behind(end.captured->behind());
  end.captured.reset();
}

std::string PortNics::capture(std::size_t index, CaptureRingWriter* ring) {
  End& end = ends_[index];
  let_go(end);
  if (ring == nullptr) return {};
  ring->set_without_icrc(end.port->info().computes_icrc);
  end.captured.emplace(end.port->behind(), *ring);
  end.port->put_behind(*end.captured);
  end.port->show_drops(ring);
  return {};
}

Picos PortNics::next_deadline() const {
  Picos next = kNever;
  for (const End& end : ends_) {
    if (end.touched) return Picos{0};
    next = earlier(next, earlier(end.engine->next_deadline(), end.port->next_deadline()));
  }
  return next;
}

NicSetReport PortNics::blank_report() const {
  NicSetReport report;
  report.algorithm = algorithm_;
  for (const End& end : ends_) report.nics.emplace_back().name = end.nic.info.name.data();
  return report;
}

void PortNics::ask_devices(NicSetReport& report) const {
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i].device != nullptr) ends_[i].device->count(report.nics[i].port);
  }
}

void PortNics::describe(Picos now, NicSetReport& report) {
  report.at = now;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    NicReport& nic = report.nics[i];
    nic.counters = ends_[i].engine->counters();
    nic.capture = ends_[i].captured ? capture_report(ends_[i].captured->ring()) : CaptureReport{};
    nic.arrivals.stamped = ends_[i].port->info().stamps_arrivals;
    nic.arrivals.round_trips = ends_[i].engine->view().arrival_stamps().samples;
    nic.arrivals.round_trips_refused = ends_[i].engine->view().arrival_stamps().refused;
    if (ends_[i].device == nullptr) continue;
    ends_[i].device->tell_arrivals(nic.arrivals);
    nic.loans = ends_[i].device->loans();
  }
}

std::optional<LoanReport> PortNics::loans(std::size_t index) const {
  const PortDevice* const device = ends_[index].device;
  if (device == nullptr) return std::nullopt;
  return device->loans();
}

}  // namespace paceline::service
