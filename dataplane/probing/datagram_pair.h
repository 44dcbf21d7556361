// A queue pair for datagrams of one length that the host itself sends and receives, without a
// program. It has memory of its own, in which received datagrams stay until they are collected. For
// the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/transport/engine.h"

namespace paceline::probing {

class DatagramPair {
 public:
  struct Shape {
    std::uint32_t pd = 0;  // used by nothing else
    std::uint32_t qkey = 0;
    std::uint16_t bytes = 0;     // of a datagram
    std::uint16_t receives = 0;  // at once; what comes beyond is lost, as datagrams are
  };
  struct Arrival {
    Picos at{0};
    std::uint32_t source_qp_number = 0;
    bool whole = false;  // of the right length
    wire::IpAddress source{};
    wire::IpAddress destination{};
    std::span<const std::byte> bytes;
  };

  DatagramPair(Picos now, transport::Engine& engine, const Shape& shape);
  // At the time that was told last.
  ~DatagramPair();
  DatagramPair(const DatagramPair&) = delete;
  DatagramPair& operator=(const DatagramPair&) = delete;

  // 0: the engine has no more queue pairs.
  std::uint32_t number() const { return number_; }
  std::uint32_t pd() const { return shape_.pd; }
  std::uint32_t qkey() const { return shape_.qkey; }

  // `bytes`: as many as the shape says. With `to.signaled`, sent() reports it by its wr_id. Takes
  // effect with the next poll. False: too many datagrams wait to be sent.
  bool send(Picos now, transport::WorkRequest to, std::span<const std::byte> bytes);

  // Whether collect() or sent() would find something.
  bool has_news() const { return !received_.empty() || !sent_.empty(); }
  // Calls take(const Arrival&) for each datagram that the engine has received. True when there was
  // any.
  template <class Take>
  bool collect(Picos now, Take&& take) {
    now_ = now;
    if (received_.empty()) return false;
    transport::Completion one;
    while (received_.poll({&one, 1}) != 0) {
      if (one.status != transport::CompletionStatus::success) continue;
      take(arrival(one));
      post(one.wr_id);
    }
    return true;
  }
  // Calls take(const Completion&) for each signaled datagram that has left, or failed.
  template <class Take>
  bool sent(Take&& take) {
    if (sent_.empty()) return false;
    transport::Completion one;
    while (sent_.poll({&one, 1}) != 0) take(one);
    return true;
  }

 private:
  std::size_t slot_bytes() const { return transport::kGrhBytes + shape_.bytes; }
  std::byte* slot(std::uint64_t index) { return memory_.data() + index * slot_bytes(); }
  void post(std::uint64_t index);
  Arrival arrival(const transport::Completion& completion);

  transport::Engine& engine_;
  Shape shape_;
  Picos now_;
  std::vector<std::byte> memory_;
  std::uint32_t key_;
  transport::CompletionQueue sent_;
  transport::CompletionQueue received_;
  transport::ReceiveQueue receives_;
  std::uint32_t number_ = 0;
};

}  // namespace paceline::probing
