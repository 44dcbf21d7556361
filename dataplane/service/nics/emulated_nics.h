// N emulated hosts, the links and switches between them, and an engine for each: what a testbed
// offers on one machine.
//
// Time means two things, as in driver/virtual/real_time_run.h: what happens in the fabric happens
// at its own time, however late it is processed; what a host does happens at the time of the turn.
// Only hosts that have something to do are polled, so the cost of a turn follows from the work that
// is due and not from the number of hosts.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/containers/event_wheel.h"
#include "dataplane/config/scenario.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "dataplane/fabric/network.h"
#include "dataplane/port/bonded_port.h"
#include "dataplane/service/nics/link_faults.h"
#include "dataplane/service/nics/nic_set.h"

namespace paceline::service {

struct EmulatedSettings {
  // Names of the hosts, in order; hosts without a name are called h0, h1, ...
  std::vector<std::string> names;
  NicShape shape = NicShape::bonded;  // as the plan was made for
  config::FabricConfig fabric;        // that the plan was made of
  bool one_path = false;              // all packets of a connection take one
  // The transmit ring of a host, in time on its link: a host that is polled so late can still fill
  // it. At least two full packets, at most 256 KiB.
  Picos transmit_ring = picos_from_micros(20);
  // Packets refer to their senders' memory where they can (PortInfo::lends_payload).
  bool lend_payload = true;
  // Names of the profiles from which the values of congestion control came.
  std::string profile;
  std::string fallback_profile;
};

class EmulatedNics final : public NicSet {
 public:
  // Requires a plan without errors. Throws std::invalid_argument, as fabric::Network does.
  EmulatedNics(const WorldPlan& plan, const EmulatedSettings& settings);
  ~EmulatedNics() override;

  std::size_t size() const override { return hosts_.size(); }
  const Nic& nic(std::size_t index) const override { return hosts_[index].nic; }
  std::optional<transport::QpPath> path_to(std::size_t from,
                                           const wire::IpAddress& to) const override;
  std::optional<transport::QpPath> path_to_local(std::size_t from,
                                                 std::uint16_t local_id) const override;

  std::string plan_fault(const config::LinkFault& fault,
                         std::vector<fabric::LinkEvent>& out) const override {
    return faults_->add(fault, out);
  }
  std::vector<std::uint32_t> fault_links(const std::string& target) const override {
    return faults_->links_of(target);
  }
  std::uint16_t port_past(std::uint32_t link, std::size_t from, const wire::IpAddress& to,
                          std::uint16_t port) const override {
    const std::uint32_t host = fabric::host_of(network_.spec(), to);
    return host < hosts_.size()
               ? faults_->port_past(link, static_cast<std::uint32_t>(from), host, port)
               : port;
  }

  void touch(std::size_t index) override { note(static_cast<std::uint32_t>(index)); }
  bool turn(Picos now, Picos gap) override;
  Picos next_deadline() const override { return due_.empty() ? next_ : Picos{0}; }
  bool receives_from_outside() const override { return false; }
  std::uint64_t link_changes() const override { return link_changes_; }
  std::uint8_t ports_up(std::size_t index) const override;
  void change_links(Picos now, std::span<const fabric::LinkEvent> events) override;
  // The links between the host and its switches: frames as they arrive at their other ends.
  std::string capture(std::size_t index, CaptureRingWriter* ring) override;
  NicSetReport blank_report() const override;
  void describe(Picos now, NicSetReport& report) override;
  std::optional<LastHop> last_hop(Picos now, std::size_t index) override;

  fabric::Network& network() { return network_; }

 private:
  struct Host {
    std::unique_ptr<transport::Engine> engine;
    Port* port = nullptr;
    Nic nic;
    bool due = false;  // in due_
    CaptureRingWriter* captured = nullptr;
    std::uint64_t sent_wire_bytes = 0;
    Picos sending{0};          // of all its ports together
    std::vector<Picos> ready;  // by port: when it takes the next packet, as of the last poll
  };

  static fabric::FabricSpec prepared(const WorldPlan& plan, const EmulatedSettings& settings);
  std::string name_of(std::uint32_t host, const EmulatedSettings& settings) const;
  Port& port_of(std::uint32_t host);
  // Endpoints of the fabric that the host has: a port each.
  std::uint32_t endpoint(std::uint32_t host, std::uint32_t port) const {
    return port * static_cast<std::uint32_t>(hosts_.size()) + host;
  }
  std::vector<NamedLinks> named_links(const EmulatedSettings& settings) const;
  std::optional<transport::QpPath> path_to_end(std::size_t from, std::uint32_t end,
                                               const wire::IpAddress& address) const;
  void catch_up(Picos now);
  void links_have_changed();
  void note(std::uint32_t host);
  void poll(std::uint32_t index, Picos now, Picos gap);
  void count_sending(std::uint32_t index, Picos now);

  std::uint32_t first_host_actor_;
  EventWheel wheel_;
  fabric::Network network_;
  std::deque<BondedPort> bonds_;  // of hosts with several ports
  std::vector<Host> hosts_;
  std::vector<std::uint32_t> islands_;  // of endpoints, as fabric::islands
  std::optional<LinkFaults> faults_;
  std::uint64_t link_changes_ = 0;
  std::uint64_t link_events_ = 0;   // of the network, that link_changes_ has
  std::vector<std::uint32_t> due_;  // hosts with something to do; each once
  Picos next_ = kNever;
  std::string algorithm_;
};

}  // namespace paceline::service
