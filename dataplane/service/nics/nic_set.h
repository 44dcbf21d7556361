// The NIC instances that one worker of the service serves: N emulated hosts with the fabric between
// them, or ports of this machine. The service knows them only by this interface; the implementation
// runs the engines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/attach/protocol.h"
#include "dataplane/base/units.h"
#include "dataplane/port/capture/capture_ring_writer.h"
#include "dataplane/service/nics/link_faults.h"
#include "dataplane/service/nics/nic_report.h"
#include "dataplane/transport/engine.h"
#include "dataplane/transport/interface/attributes.h"

namespace paceline::service {

// The congestion control that an instance begins with, and what its parameters are derived from.
struct NicCongestion {
  cc::PortFacts facts{};
  std::string profile;
  std::string fallback_profile;
  transport::CcChoice primary{};
  transport::CcChoice fallback{};
};

// One NIC instance. Everything but the engine is constant and may be read by any thread.
struct Nic {
  attach::NicInfo info{};               // limits excepted, which are the service's
  transport::Engine* engine = nullptr;  // of the worker's thread
  NicCongestion congestion{};
};

// For an emulated instance: the port of the switch towards it, and the instance's own link.
struct LastHop {
  std::uint64_t queue_bytes = 0;      // of all its ports
  std::uint64_t queue_max_bytes = 0;  // since the start
  std::uint64_t marked = 0;
  std::uint64_t drops = 0;
  Picos paused{0};  // the instance's link towards the switch, summed over classes
};

class NicSet {
 public:
  NicSet() = default;
  NicSet(const NicSet&) = delete;
  NicSet& operator=(const NicSet&) = delete;
  virtual ~NicSet() = default;

  // --- any thread ---
  virtual std::size_t size() const = 0;
  virtual const Nic& nic(std::size_t index) const = 0;
  // The path from this instance to a GID, or to the instance with a local_id (only among emulated
  // ones). Nothing if there is none. It begins at the port of the GID's subnet, if there are
  // several.
  virtual std::optional<transport::QpPath> path_to(std::size_t from,
                                                   const wire::IpAddress& to) const = 0;
  virtual std::optional<transport::QpPath> path_to_local(std::size_t from,
                                                         std::uint16_t local_id) const = 0;
  // Adds the link events that a fault consists of, for change_links(). Returns an error, or an
  // empty text.
  virtual std::string plan_fault(const config::LinkFault& /*fault*/,
                                 std::vector<fabric::LinkEvent>& /*out*/) const {
    return "target: faults are of emulated links, and these are ports of the machine; "
           "`ip link set DEVICE down` takes one down";
  }
  // The links of a fault's target; empty: no target has that name.
  virtual std::vector<std::uint32_t> fault_links(const std::string& /*target*/) const { return {}; }
  // A source port like `port` with which the instance's packets to a GID pass this link.
  virtual std::uint16_t port_past(std::uint32_t /*link*/, std::size_t /*from*/,
                                  const wire::IpAddress& /*to*/, std::uint16_t port) const {
    return port;
  }
  // A report with all names and all room, but without numbers.
  virtual NicSetReport blank_report() const { return {}; }
  // Fills in what devices themselves count, in a blank_report(). May take a while.
  virtual void ask_devices(NicSetReport& /*report*/) const {}

  // --- the worker's thread ---
  // The first and the last call on it; the calls below happen between the two.
  virtual void enter_thread() {}
  virtual void leave_thread() {}
  // The clock from which times of turns will be read, on this thread; {}: none.
  virtual void use_clock(const PollClock& /*clock*/) {}
  // The engine was given something to do since the last turn: it is polled in the next.
  virtual void touch(std::size_t index) = 0;
  // Does everything that is due at `now`, which never goes back. `gap`: for how long, up to now, no
  // worker could run though there was work (Engine::stopped). True if there was anything to do.
  virtual bool turn(Picos now, Picos gap) = 0;
  // When the next turn is needed if nothing is touched; may be in the past.
  virtual Picos next_deadline() const = 0;
  // Packets may arrive from outside at any time, unannounced: the worker must not sleep for long.
  virtual bool receives_from_outside() const = 0;
  // Grows whenever a link of an instance may have gone down or come up.
  virtual std::uint64_t link_changes() const { return 0; }
  // The ports of an instance that have a link, as NicInfo::up.
  virtual std::uint8_t ports_up(std::size_t /*index*/) const { return 1; }
  // Between turns: applies these events to links, their times counted from `now`. May allocate.
  virtual void change_links(Picos /*now*/, std::span<const fabric::LinkEvent> /*events*/) {}
  // Between turns: shows `ring` what crosses the instance's port or link from now on, both ways,
  // including drops there; nullptr: stops. May allocate. Returns an error, or an empty text.
  virtual std::string capture(std::size_t /*index*/, CaptureRingWriter* /*ring*/) {
    return "it cannot be captured";
  }
  // Fills in the numbers of a blank_report(); `now` as in turn(). Does not allocate, and changes no
  // result.
  virtual void describe(Picos /*now*/, NicSetReport& /*report*/) {}
  // Call after a turn at `now`. Does not allocate, and changes no result. Nothing if there is none.
  virtual std::optional<LastHop> last_hop(Picos /*now*/, std::size_t /*index*/) {
    return std::nullopt;
  }
  // The same for a port of this machine.
  virtual std::optional<LoanReport> loans(std::size_t /*index*/) const { return std::nullopt; }
};

}  // namespace paceline::service
