// An Ethernet device of DPDK, physical or virtual: found or made, configured, started, closed. A
// DpdkPort on one of its queues moves packets (dpdk_port.h).
//
// Not thread-safe: one thread opens and closes; in between, ports belong to their threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/port/dpdk/dpdk_capabilities.h"
#include "dataplane/port/dpdk/dpdk_eal.h"
#include "dataplane/port/dpdk/dpdk_memory.h"
#include "dataplane/port/dpdk/dpdk_pause.h"
#include "dataplane/port/dpdk/dpdk_stamps.h"
#include "dataplane/wire/headers/addresses.h"

namespace paceline {

struct DpdkDeviceSettings {
  // A device's name with its arguments as DPDK writes them, "net_memif0,role=client" or
  // "0000:3b:00.0"; created if it does not exist.
  std::string device;
  std::uint16_t mtu_bytes = 4096;  // RoCE path MTU to carry
  std::uint16_t rx_descriptors = 1024;
  std::uint16_t tx_descriptors = 1024;
  // Payloads leave from registered memory where the device can (SendPath).
  bool lend_payload = true;
  bool promiscuous = false;
  bool all_multicast = false;           // IPv6 neighbour discovery asks by multicast
  std::optional<wire::MacAddress> mac;  // none: the device's own
  std::optional<PauseMode> pause;       // none: as it is
  // Packets say when they came by the device's clock, where it stamps them.
  bool device_clock = true;
};

// From the device itself, all queues.
struct DpdkDeviceStatistics {
  std::uint64_t rx_packets = 0;
  std::uint64_t tx_packets = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t rx_missed = 0;     // no free descriptor: the application is too slow
  std::uint64_t rx_errors = 0;     // broken frames
  std::uint64_t rx_no_buffer = 0;  // the device found no mbuf to receive into
  std::uint64_t tx_errors = 0;
  PauseFrames pause{};
};

class DpdkDevice;

struct DpdkDeviceOpened {
  std::unique_ptr<DpdkDevice> device;  // null: see error
  std::string error;
};

class DpdkDevice {
 public:
  // Configures as many queues as there are memories and starts: queue i receives into memories[i]
  // (which may repeat, and must outlive the device). `eal` must outlive it as well.
  static DpdkDeviceOpened open(Eal& eal, const DpdkDeviceSettings& settings,
                               std::span<DpdkMemory* const> memories);
  // The NUMA node of the device, for its memory; -1: unknown, or no such device, which open() will
  // report. Creates the device if it does not exist.
  static int node_of(Eal& eal, const std::string& device);
  // Requires that no thread polls it any more. Stops and removes the device; a peer sees it leave.
  // A net_memif device is only stopped, and stays until the end of the environment: when the driver
  // closes one, it does not take its listener back.
  ~DpdkDevice();
  DpdkDevice(const DpdkDevice&) = delete;
  DpdkDevice& operator=(const DpdkDevice&) = delete;

  const DpdkCapabilities& capabilities() const { return capabilities_; }
  const DpdkDeviceSettings& settings() const { return settings_; }
  // Differences from the settings, and warnings of the driver while it was opened.
  const std::vector<std::string>& notes() const { return notes_; }
  std::uint16_t port_id() const { return port_id_; }
  std::uint16_t queues() const { return static_cast<std::uint16_t>(memories_.size()); }
  DpdkMemory& memory(std::uint16_t queue) const { return *memories_[queue]; }
  wire::MacAddress mac() const { return capabilities_.mac; }
  DpdkDeviceStatistics statistics() const;
  bool link_up() const;
  // Null: received packets do not say when they came; capabilities() say why.
  const DpdkStampSource* stamps() const { return stamps_ ? &*stamps_ : nullptr; }
  // The gate to pass before each burst; null for drivers that need none.
  InterruptGate* gate() const { return gate_; }

 private:
  DpdkDevice(const DpdkDeviceSettings& settings, std::uint16_t port_id,
             std::span<DpdkMemory* const> memories);
  std::string configure();
  std::string set_up_queues();
  void set_up_pause();
  void set_up_stamps();

  DpdkDeviceSettings settings_;
  std::uint16_t port_id_;
  std::vector<DpdkMemory*> memories_;
  SendPath send_path_ = SendPath::copied;
  std::string send_refusal_;
  DpdkCapabilities capabilities_;
  std::vector<std::string> notes_;
  InterruptGate* gate_ = nullptr;
  std::optional<PauseMode> pause_before_;  // to be put back; nothing where it was left alone
  std::optional<PauseReader> pause_frames_;
  bool stamping_ = false;  // as configured
  std::string stamp_refusal_;
  std::optional<DpdkStampSource> stamps_;
  bool started_ = false;
};

}  // namespace paceline
