#include <deque>
#include <utility>

#include "dataplane/driver/ports/dpdk_testbed.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "dataplane/service/nics/open_ports.h"
#include "dataplane/service/nics/port_nics.h"

namespace paceline::service {

namespace {

class DpdkThread final : public PortThread {
  LcoreRegistration known_;
};

class DpdkPortDevice final : public PortDevice {
 public:
  explicit DpdkPortDevice(const TestbedPort& port) : port_(port) {}

  void count(PortReport& report) const override {
    const DpdkDeviceStatistics s = port_.device->statistics();
    report.known = true;
    report.rx_missed = s.rx_missed;
    report.rx_no_buffer = s.rx_no_buffer;
    report.rx_errors = s.rx_errors;
    report.tx_errors = s.tx_errors;
    const PauseState& pause = port_.device->capabilities().pause;
    if (pause.offered) report.pause = name_of(pause.mode);
    report.counts_pause = s.pause.counted;
    report.pause_sent = s.pause.sent;
    report.pause_received = s.pause.received;
    report.priority_pause_sent = s.pause.priority_sent;
    report.priority_pause_received = s.pause.priority_received;
  }
  void tell_arrivals(ArrivalReport& report) const override {
    const DpdkStamps* const stamps = port_.ports.front()->stamps();
    if (stamps == nullptr) return;
    const DeviceClockCounters& c = stamps->clock().counters();
    report.clock_ready = stamps->clock().ready();
    report.clock_hz = stamps->clock().frequency();
    report.stamps = c.stamps;
    report.unstamped = stamps->unstamped();
    report.refused = c.too_early + c.too_late;
    report.not_ready = c.not_ready;
    report.clock_jumps = c.jumps;
  }
  bool look_at_link() const override {
    port_.ports.front()->look_at_link();
    return port_.ports.front()->links_up() != 0;
  }
  LoanReport loans() const override {
    const DpdkPortCounters& c = port_.ports.front()->counters();
    return {c.tx_lent, c.tx_lent_copied, c.tx_recalled, c.tx_overdue, c.rx_lent};
  }

 private:
  const TestbedPort& port_;
};

class DpdkKeeper final : public PortKeeper {
 public:
  explicit DpdkKeeper(std::unique_ptr<DpdkTestbed> testbed) : testbed_(std::move(testbed)) {
    for (const TestbedPort& port : testbed_->ports()) devices_.emplace_back(port);
  }
  const PortDevice& device(std::size_t port) const { return devices_[port]; }
  DpdkTestbed& testbed() { return *testbed_; }
  std::unique_ptr<PortThread> enter_thread() override { return std::make_unique<DpdkThread>(); }

 private:
  std::unique_ptr<DpdkTestbed> testbed_;
  std::deque<DpdkPortDevice> devices_;
};

// Headers of a WRITE with immediate over IPv6: with a payload between them, the longest packet that
// the engine sends.
constexpr std::uint32_t kHeaders = 14 + 40 + 8 + 12;

// Fills `out` for the NIC that port `first` is, or is the first of; the error, if any.
std::string plan_nic(const config::Testbed& testbed, std::size_t first, DpdkKeeper& keeper,
                     PortNic& out) {
  const config::PortConfig& config = testbed.ports[first];
  out.name = config.bond.empty() ? config.name : config.bond;
  for (std::size_t i = first; i < testbed.ports.size(); ++i) {
    if (i != first && (config.bond.empty() || testbed.ports[i].bond != config.bond)) continue;
    out.links.push_back({keeper.testbed().ports()[i].resolver.get(), &keeper.device(i)});
  }
  const PortInfo info = out.links.front().port->info();
  out.profile = testbed.cc.profile;
  out.fallback_profile = testbed.cc.fallback_profile;
  cc::PortFacts facts;
  facts.link_rate = info.link_rate;
  facts.mtu_bytes = info.mtu_bytes;
  facts.base_rtt_ns = static_cast<std::uint32_t>(to_nanos(config.base_rtt).count);
  facts.full_packet_bytes =
      static_cast<std::uint32_t>(info.wire.wire_bytes(info.mtu_bytes + kHeaders, info.mtu_bytes));
  std::string refused =
      plan_planes(testbed.transport, testbed.cc, static_cast<std::uint32_t>(out.links.size()),
                  facts, out.engine);
  if (!refused.empty()) return refused;
  return plan_engine(testbed.transport, testbed.cc, facts, out.engine);
}

}  // namespace

MadeNicSets open_port_nics(const config::Testbed& testbed) {
  MadeNicSets made;
  DpdkTestbedOpened opened = DpdkTestbed::open(testbed);
  if (opened.testbed == nullptr) {
    made.errors.push_back(std::move(opened.error));
    return made;
  }
  made.notes = opened.testbed->report();
  const auto keeper = std::make_shared<DpdkKeeper>(std::move(opened.testbed));
  for (std::size_t i = 0; i < testbed.ports.size(); ++i) {
    const config::PortConfig& config = testbed.ports[i];
    if (!config.host) continue;  // of a bond, and not its first
    std::vector<PortNic> nics(1);
    const std::string error = plan_nic(testbed, i, *keeper, nics.front());
    if (!error.empty()) {
      made.errors.push_back(config.where + ": port \"" + config.name + "\": " + error);
    } else {
      made.sets.push_back(std::make_unique<PortNics>(std::move(nics), keeper));
    }
  }
  if (!made.errors.empty()) made.sets.clear();
  return made;
}

}  // namespace paceline::service
