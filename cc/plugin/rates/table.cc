// Checks the table of rates when a plug-in is loaded.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "cc/plugin/plugin.h"

namespace paceline::cc::plugin {
namespace {

constexpr std::uint32_t kFirstRatesBytes =  // of version 1.4
    offsetof(paceline_cc_rates, fill_grant) + sizeof(paceline_cc_rates::fill_grant);

std::string missing_of(const paceline_cc_rates& r) {
  const std::array<std::pair<const char*, bool>, 4> calls{{
      {"fill_request", r.fill_request != nullptr},
      {"on_request", r.on_request != nullptr},
      {"on_downlink", r.on_downlink != nullptr},
      {"fill_grant", r.fill_grant != nullptr},
  }};
  for (const auto& [name, there] : calls) {
    if (!there) return std::string("rates: ") + name + " is NULL";
  }
  if ((r.fill_want == nullptr) != (r.on_uplink == nullptr)) {
    return "rates: fill_want and on_uplink: either both are NULL, or neither";
  }
  return {};
}

}  // namespace

std::string read_rates(Plugin& plugin) {
  const paceline_cc_algorithm& t = plugin.table;
  if (t.rates == nullptr) return {};
  if (t.receiver != nullptr) return "it has a receiving half and rates: allowed is one of them";
  // Its size comes first.
  if (t.rates->size < kFirstRatesBytes) {
    return "the table of its rates has " + std::to_string(t.rates->size) +
           " bytes: there are at least " + std::to_string(kFirstRatesBytes);
  }
  paceline_cc_rates& r = plugin.rates;
  std::memcpy(&r, t.rates, std::min<std::size_t>(t.rates->size, sizeof r));
  if (t.on_events == nullptr) return "on_events is NULL";
  if (std::string error = missing_of(r); !error.empty()) return error;
  if (t.context != PACELINE_CC_PER_PEER_CLASS) {
    return "context = " + std::to_string(t.context) +
           ": with rates it is PACELINE_CC_PER_PEER_CLASS, " +
           std::to_string(PACELINE_CC_PER_PEER_CLASS);
  }
  struct Bound {
    const char* what;
    std::uint32_t value;
    std::uint32_t most;
  };
  for (const Bound& b :
       {Bound{"state_bytes", t.state_bytes, PACELINE_CC_RATES_STATE_BYTES},
        Bound{"uplink_bytes", r.uplink_bytes, PACELINE_CC_PORT_BYTES},
        Bound{"uplink_context_bytes", r.uplink_context_bytes, PACELINE_CC_UPLINK_BYTES},
        Bound{"port_bytes", r.port_bytes, PACELINE_CC_PORT_BYTES},
        Bound{"sender_bytes", r.sender_bytes, PACELINE_CC_SENDER_BYTES}}) {
    if (b.value <= b.most) continue;
    return std::string(b.what) + " = " + std::to_string(b.value) + ": with rates allowed is 0 to " +
           std::to_string(b.most);
  }
  return {};
}

}  // namespace paceline::cc::plugin
