// Static dispatch of the built-in algorithms: one switch per event, everything behind it inlinable.
// States are kStateBytes of raw memory owned by the engine; parameters are an immutable block that
// is published once and shared by every context of the same parameter set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "cc/cadence/cadence.h"
#include "cc/eqds/eqds.h"
#include "cc/homa/homa.h"
#include "cc/interface/algorithm.h"
#include "cc/interface/uplink_arbiter.h"
#include "cc/param_block.h"
#include "cc/plugin/call.h"
#include "cc/rate/dcqcn.h"
#include "cc/rate/fixed.h"
#include "cc/rate/switch_notified.h"
#include "cc/rate/timely.h"
#include "cc/registry.h"
#include "cc/sird/sird.h"
#include "cc/window/dctcp.h"
#include "cc/window/hpcc.h"
#include "cc/window/nscc.h"
#include "cc/window/powertcp.h"
#include "cc/window/swift.h"
#include "cc/window/theta_powertcp.h"

namespace paceline::cc {

// The alignment a state needs; kStateBytes is its size.
inline constexpr std::size_t kStateAlignment = 16;

template <class Algorithm>
inline constexpr bool kStateFits = std::is_trivially_copyable_v<typename Algorithm::State> &&
                                   sizeof(typename Algorithm::State) <= kStateBytes &&
                                   alignof(typename Algorithm::State) <= kStateAlignment;

namespace detail {

template <class Algorithm>
inline typename Algorithm::State& state_of(std::byte* state) {
  static_assert(kStateFits<Algorithm>);
  return *reinterpret_cast<typename Algorithm::State*>(state);
}

// A plug-in in the place of a built-in. Its parameters take more than values: make_param_block.
struct PluginAlgorithm {
  using State = plugin::PluginState;
  using Params = plugin::PluginParams;
  static Params make_params(std::span<const double>, const PortFacts&) { return {}; }
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision) {
    plugin::on_event(state, params, event, decision);
  }
  static UplinkWant uplink_want(const State& state, const Params& params) {
    return plugin::uplink_want(state, params);
  }
};

// Calls visit.template operator()<Algorithm>() for the algorithm of that id.
template <class Visitor>
inline void with_algorithm(AlgorithmId id, Visitor&& visit) {
  switch (id) {
    case AlgorithmId::fixed:
      visit.template operator()<Fixed>();
      return;
    case AlgorithmId::dcqcn:
      visit.template operator()<Dcqcn>();
      return;
    case AlgorithmId::cadence:
      visit.template operator()<Cadence>();
      return;
    case AlgorithmId::swift:
      visit.template operator()<Swift>();
      return;
    case AlgorithmId::timely:
      visit.template operator()<Timely>();
      return;
    case AlgorithmId::dctcp:
      visit.template operator()<Dctcp>();
      return;
    case AlgorithmId::theta_powertcp:
      visit.template operator()<ThetaPowerTcp>();
      return;
    case AlgorithmId::nscc:
      visit.template operator()<Nscc>();
      return;
    case AlgorithmId::hpcc:
      visit.template operator()<Hpcc>();
      return;
    case AlgorithmId::powertcp:
      visit.template operator()<PowerTcp>();
      return;
    case AlgorithmId::eqds:
      visit.template operator()<Eqds>();
      return;
    case AlgorithmId::sird:
      visit.template operator()<Sird>();
      return;
    case AlgorithmId::homa:
      visit.template operator()<Homa>();
      return;
    case AlgorithmId::switch_notified:
      visit.template operator()<SwitchNotified>();
      return;
  }
  visit.template operator()<PluginAlgorithm>();
}

}  // namespace detail

// values: from resolve_params, in the order of the algorithm's table. facts.link_rate must be set.
inline ParamBlock make_param_block(AlgorithmId id, std::span<const double> values,
                                   const PortFacts& facts) {
  ParamBlock block;
  block.id = id;
  if (is_plugin(id)) {
    block.put(plugin::make_params(*plugin_of(id), values, facts));
    return block;
  }
  detail::with_algorithm(
      id, [&]<class Algorithm>() { block.put(Algorithm::make_params(values, facts)); });
  return block;
}

