// Packets that have arrived at each host and that its port has not taken yet, and the list of hosts
// with something to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/port/packet.h"

namespace paceline::fabric {

struct alignas(32) HostQueue {
  Packet* head = nullptr;
  Packet* tail = nullptr;
  bool woken = false;  // in HostQueues::woken()

  void push(Packet* packet) {
    packet->next = nullptr;
    if (head == nullptr) {
      head = packet;
    } else {
      tail->next = packet;
    }
    tail = packet;
  }
  // Moves the first packets into `burst`; returns how many.
  std::size_t take(std::span<Packet*> burst) {
    std::size_t n = 0;
    while (n < burst.size() && head != nullptr) {
      Packet* packet = head;
      head = packet->next;
      packet->next = nullptr;
      burst[n++] = packet;
    }
    return n;
  }
};

class HostQueues {
 public:
  HostQueues(std::uint32_t hosts, std::pmr::memory_resource& memory)
      : queues_(hosts, &memory), woken_(hosts) {}

  // References stay valid.
  HostQueue& operator[](std::uint32_t host) { return queues_[host]; }
  const HostQueue& operator[](std::uint32_t host) const { return queues_[host]; }

  void deliver(std::uint32_t host, Packet* packet) {
    queues_[host].push(packet);
    wake(host);
  }
  void wake(std::uint32_t host) {
    HostQueue& queue = queues_[host];
    if (queue.woken) return;
    queue.woken = true;
    woken_[woken_count_++] = host;
  }
  // Each host at most once, in the order in which they were woken.
  std::span<const std::uint32_t> woken() const { return {woken_.data(), woken_count_}; }
  void clear_woken() {
    for (const std::uint32_t host : woken()) queues_[host].woken = false;
    woken_count_ = 0;
  }
  // Replaces the packets of a host by those that `other` has for it.
  void take_over(const HostQueues& other, std::uint32_t host) {
    queues_[host].head = other.queues_[host].head;
    queues_[host].tail = other.queues_[host].tail;
  }

 private:
  std::pmr::vector<HostQueue> queues_;
  std::vector<std::uint32_t> woken_;  // the first woken_count_; room for every host
  std::size_t woken_count_ = 0;
};

}  // namespace paceline::fabric
