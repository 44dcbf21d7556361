// Queue pair 1 of a NIC instance. It exchanges management datagrams of 256 bytes with other
// machines (InfiniBand Architecture Specification, volume 1, 13.5.1: the general services
// interface). Only the worker uses it, except for take() and the counters. It has memory of its
// own; datagrams that do not fit there are dropped.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/base/containers/spsc_ring.h"
#include "dataplane/base/units.h"
#include "dataplane/probing/datagram_pair.h"
#include "dataplane/transport/engine.h"

namespace paceline::service {

class ManagementPair {
 public:
  static constexpr std::size_t kDatagramBytes = 256;
  struct Arrival {
    wire::IpAddress source{};
    wire::IpAddress destination{};
    std::array<std::byte, kDatagramBytes> bytes{};
  };

  using Bell = std::shared_ptr<const attach::Descriptor>;

  // `pd`: used by nothing else. `bell`: an eventfd, written to when a datagram has arrived.
  // Destroy it only after the worker's thread has ended.
  ManagementPair(Picos now, transport::Engine& engine, std::uint32_t pd, Bell bell);

  // --- between turns ---
  // False: dropped, because too many datagrams or destinations wait.
  bool send(Picos now, const transport::QpPath& path,
            std::span<const std::byte, kDatagramBytes> bytes);

  // --- in a turn ---
  // Passes on the datagrams that the engine has received. True if there were any.
  bool collect(Picos now);

  // --- the control thread ---
  bool take(Arrival& out) { return arrivals_.pop(out); }
  // Datagrams dropped on arrival: wrong size, not from queue pair 1, or too many at once.
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kReceives = 128;
  static constexpr std::size_t kMostHandles = 64;
  struct Handle {
    transport::QpPath path{};
    std::uint32_t number = 0;
    std::uint64_t used = 0;  // value of uses_ at its last use
  };

  bool pass_on(const probing::DatagramPair::Arrival& from);
  // nullptr: all are in use.
  Handle* handle_to(Picos now, const transport::QpPath& path);

  transport::Engine& engine_;
  probing::DatagramPair pair_;
  Bell bell_;
  std::vector<Handle> handles_;
  std::uint64_t uses_ = 0;
  SpscRing<Arrival> arrivals_{kReceives};
  std::atomic<std::uint64_t> lost_{0};
};

}  // namespace paceline::service
