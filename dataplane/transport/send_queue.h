// The send queue of one queue pair: a ring of work requests with the packet sequence numbers each
// will use. PSNs are assigned when the request is posted, so any PSN in flight can be found again
// after a go-back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/base/psn.h"
#include "dataplane/transport/types.h"

namespace paceline::transport {

struct SendEntry {
  WorkRequest request;
  Psn first_psn;
  std::uint32_t packets = 1;  // an empty message still takes one packet
};

class SendQueue {
 public:
  // capacity is rounded up to a power of two.
  explicit SendQueue(std::size_t capacity) {
    std::size_t size = 1;
    while (size < capacity) size *= 2;
    ring_.resize(size);
    mask_ = static_cast<std::uint32_t>(size - 1);
  }

  bool full() const { return tail_ - head_ > mask_; }
  bool empty() const { return tail_ == head_; }
  std::uint32_t size() const { return tail_ - head_; }
  // Positions are free-running: head() is the oldest incomplete request, tail() one past the
  // newest.
  std::uint32_t head() const { return head_; }
  std::uint32_t tail() const { return tail_; }
  SendEntry& at(std::uint32_t position) { return ring_[position & mask_]; }
  const SendEntry& at(std::uint32_t position) const { return ring_[position & mask_]; }

  // Requires !full(). `first` is the PSN after the newest entry's last.
  void push(const WorkRequest& request, Psn first, std::uint32_t packets) {
    ring_[tail_++ & mask_] = SendEntry{request, first, packets};
  }
  void pop() { ++head_; }

 private:
  std::vector<SendEntry> ring_;
  std::uint32_t mask_ = 0;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
};

}  // namespace paceline::transport
