// A plug-in between pages that must not be touched: its data lies once at the end and once at the
// beginning of a page, and data that it may only read is read-only. The guard word behind a state,
// which every run has, finds a write right behind it; this finds other writes, and reads.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "cc/params.h"
#include "cc/plugin/call.h"
#include "cc/registry.h"
#include "dataplane/driver/scenario/plugin_watch.h"
#include "tools/plugin/fenced_memory.h"
#include "tools/plugin/fenced_port.h"
#include "tools/plugin/plugin_check.h"

namespace paceline::tools {
namespace {

constexpr int kRounds = 200;

// A context of the plug-in, and the calls that a connection makes.
class FencedContext {
 public:
  FencedContext(const cc::plugin::Plugin& plugin, bool at_end)
      : plugin_(plugin),
        table_(plugin.table),
        state_("its state", table_.state_bytes, at_end),
        derived_("its constants", derived_bytes(), at_end),
        event_("the event", sizeof(paceline_cc_event), at_end),
        decision_("the decision", sizeof(paceline_cc_decision), at_end),
        item_("the item", sizeof(paceline_cc_item), at_end),
        grant_("the grant", sizeof(paceline_cc_rate_grant), at_end),
        share_("the share", sizeof(paceline_cc_share), at_end),
        request_("the request", sizeof(paceline_cc_request), at_end),
        want_("the want", sizeof(paceline_cc_want), at_end) {
    cc::PortFacts facts;
    facts.link_rate = rate_from_gbps(100);
    facts.full_packet_bytes = 4178;
    facts.base_rtt_ns = 5000;
    const auto values = cc::resolve_params(plugin.info, "", {}, facts);
    const cc::plugin::PluginParams params =
        cc::plugin::make_params(plugin, std::get<std::vector<double>>(values), facts);
    std::memcpy(derived_.as<std::byte>(), params.derived, derived_bytes());
    derived_.writable(false);
    *item_.as<paceline_cc_item>() = {state_.as<void>(), derived_.as<void>(),
                                     event_.as<paceline_cc_event>(),
                                     decision_.as<paceline_cc_decision>()};
    item_.writable(false);
    paceline_cc_decision& d = *decision_.as<paceline_cc_decision>();
    d.window_bytes = d.ceiling = d.wake_bytes = PACELINE_CC_UNLIMITED;
    d.wake_at_ns = PACELINE_CC_NEVER;
    d.limiter = PACELINE_CC_LIMIT_PATH;
  }

  void run() {
    call(PACELINE_CC_START);
    const bool rates = table_.rates != nullptr;
    for (int i = 0; i < kRounds; ++i) {
      for (const auto signal :
           {PACELINE_CC_MESSAGE, PACELINE_CC_TICK, PACELINE_CC_ACK, PACELINE_CC_ACK,
            PACELINE_CC_CNP, PACELINE_CC_NACK, PACELINE_CC_TIMEOUT, PACELINE_CC_PORT_DOWN,
            PACELINE_CC_PORT_UP, PACELINE_CC_SHARE, PACELINE_CC_GRANT, PACELINE_CC_IDLE}) {
        const bool given = signal == PACELINE_CC_SHARE || signal == PACELINE_CC_GRANT;
        const bool wanted = given ? rates : (table_.wants & PACELINE_CC_WANT(signal)) != 0;
        if (wanted || signal == PACELINE_CC_TICK) call(signal);
      }
      PluginTimeLimit::passed();
    }
  }

  std::string damage() const {
    for (const Fenced* part : parts()) {
      if (const std::uintptr_t at = part->damage(); at != 0) return part->place(at);
    }
    return {};
  }
  std::string place(std::uintptr_t address) const {
    for (const Fenced* part : parts()) {
      if (part->has(address)) return part->place(address);
    }
    return fmt::format("address {:#x}, which is nothing that it was given", address);
  }

 private:
  std::array<const Fenced*, 9> parts() const {
    return {&state_, &derived_, &event_, &decision_, &item_, &grant_, &share_, &request_, &want_};
  }
  std::size_t derived_bytes() const {
    return table_.derive != nullptr ? table_.derived_bytes : table_.param_count * sizeof(double);
  }

