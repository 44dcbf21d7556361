// What streams share: the two hosts, the time, whether new work is still wanted, and the words and
// buffers that belong to no stream alone.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/soak/host.h"
#include "tests/soak/pattern.h"

namespace paceline::soak {

// A word that the streams of one direction all add 1 to: every value is found exactly once.
struct SharedCounter {
  std::uint64_t offset = 0;  // in the target's memory
  std::uint64_t posted = 0;
  std::uint64_t found = 0;
  std::vector<bool> seen;

  void record(std::uint64_t value) {
    require(value < posted, "the shared counter gave {} after only {} additions", value, posted);
    if (seen.size() <= value) seen.resize(2 * value + 64);
    require(!seen[value], "two additions to the shared counter both found {}", value);
    seen[value] = true;
    ++found;
  }
};

// Receive buffers of one host, alike, and the receive queue that they are posted to. Posted late
// where that is wanted: `give` says how many at most.
class Buffers {
 public:
  Buffers(Host& host, std::uint64_t offset, std::uint64_t bytes, std::uint32_t count,
          transport::ReceiveSharing sharing)
      : host_(host), offset_(offset), bytes_(bytes), count_(count), queue_(count, sharing) {
    for (std::uint32_t i = 0; i < count; ++i) free_.push_back(i);
  }
  // What `count` buffers take of the host's memory.
  static std::uint64_t room(std::uint64_t bytes, std::uint32_t count) {
    return count * (bytes + kGap);
  }
  transport::ReceiveQueue& queue() { return queue_; }
  std::uint64_t bytes() const { return bytes_; }

  void give(std::uint32_t most) {
    for (; most != 0 && !free_.empty(); --most) {
      const std::uint32_t i = free_.back();
      transport::ReceiveRequest request;
      request.wr_id = i;
      request.address = Host::kBase + place(i);
      request.length = bytes_;
      request.local_key = host_.key;
      if (!queue_.post(request)) return;
      free_.pop_back();
    }
  }
  // Where the buffer of a completed receive lies in the host's memory. After looking: put_back.
  std::uint64_t place(std::uint64_t id) const {
    require(id < count_, "there is no receive {}", id);
    return offset_ + id * (bytes_ + kGap);
  }
  // `used` bytes of it were looked at, or may have been written by what was dropped half-way; the
  // rest must not have been written.
  void put_back(std::uint64_t id, std::uint64_t used) {
    const std::span<std::byte> memory = host_.bytes(place(id), bytes_ + kGap);
    const std::size_t rest = memory.size() - used;
    require(poison_mismatch(memory.subspan(used)) == rest,
            "the buffer of receive {} was written behind its {} bytes", id, used);
    poison(memory.first(used));
    free_.push_back(static_cast<std::uint32_t>(id));
  }

 private:
  static constexpr std::uint64_t kGap = 64;

  Host& host_;
  std::uint64_t offset_;
  std::uint64_t bytes_;
  std::uint32_t count_;
  transport::ReceiveQueue queue_;
  std::vector<std::uint32_t> free_;
};

struct Stage {
  std::array<std::unique_ptr<Host>, 2> hosts;
  std::array<std::unique_ptr<Buffers>, 2> shared;  // receive queues that several share
  std::array<SharedCounter, 2> counters;           // by host that is the target
  Picos now{0};
  bool closing = false;  // what is begun is finished, nothing else is begun
};

// What a run has done, for the line that is printed at its end.
struct Totals {
  std::uint64_t packets = 0;  // on the cable
  std::uint64_t messages = 0;
  std::uint64_t reliable_bytes = 0;    // payload of RC messages, every byte looked at
  std::uint64_t unreliable_bytes = 0;  // payload of UC and UD messages sent
  std::uint64_t retransmitted = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t rnr = 0;
  std::uint64_t damaged = 0;        // by the network
  std::uint64_t damaged_found = 0;  // by the receiver
  std::uint64_t unreliable_sent = 0;
  std::uint64_t unreliable_delivered = 0;
};

// One direction of traffic of one queue pair. Called after every poll that completed something for
// it, and now and then.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;
  virtual void on_sent(const transport::Completion& completion) = 0;
  virtual void on_received(const transport::Completion& completion) = 0;
  virtual void on_weather(Psn, const ImpairmentVerdict&) {}  // to its packets, at the receiver
  virtual void post() = 0;                                   // as much as its mood allows
  virtual void step() = 0;  // time has passed: moods change, late receives are posted
  virtual bool finished() const = 0;
  virtual bool expects_events() const { return false; }  // its queue pairs get into trouble
  virtual std::string state() const = 0;                 // what it waits for, for a message
  virtual void check_finished() = 0;
  virtual void add_to(Totals& totals) const = 0;
};

}  // namespace paceline::soak
