// An algorithm that keeps what it hears and decides what the test says. It is a plug-in that is
// part of the test's own program.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "cc/plugin/paceline_cc.h"
#include "cc/plugin/plugin.h"
#include "tests/unit/transport/congestion_bench.h"

namespace paceline::transport::test {

// One at a time: its algorithm is the process's.
class Witness {
 public:
  struct Heard : paceline_cc_event {
    const void* state = nullptr;  // of the context
  };

  Witness() {
    REQUIRE(current == nullptr);
    current = this;
  }
  ~Witness() { current = nullptr; }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  static cc::AlgorithmId id() {
    static const cc::AlgorithmId registered = [] {
      static paceline_cc_algorithm table{};
      table.size = sizeof table;
      table.abi_major = PACELINE_CC_ABI_MAJOR;
      table.abi_minor = PACELINE_CC_ABI_MINOR;
      table.name = "witness";
      table.summary = "keeps what it hears";
      table.context = PACELINE_CC_PER_QP;
      table.wants = PACELINE_CC_WANT(PACELINE_CC_MESSAGE) | PACELINE_CC_WANT(PACELINE_CC_IDLE) |
                    PACELINE_CC_WANT(PACELINE_CC_CNP);
      table.param_size = sizeof(paceline_cc_param);
      table.on_events = &on_events;
      auto examined = cc::plugin::examine(&table);
      if (const auto* error = std::get_if<std::string>(&examined)) FAIL(*error);
      const cc::Registered added =
          cc::add_plugin(std::move(std::get<std::unique_ptr<cc::plugin::Plugin>>(examined)));
      INFO(added.error);
      REQUIRE(added.info != nullptr);
      return added.info->id;
    }();
    return registered;
  }
  static EngineConfig config() {
    EngineConfig config = bench_config();
    config.primary = {id(), {}};
    return config;
  }
  std::vector<Heard> of(const CongestionContext& context) const {
    std::vector<Heard> own;
    for (const Heard& event : heard) {
      if (event.state == context.state.data()) own.push_back(event);
    }
    return own;
  }

  std::vector<Heard> heard;
  // The next decisions.
  std::uint64_t rate_bps = 100'000'000'000;
  std::uint64_t window_bytes = PACELINE_CC_UNLIMITED;
  std::int64_t wake_in_ns = 0;  // 0: none

 private:
  static void on_events(const paceline_cc_item* items, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      if (current == nullptr) return;
      current->heard.push_back({*items[i].event, items[i].state});
      paceline_cc_decision& decision = *items[i].decision;
      decision.rate_bps = current->rate_bps;
      decision.window_bytes = current->window_bytes;
      decision.timed = current->wake_in_ns != 0;
      decision.wake_at_ns = current->wake_in_ns == 0 ? PACELINE_CC_NEVER
                                                     : items[i].event->now_ns + current->wake_in_ns;
    }
  }

  static inline Witness* current = nullptr;
};

}  // namespace paceline::transport::test
