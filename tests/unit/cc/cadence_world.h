// A small network for Cadence's tests: hosts around one output-queued switch, in virtual
// picoseconds, driving the real context, arbiter and allocator in the order uplink_arbiter.h asks
// for. Data: packets of one MTU, paced per context, round robin on the uplink, first in first out
// towards the receiver, infinite buffers, never lost. Control: a fixed delay, optional loss and
// jitter, and its bytes take capacity of the link it arrives on ahead of data, as do ACKs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "cc/cadence/cadence.h"
#include "cc/cadence/receiver/receiver.h"
#include "cc/cadence/sender.h"
#include "dataplane/base/numbers/random.h"

namespace paceline::cc::test {

struct WorldOptions {
  std::uint32_t hosts = 33;
  Rate link = rate_from_gbps(100);
  std::int64_t hop_ns = 1000;  // delay of each of the two links of a path
  double control_loss = 0;
  std::int64_t control_jitter_ns = 0;  // extra delay, uniform: control messages reorder
  bool acks = true;                    // 84 bytes per data packet on the way back
  std::vector<double> params;          // empty: defaults
  std::uint64_t seed = 1;
};

struct Flow {
  std::uint32_t src = 0, dst = 0;
  std::uint64_t bytes = 0;
  std::int64_t start_ns = 0;
  std::int64_t finish_ns = -1;  // last byte at the receiver
};

class World {
 public:
  explicit World(const WorldOptions& options);

  std::size_t post(std::uint32_t src, std::uint32_t dst, std::uint64_t bytes,
                   std::int64_t start_ns);
  // Runs until everything posted has arrived, or until the limit. Returns whether all arrived.
  bool run(std::int64_t limit_ns);
  // Runs to this time whatever happens.
  void run_to(std::int64_t ns);

  void kill(std::uint32_t host, std::int64_t at_ns);  // neither sends nor answers from then on

  std::int64_t now_ns() const { return now_ / 1000; }
  const std::vector<Flow>& flows() const { return flows_; }
  const CadenceParams& params() const { return params_; }
  CadenceReceiver& receiver(std::uint32_t host) { return *hosts_[host].receiver; }
  const Cadence::State& context(std::uint32_t src, std::uint32_t dst) const;
  const Decision& decision(std::uint32_t src, std::uint32_t dst) const;
  std::uint64_t peak_queue(std::uint32_t host) const { return hosts_[host].peak_queue; }
  std::uint64_t peak_queue() const;
  std::uint64_t queue(std::uint32_t host) const { return hosts_[host].queued; }
  // Time average of the queue towards the host between two times (set before running).
  void watch(std::uint32_t host, std::int64_t from_ns, std::int64_t to_ns);
  double watched_average() const;
  std::uint64_t watched_peak() const { return watch_peak_; }
  std::uint64_t control_bytes() const { return control_bytes_; }
  std::uint64_t data_bytes() const { return data_bytes_; }
  std::uint64_t delivered(std::uint32_t src, std::uint32_t dst) const;
  const std::string& violation() const { return violation_; }
  std::uint64_t wire_bytes(std::uint64_t payload) const {
    return message_wire_bytes(params_, payload);
  }
  // Ideal completion of everything posted: the busiest port at line rate, plus the path.
  double ideal_ns() const;
  double base_ns(std::uint64_t bytes) const;

  std::function<void(const GrantMessage&, std::uint32_t src, std::uint32_t dst)> on_grant;

 private:
  struct Message {
    std::size_t flow = 0;
    std::uint64_t left = 0;
  };
  struct Context {
    Cadence::State state{};
    Decision decision{};
    std::deque<Message> messages;
    std::uint64_t backlog = 0;
    std::uint64_t sent_total = 0;
    std::uint64_t sent_since = 0;
    std::uint64_t delivered = 0;
    std::uint64_t flying = 0;  // payload sent and not yet acknowledged
    std::int64_t pace_at = 0;
    std::int64_t timer_at = 0;
    ChannelCounters* counters = nullptr;  // at the receiver
    bool started = false;
  };
  struct Packet {
    std::uint32_t src = 0, dst = 0, wire = 0, payload = 0;
    std::size_t flow = 0;
    bool last = false;
  };
  struct Host {
    std::unique_ptr<CadenceSender> arbiter;
    std::unique_ptr<CadenceReceiver> receiver;
    std::vector<Context> contexts;
    std::vector<std::uint32_t> busy;  // contexts with backlog
    std::deque<Packet> queue;         // at the switch, towards this host
    std::uint64_t queued = 0, peak_queue = 0;
    std::uint64_t priority_bytes = 0;  // control and ACKs that go first
    bool uplink_busy = false, downlink_busy = false, dead = false;
    std::int64_t uplink_at = -1;  // pending wake of the uplink
    std::size_t turn = 0;
    std::int64_t receiver_at = -1, arbiter_at = -1;
  };
  struct Entry {
    std::int64_t at = 0;
    std::uint64_t order = 0;
    std::function<void()> run;
    bool operator>(const Entry& o) const { return at != o.at ? at > o.at : order > o.order; }
  };

  void at(std::int64_t ps, std::function<void()> run);
  void deliver(std::uint32_t src, std::uint32_t dst, Event event);
  void settle(std::uint32_t src);
  void send_request(std::uint32_t src, std::uint32_t dst, const Event& event);
  void control(std::uint32_t from, std::uint32_t to, std::function<void()> arrive);
  void poll_receiver(std::uint32_t host);
  void kick_uplink(std::uint32_t host);
  void kick_downlink(std::uint32_t host);
  void arm(std::uint32_t src, std::uint32_t dst);
  void queue_changed(std::uint32_t host);
  void check(std::uint32_t host);
  void fail(const std::string& what) {
    if (violation_.empty()) violation_ = what + " at " + std::to_string(now_ns()) + " ns";
  }

  WorldOptions options_;
  CadenceParams params_;
  Random random_;
  std::vector<Host> hosts_;
  std::vector<Flow> flows_;
  std::size_t unfinished_ = 0;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  std::int64_t now_ = 0;
  std::uint64_t control_bytes_ = 0, data_bytes_ = 0;
  std::string violation_;
  std::uint32_t watch_host_ = ~0U;
  std::int64_t watch_from_ = 0, watch_to_ = 0, watch_last_ = 0;
  double watch_area_ = 0;
  std::uint64_t watch_peak_ = 0;
};

}  // namespace paceline::cc::test