  void call(unsigned signal) {
    event_.writable(true);
    paceline_cc_event& e = *event_.as<paceline_cc_event>();
    e.now_ns += 5000;
    e.sent_bytes = signal == PACELINE_CC_START ? 0 : 4178;
    e.sent_total += e.sent_bytes;
    e.backlog_bytes = signal == PACELINE_CC_IDLE ? 0 : 1'000'000;
    e.inflight_bytes = 20'000;
    e.message_bytes = signal == PACELINE_CC_MESSAGE ? 100'000 : 0;
    e.acked_bytes = signal == PACELINE_CC_ACK ? 4178 : 0;
    e.marked_bytes = e.acked_bytes / 2;
    e.lost_bytes = signal == PACELINE_CC_NACK || signal == PACELINE_CC_TIMEOUT ? 4178 : 0;
    e.rtt_ns = signal == PACELINE_CC_ACK ? 7000 : 0;
    e.signal = static_cast<std::uint8_t>(signal);
    e.rate_grant = signal == PACELINE_CC_GRANT ? grant(e) : nullptr;
    e.share = signal == PACELINE_CC_SHARE ? share() : nullptr;
    e.peers = table_.rates != nullptr ? 8 : 0;
    event_.writable(false);
    table_.on_events(item_.as<const paceline_cc_item>(), 1);
    if (table_.rates != nullptr) tell();
  }

  const paceline_cc_rate_grant* grant(const paceline_cc_event& e) {
    grant_.writable(true);
    paceline_cc_rate_grant& g = *grant_.as<paceline_cc_rate_grant>();
    g.limit_total = e.sent_total + 100'000;
    g.rate_mbps = 10'000;
    g.lease_us = 100;
    g.stamp_ns = static_cast<std::uint32_t>(e.now_ns - 5000);
    ++g.number;
    grant_.writable(false);
    return &g;
  }
  const paceline_cc_share* share() {
    share_.writable(true);
    paceline_cc_share& s = *share_.as<paceline_cc_share>();
    s.rate_mbps = s.cap_mbps = 50'000;
    s.start_bytes = 4178;
    s.answers_start = s.announce = 1;
    share_.writable(false);
    return &s;
  }

  // The calls that the host makes for a context with rates.
  void tell() {
    paceline_cc_request& r = *request_.as<paceline_cc_request>();
    r = {};
    r.sent_total = r.start_total = event_.as<paceline_cc_event>()->sent_total;
    r.cap_mbps = PACELINE_CC_NO_CAP;
    plugin_.rates.fill_request(item_.as<const paceline_cc_item>(), &r);
    if (plugin_.rates.fill_want == nullptr) return;
    *want_.as<paceline_cc_want>() = {};
    plugin_.rates.fill_want(item_.as<const paceline_cc_item>(), want_.as<paceline_cc_want>());
  }

  const cc::plugin::Plugin& plugin_;
  const paceline_cc_algorithm& table_;
  Fenced state_;
  Fenced derived_;
  Fenced event_;
  Fenced decision_;
  Fenced item_;
  Fenced grant_;  // this and the next ones with rates only
  Fenced share_;
  Fenced request_;
  Fenced want_;
};

// Runs the calls of a context, or of a port with rates.
template <class Calls>
std::string misdeed_of(Calls&& calls) {
  std::uintptr_t fault = 0;
  const bool survived = survives(
      [](void* c) { static_cast<std::remove_reference_t<Calls>*>(c)->run(); }, &calls, fault);
  if (!survived) return "it touches memory that is not its own: " + calls.place(fault);
  if (const std::string where = calls.damage(); !where.empty()) {
    return "it writes outside the memory that it is given: " + where;
  }
  return {};
}

}  // namespace

std::string out_of_bounds(const cc::plugin::Plugin& plugin) {
  if (plugin.table.on_events == nullptr) return {};
  const PluginTimeLimit limit;
  for (const bool at_end : {true, false}) {
    std::string error = misdeed_of(FencedContext(plugin, at_end));
    if (error.empty() && plugin.table.rates != nullptr) {
      error = misdeed_of(FencedPort(plugin, at_end));
    }
    if (!error.empty()) return error;
  }
  return {};
}

std::vector<std::string> plugins_out_of_bounds() {
  std::vector<std::string> errors;
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    const cc::plugin::Plugin* const plugin = cc::plugin_of(info.id);
    if (plugin == nullptr) continue;
    if (const std::string problem = out_of_bounds(*plugin); !problem.empty()) {
      errors.push_back(fmt::format("the plug-in {}: {}", plugin->path, problem));
    }
  }
  return errors;
}

}  // namespace paceline::tools
