// One end of the soak: an engine behind bad weather, with memory that streams divide among
// themselves, and the queues that their completions come through.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "dataplane/transport/engine.h"
#include "tests/soak/cable.h"

namespace paceline::soak {

// A claim that does not hold.
class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class... Args>
void require(bool holds, fmt::format_string<Args...> text, Args&&... args) {
  if (!holds) [[unlikely]]
    throw Broken(fmt::format(text, std::forward<Args>(args)...));
}

// The host's memory, as it is or behind a provider that often answers later.
class SlowMemory final : public transport::MemoryProvider {
 public:
  struct Answer {
    Picos at;
    std::uint32_t qp_number;
  };

  SlowMemory(std::span<std::byte> memory, Random random) : memory_(memory), random_(random) {}

  transport::MemoryResult read(const transport::MemoryCaller& caller, std::uint64_t offset,
                               std::span<std::byte> out) override {
    if (late(caller.qp_number)) return transport::MemoryResult::pending;
    std::memcpy(out.data(), memory_.data() + offset, out.size());
    return transport::MemoryResult::done;
  }
  transport::MemoryResult write(const transport::MemoryCaller& caller, std::uint64_t offset,
                                std::span<const std::byte> in) override {
    if (late(caller.qp_number)) return transport::MemoryResult::pending;
    std::memcpy(memory_.data() + offset, in.data(), in.size());
    return transport::MemoryResult::done;
  }
  transport::MemoryResult atomic(const transport::MemoryCaller& caller, std::uint64_t offset,
                                 const transport::AtomicOperation& operation,
                                 std::uint64_t& original) override {
    if (late(caller.qp_number)) return transport::MemoryResult::pending;
    std::memcpy(&original, memory_.data() + offset, sizeof original);
    const std::uint64_t result = operation.result(original);
    std::memcpy(memory_.data() + offset, &result, sizeof result);
    return transport::MemoryResult::done;
  }

  // The calls that are answered by `now`; the engine is told outside.
  void take_due(Picos now, std::vector<std::uint32_t>& out) {
    now_ = now;
    std::size_t kept = 0;
    for (const Answer& answer : waiting_) {
      if (answer.at <= now) {
        out.push_back(answer.qp_number);
      } else {
        waiting_[kept++] = answer;
      }
    }
    waiting_.resize(kept);
  }
  Picos next() const {
    Picos next = kNever;
    for (const Answer& answer : waiting_) next = earlier(next, answer.at);
    return next;
  }
  // The next call succeeds, as the contract says.
  void answer_next() { sure_ = true; }
  void set_now(Picos now) { now_ = now; }

 private:
  bool late(std::uint32_t qp) {
    if (std::exchange(sure_, false) || random_.below(32) != 0) return false;
    waiting_.push_back(
        {now_ + picos_from_nanos(static_cast<std::int64_t>(random_.below(20'000))), qp});
    return true;
  }

  std::span<std::byte> memory_;
  Random random_;
  Picos now_{0};
  bool sure_ = false;
  std::vector<Answer> waiting_;
};

struct Host {
  static constexpr std::uint64_t kBase = 0x10'0000;  // virtual address of the memory

  Host(const PortInfo& info, Picos delay, PacketPool& pool, const Impairments& impairments,
       transport::EngineConfig config, std::size_t memory_bytes, std::uint64_t seed, unsigned index)
      : port(info, delay, pool, 0.002, Random(seed, 10 + index)),
        weather(port, impairments, Random(seed, 20 + index)),
        engine(std::move(config), weather),
        send_cq(1U << 14),
        receive_cq(1U << 14),
        memory(memory_bytes, kPoisonByte),
        slow(memory, Random(seed, 30 + index)),
        key(engine.regions().add_plain(kBase, memory, kAccess)),
        slow_key(engine.regions().add_provided(kBase, memory_bytes, slow, kAccess)) {}

  std::span<std::byte> bytes(std::uint64_t offset, std::uint64_t length) {
    return std::span(memory).subspan(offset, length);
  }

  static constexpr std::uint8_t kAccess =
      transport::access::local_write | transport::access::remote;
  static constexpr std::byte kPoisonByte{0xA7};

  CableEnd port;
  BadWeather weather;
  transport::Engine engine;
  transport::CompletionQueue send_cq;
  transport::CompletionQueue receive_cq;
  std::vector<std::byte> memory;
  SlowMemory slow;
  std::uint32_t key;
  std::uint32_t slow_key;
  bool touched = false;  // to be polled at the present time
};

}  // namespace paceline::soak
