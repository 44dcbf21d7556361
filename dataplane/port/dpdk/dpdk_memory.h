// Packets in DPDK's memory: each lives in the private area of an mbuf, and its payload buffer is
// the mbuf's. A device writes a frame there, the engine reads it in place; the engine puts a
// payload there, the headers are written in front of it, and the device sends one contiguous
// segment.
//
// One block of memory may serve several ports: pools (packet_pool.h) cache from it, each on its own
// thread; the memory itself belongs to none.
//
// Layout of one object, 64-byte aligned parts from left to right:
//
//   mbuf (128) | Packet (192) | 128 for headers | payload room, ICRC, and what a device wants
//
// A received frame begins behind the room for headers, so its payload lies somewhat further in: up
// to 128 bytes more are there for that. After its packet has been freed, the next user, even a
// sender, uses the payload's place as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/port/dpdk/dpdk_loans.h"
#include "dataplane/port/packet_pool.h"

struct rte_mbuf;
struct rte_mempool;

namespace paceline {

struct DpdkMemorySettings {
  std::string name = "packets";  // unlike any other; at most 20 characters
  std::uint32_t packets = 8192;
  std::uint16_t payload_room = 4096;  // at least the path MTU
  int socket = -1;                    // NUMA node; -1: any
  // How many free packets a thread known to DPDK may keep for itself, on top of those in pools; at
  // most 512, and packets / 1.5.
  std::uint32_t thread_cache = 64;
};

class DpdkMemory;

struct DpdkMemoryMade {
  std::unique_ptr<DpdkMemory> memory;  // null: see error
  std::string error;
};

class DpdkMemory final : public PacketSource {
 public:
  static DpdkMemoryMade make(const DpdkMemorySettings& settings);
  // Requires that all packets are back, and all devices that used it are closed.
  ~DpdkMemory() override;

  // Any thread.
  std::size_t take(std::span<Packet*> out) override;
  void give(std::span<Packet* const> packets) override;

  std::uint32_t packets() const { return settings_.packets; }
  std::uint16_t payload_room() const { return settings_.payload_room; }
  std::uint16_t frame_room() const;  // of a received frame, in one piece
  // Packets outside the memory right now: with devices, pools, engines or threads' caches. Slow.
  std::size_t outside() const;
  // A device's view.
  rte_mempool* handle() const { return pool_; }
  // For a port that sends payloads without a copy (dpdk_loans.h). nullptr, with `error` set, if
  // there is no memory for it. Must not run while another thread opens or closes ports on this
  // memory.
  DpdkLoans* make_loans(std::uint32_t most, std::string& error);
  // Payloads that ports on this memory, open or not, have lent and not back. Any thread.
  std::size_t lent() const;

 private:
  DpdkMemory(const DpdkMemorySettings& settings, rte_mempool* pool)
      : settings_(settings), pool_(pool) {}

  DpdkMemorySettings settings_;
  rte_mempool* pool_;
  std::vector<std::unique_ptr<DpdkLoans>> loans_;
};

}  // namespace paceline