// Before a block of a plug-in is published: sets the guard that counts the plug-in's offences. The
// guard must outlive the block and its copies. Does nothing for blocks of built-ins.
inline void put_guard(ParamBlock& block, plugin::Guard& guard) {
  if (!is_plugin(block.id)) return;
  auto params = block.as<plugin::PluginParams>();
  plugin::put_guard(params, guard);
  block.put(params);
}

// Hands one event to the algorithm. `id` must be the block's; it is an argument because the engine
// has it at hand and sorts by it. state: kStateBytes, aligned to kStateAlignment, started.
inline void dispatch(AlgorithmId id, std::byte* state, const ParamBlock& block, const Event& event,
                     Decision& decision) {
  detail::with_algorithm(id, [&]<class Algorithm>() {
    Algorithm::on_event(detail::state_of<Algorithm>(state), block.as<typename Algorithm::Params>(),
                        event, decision);
  });
}

// Zeroes the state and delivers the start event (event.signal must be Signal::start; it may carry a
// handover). Afterwards `decision` is complete.
inline void start_state(AlgorithmId id, std::byte* state, const ParamBlock& block,
                        const Event& event, Decision& decision) {
  std::memset(state, 0, kStateBytes);
  decision = Decision{};
  if (is_plugin(id)) plugin::set_guard_word(state, block.as<plugin::PluginParams>());
  dispatch(id, state, block, event, decision);
}

// Proactive algorithms: fills the REQUEST that a decision with `request` set asked for. False, with
// nothing filled, for algorithms that have none.
inline bool fill_request(AlgorithmId id, std::byte* state, const ParamBlock& block,
                         const Event& event, const Decision& decision, RequestMessage& message) {
  bool filled = false;
  detail::with_algorithm(id, [&]<class Algorithm>() {
    if constexpr (std::is_same_v<Algorithm, detail::PluginAlgorithm>) {
      filled = plugin::fill_request(detail::state_of<Algorithm>(state),
                                    block.as<plugin::PluginParams>(), event, decision, message);
    } else if constexpr (requires(typename Algorithm::State & s,
                                  const typename Algorithm::Params& p) {
                           Algorithm::fill_request(s, p, event, message);
                         }) {
      Algorithm::fill_request(detail::state_of<Algorithm>(state),
                              block.as<typename Algorithm::Params>(), event, message);
      filled = true;
    }
  });
  return filled;
}

// The context's demand to the uplink arbiter; nothing for algorithms without one.
inline UplinkWant uplink_want(AlgorithmId id, const std::byte* state, const ParamBlock& block) {
  UplinkWant want;
  detail::with_algorithm(id, [&]<class Algorithm>() {
    if constexpr (requires(const typename Algorithm::State& s,
                           const typename Algorithm::Params& p) { Algorithm::uplink_want(s, p); }) {
      want = Algorithm::uplink_want(*reinterpret_cast<const typename Algorithm::State*>(state),
                                    block.as<typename Algorithm::Params>());
    }
  });
  return want;
}

inline constexpr std::uint8_t kOwnClass = 0xFF;

// While Decision::classed: the traffic class of the packet at byte `offset` of a message of this
// size; kOwnClass: that of the queue pair.
inline std::uint8_t packet_class(AlgorithmId id, const std::byte* state, const ParamBlock& block,
                                 std::uint64_t message_bytes, std::uint64_t offset) {
  std::uint8_t result = kOwnClass;
  detail::with_algorithm(id, [&]<class Algorithm>() {
    if constexpr (requires(const typename Algorithm::State& s,
                           const typename Algorithm::Params& p) {
                    Algorithm::packet_class(s, p, message_bytes, offset);
                  }) {
      result =
          Algorithm::packet_class(*reinterpret_cast<const typename Algorithm::State*>(state),
                                  block.as<typename Algorithm::Params>(), message_bytes, offset);
    }
  });
  return result;
}

// State that a waiting context passes to the algorithm after this one.
inline Rate waiting_rate(AlgorithmId id, const ParamBlock& block, Rate link_rate) {
  Rate rate{link_rate.bps / 16};
  detail::with_algorithm(id, [&]<class Algorithm>() {
    if constexpr (requires(const typename Algorithm::Params& p) { Algorithm::waiting_rate(p); }) {
      rate = Algorithm::waiting_rate(block.as<typename Algorithm::Params>());
    }
  });
  return rate;
}

}  // namespace paceline::cc
