// Two engines joined by a cable in virtual time. Each end has real payload bytes, computes and
// checks ICRCs, and receives through an ImpairedPort that a test may script. After every poll the
// lab holds the engine to its contract: next_deadline() > now, and conservation now and then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/transport/engine.h"
#include "dataplane/wire/packet/parse.h"
#include "tests/support/impair.h"

namespace paceline::transport::test {

inline constexpr std::uint32_t kMtu = 1024;  // of most tests: small enough for many packets

// One end of a cable with a rate and a delay: a packet leaves when the one before it has left, and
// arrives, copied, `delay` after its last bit left.
class WirePort final : public Port {
 public:
  WirePort(const PortInfo& info, Picos delay, std::uint32_t pool_packets, std::uint16_t pool_id)
      : info_(info), delay_(delay), pool_(pool_packets, info.payload_room, false, pool_id) {}

  void join(WirePort& peer) { peer_ = &peer; }
  void set_now(Picos now) { now_ = now; }
  // Accepts nothing at all, although it said it would, for this many calls of tx.
  void refuse_calls(unsigned calls) { refuse_ = calls; }
  // Finds nothing in this many calls of rx, whatever has arrived: as a device whose driver is busy
  // elsewhere.
  void blind_calls(unsigned calls) { blind_ = calls; }
  // What received packets say of their arrival is so much too early.
  void set_stamp_error(Picos early) { stamp_error_ = early; }
  // A packet out of nowhere: arrives here at `at` (not before packets already in flight).
  void inject(Picos at, const Packet& packet, std::span<const std::byte> payload);

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  Picos rx_ready_at() const override { return arriving_.empty() ? kNever : arriving_.front().at; }
  Picos tx_ready_at(std::uint8_t) const override { return busy_until_; }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override { return info_; }

  // What has left this end so far; times are those of the last bit.
  struct Departure {
    Picos at;
    std::uint32_t wire_bytes;
    std::uint8_t traffic_class;
  };
  const std::vector<Departure>& departures() const { return departures_; }
  // Called with each packet that leaves, at the time of the poll that sent it.
  std::function<void(Picos, const Packet&)> on_departure;

 private:
  struct Frame {
    Picos at;
    Packet packet;
    std::vector<std::byte> payload;
  };

  PortInfo info_;
  Picos delay_;
  PacketPool pool_;
  WirePort* peer_ = nullptr;
  Picos now_{0};
  Picos busy_until_{0};
  unsigned refuse_ = 0;
  unsigned blind_ = 0;
  Picos stamp_error_{0};
  std::deque<Frame> arriving_;
  std::vector<Departure> departures_;
};

// Decides by script first: a script that returns true has written the verdict.
class ScriptedPort final : public ImpairedPort {
 public:
  using Script = std::function<bool(const wire::ParsedPacket&, ImpairmentVerdict&)>;
  using ImpairedPort::ImpairedPort;
  void set_script(Script script) { script_ = std::move(script); }

 protected:
  ImpairmentVerdict judge(const Packet& packet) override;

 private:
  Script script_;
};

// Drops what the predicate says.
ScriptedPort::Script drop_if(std::function<bool(const wire::ParsedPacket&)> predicate);

struct LabOptions {
  Rate link_rate = rate_from_gbps(100);
  Picos delay = picos_from_micros(1);
  std::uint32_t pool_packets = 4096;
  std::uint16_t tx_burst = 1;
  bool stamps_arrivals = false;  // packets say when they came, though they are found later
  std::uint64_t seed = 1;
  Impairments impairments{};  // both ways
  EngineConfig engine{};      // addresses and algorithms without values are filled in
  bool foreign_b = false;     // the second engine does not speak control
  QpConfig qp{};              // queues are filled in
};

// Packets of kMtu payload bytes.
LabOptions small_packets();
// An algorithm with its defaults and some overrides, resolved for the lab's engines.
CcChoice choose_cc(cc::AlgorithmId id, const LabOptions& options,
                   std::span<const std::pair<std::string_view, double>> overrides = {});

class Lab {
 public:
  static constexpr std::size_t kMemoryBytes = std::size_t{4} << 20;
  static constexpr std::uint64_t kBase = 0x10'0000;  // virtual address of a side's memory

  struct Side {
    Side(const LabOptions& options, unsigned index);
    WirePort port;
    ScriptedPort cable;
    Engine engine;
    CompletionQueue send_cq;
    CompletionQueue receive_cq;
    ReceiveQueue receives;
    std::vector<std::byte> memory;
    std::uint32_t key;  // of `memory`, all rights
    std::uint64_t polls = 0;

    const telemetry::EngineCounters& counters() const { return engine.counters(); }
    std::vector<Completion> sent();  // takes what has completed
    std::vector<Completion> received();
    // In a region other than `memory`: give the key.
    bool post_receive(std::uint64_t id, std::uint64_t offset, std::uint64_t length);
  };

  struct Pair {
    std::uint32_t a = 0;
    std::uint32_t b = 0;
  };

  explicit Lab(const LabOptions& options = {});
  ~Lab();

  Side& a() { return *sides_[0]; }
  Side& b() { return *sides_[1]; }
  Side& side(unsigned index) { return *sides_[index]; }
  Picos now() const { return now_; }

  // A connected pair of queue pairs; the first PSNs of both directions.
  Pair connect(std::uint32_t first_psn_a = 100, std::uint32_t first_psn_b = 200);
  Pair connect(const QpConfig& config_a, const QpConfig& config_b, std::uint32_t first_psn_a,
               std::uint32_t first_psn_b);
  // options.qp with the queues of the side.
  QpConfig qp_config(unsigned side) const;

  // A side will be polled at the present time: call after posting.
  void touch(unsigned side) { touched_[side] = true; }
  PostResult post(unsigned side, std::uint32_t qp, const WorkRequest& request);
  // A WRITE or SEND from offset to offset of the two memories.
  WorkRequest request(WorkOpcode opcode, std::uint64_t id, std::uint64_t from, std::uint64_t to,
                      std::uint64_t length, std::uint32_t immediate = 0);

  // The host of this side stands still from `from` to `until`: nobody polls its engine. The first
  // look at the port after that finds nothing yet. `told`: the engine is told.
  struct Stop {
    Picos from = kNever;
    Picos until = kNever;
    bool told = true;
  };
  void stop_host(unsigned side, const Stop& stop) { stops_[side] = stop; }

  // Goes on until nothing is left to happen or the next thing is later than `limit`. Returns false
  // in the second case; time is then `limit`.
  bool run(Picos limit = kNever);
  // Called after every poll of a side.
  std::function<void(unsigned side)> on_poll;

  // Bytes by a generator; different for every seed.
  static void fill(std::span<std::byte> memory, std::uint64_t seed);
  // All is quiet: pools are back to 0, nothing in flight, laws hold. Empty when so.
  std::string leftovers();

 private:
  void poll(unsigned side);

  LabOptions options_;
  Picos now_{0};
  std::array<std::unique_ptr<Side>, 2> sides_;
  std::array<bool, 2> touched_{};
  std::array<Stop, 2> stops_{};
};

// The first `bytes` of both sides' memories are the same.
bool equal_memories(Lab& lab, std::size_t bytes);

}  // namespace paceline::transport::test
