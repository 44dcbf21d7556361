// Ports of this machine as NIC instances, with an engine for each. The caller decides what a port
// is: a device, or in a test one end of a cable. In front of each is a port that knows its
// neighbours (neighbour/resolving_port.h), so a program only has to name a GID.
//
// Time is the time of the turn: the network acts by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cc/interface/algorithm.h"
#include "dataplane/base/numbers/random.h"
#include "dataplane/neighbour/resolving_port.h"
#include "dataplane/port/bonded_port.h"
#include "dataplane/port/capture/ring_captured_port.h"
#include "dataplane/service/nics/nic_set.h"
#include "dataplane/transport/core/engine_config.h"

namespace paceline::service {

// Reads the counters of a port's device; outlives the NIC instance.
class PortDevice {
 public:
  PortDevice() = default;
  PortDevice(const PortDevice&) = delete;
  PortDevice& operator=(const PortDevice&) = delete;
  virtual ~PortDevice() = default;

  virtual void count(PortReport& report) const = 0;             // any thread
  virtual void tell_arrivals(ArrivalReport& report) const = 0;  // the worker's
  virtual LoanReport loans() const = 0;                         // likewise
  // Likewise: asks the device whether it has a link, which its port then knows. Takes microseconds.
  virtual bool look_at_link() const { return true; }
};

struct PortNic {
  struct Link {
    neighbour::ResolvingPort* port = nullptr;
    const PortDevice* device = nullptr;  // none: there is nothing to tell
  };

  std::string name;
  // All links of a bond; they share addresses and one pool (port/bonded_port.h).
  std::vector<Link> links;
  // As plan_engine() sets it; addresses and MAC are the first port's.
  transport::EngineConfig engine;
  // Names of the profiles from which its values of congestion control came.
  std::string profile{};
  std::string fallback_profile{};
};

// Prepares a thread to use the ports; made and destroyed on the worker's thread.
class PortThread {
 public:
  PortThread() = default;
  PortThread(const PortThread&) = delete;
  PortThread& operator=(const PortThread&) = delete;
  virtual ~PortThread() = default;
};

// Keeps open what the ports depend on, and is released last.
class PortKeeper {
 public:
  PortKeeper() = default;
  PortKeeper(const PortKeeper&) = delete;
  PortKeeper& operator=(const PortKeeper&) = delete;
  virtual ~PortKeeper() = default;

  virtual std::unique_ptr<PortThread> enter_thread() = 0;
};

class PortNics final : public NicSet {
 public:
  // Each port's host has at most one address of a family.
  PortNics(std::vector<PortNic> ports, std::shared_ptr<PortKeeper> keeper);
  ~PortNics() override;

  std::size_t size() const override { return ends_.size(); }
  const Nic& nic(std::size_t index) const override { return ends_[index].nic; }
  // A path to hosts on the port's link or behind its gateway. The MAC address is found when there
  // is something to send. There is no path to the port's own address, because a port does not
  // receive its own packets.
  std::optional<transport::QpPath> path_to(std::size_t from,
                                           const wire::IpAddress& to) const override;
  // RoCE knows no local identifiers; where hosts are emulated their numbers stand in.
  std::optional<transport::QpPath> path_to_local(std::size_t /*from*/,
                                                 std::uint16_t /*local_id*/) const override {
    return std::nullopt;
  }
  NicSetReport blank_report() const override;
  void ask_devices(NicSetReport& report) const override;

  void enter_thread() override;
  void leave_thread() override { thread_.reset(); }
  void use_clock(const PollClock& clock) override {
    for (End& end : ends_) end.port->use_clock(clock);
  }
  std::uint64_t link_changes() const override { return link_changes_; }
  std::uint8_t ports_up(std::size_t index) const override {
    return ends_[index].port->links_up() != 0 ? 1 : 0;
  }
  void touch(std::size_t index) override { ends_[index].touched = true; }
  bool turn(Picos now, Picos gap) override;
  Picos next_deadline() const override;
  bool receives_from_outside() const override { return true; }
  // Frames as the device has them, and with their reason those that do not get that far.
  std::string capture(std::size_t index, CaptureRingWriter* ring) override;
  void describe(Picos now, NicSetReport& report) override;
  std::optional<LoanReport> loans(std::size_t index) const override;

 private:
  struct End {
    std::unique_ptr<BondedPort> bond;  // of several links
    Port* port = nullptr;              // of the only one, or the bond
    std::unique_ptr<transport::Engine> engine;
    std::vector<PortNic::Link> links;
    Nic nic;
    std::uint8_t links_up = 0;  // as its engine knows
    bool touched = false;
    std::deque<RingCapturedPort> captured;  // behind each link's port while it is captured

    const neighbour::HostRoutes& routes() const { return links.front().port->host().routes(); }
  };

  static void let_go(End& end);
  void look_at_links(Picos now);

  std::shared_ptr<PortKeeper> keeper_;
  std::vector<End> ends_;
  std::string algorithm_;
  Picos look_at_{0};  // at the links
  std::uint64_t link_changes_ = 0;
  std::unique_ptr<PortThread> thread_;
};

}  // namespace paceline::service
