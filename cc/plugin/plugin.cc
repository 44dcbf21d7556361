#include "cc/plugin/plugin.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>

#include "cc/grants/grant_channel.h"
#include "cc/params.h"

namespace paceline::cc::plugin {
namespace {

constexpr std::uint32_t kFirstTableBytes =  // of version 1.0
    offsetof(paceline_cc_algorithm, on_events) + sizeof(paceline_cc_algorithm::on_events);
constexpr std::uint32_t kFirstParamBytes =
    offsetof(paceline_cc_param, source) + sizeof(paceline_cc_param::source);
constexpr std::size_t kNameLength = 31;
constexpr std::byte kUntouched{0xD7};

constexpr std::uint32_t kKnownSignals =
    PACELINE_CC_WANT(PACELINE_CC_START) | PACELINE_CC_WANT(PACELINE_CC_ACK) |
    PACELINE_CC_WANT(PACELINE_CC_NACK) | PACELINE_CC_WANT(PACELINE_CC_TIMEOUT) |
    PACELINE_CC_WANT(PACELINE_CC_CNP) | PACELINE_CC_WANT(PACELINE_CC_MESSAGE) |
    PACELINE_CC_WANT(PACELINE_CC_IDLE) | PACELINE_CC_WANT(PACELINE_CC_TICK) |
    PACELINE_CC_WANT(PACELINE_CC_PORT_DOWN) | PACELINE_CC_WANT(PACELINE_CC_PORT_UP) |
    PACELINE_CC_WANT_TELEMETRY;
// With rates these two are delivered in any case.
constexpr std::uint32_t kRatesSignals =
    PACELINE_CC_WANT(PACELINE_CC_GRANT) | PACELINE_CC_WANT(PACELINE_CC_SHARE);

constexpr std::string_view kUnits[] = {"us",    "ns",   "Mb/s",    "bytes",
                                       "count", "flag", "packets", "1"};

bool is_name(const char* text, bool with_dashes = false) {
  if (text == nullptr || text[0] < 'a' || text[0] > 'z') return false;
  std::size_t length = 0;
  for (; text[length] != 0; ++length) {
    const char c = text[length];
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || (with_dashes && c == '-');
    if (!good || length == kNameLength) return false;
  }
  return true;
}

std::string quoted(const char* text) {
  if (text == nullptr) return "NULL";
  std::string out("'");
  return out.append(std::string_view(text).substr(0, 64)).append("'");
}

std::string version(unsigned major, unsigned minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string version_error(const paceline_cc_algorithm& t) {
  if (t.abi_major == PACELINE_CC_ABI_MAJOR && t.abi_minor <= PACELINE_CC_ABI_MINOR) return {};
  return "built against version " + version(t.abi_major, t.abi_minor) +
         " of the interface; this host takes " + version(PACELINE_CC_ABI_MAJOR, 0) + " to " +
         version(PACELINE_CC_ABI_MAJOR, PACELINE_CC_ABI_MINOR);
}

std::string at_most(const char* what, std::uint64_t value, std::uint64_t most) {
  return std::string(what) + " = " + std::to_string(value) + ": allowed is 0 to " +
         std::to_string(most);
}

std::string table_error(const paceline_cc_algorithm& t) {
  if (!is_name(t.name)) {
    return "name " + quoted(t.name) + ": allowed is [a-z][a-z0-9_]*, 31 characters";
  }
  if (t.summary == nullptr) return "summary is NULL";
  if (t.context > PACELINE_CC_PER_PEER_CLASS) return at_most("context", t.context, 1);
  if (t.echo > PACELINE_CC_ECHO_XACK) return at_most("echo", t.echo, 2);
  const std::uint32_t known = t.rates == nullptr ? kKnownSignals : kKnownSignals | kRatesSignals;
  if ((t.wants & ~known) != 0) {
    return "wants signals that this host does not have: bits " + std::to_string(t.wants & ~known);
  }
  if (t.state_bytes > PACELINE_CC_STATE_BYTES) {
    return at_most("state_bytes", t.state_bytes, PACELINE_CC_STATE_BYTES);
  }
  if (t.derived_bytes > PACELINE_CC_DERIVED_BYTES) {
    return at_most("derived_bytes", t.derived_bytes, PACELINE_CC_DERIVED_BYTES);
  }
  if (t.param_count > PACELINE_CC_PARAMS) {
    return at_most("param_count", t.param_count, PACELINE_CC_PARAMS);
  }
  if (t.param_count != 0 && t.params == nullptr) return "params is NULL";
  if (t.param_count != 0 && t.param_size < kFirstParamBytes) {
    return "param_size = " + std::to_string(t.param_size) + ": it is at least " +
           std::to_string(kFirstParamBytes);
  }
  if (t.derive == nullptr && t.derived_bytes != 0) {
    return at_most("derived_bytes without derive", t.derived_bytes, 0);
  }
  if (t.on_events == nullptr && t.receiver == nullptr && t.rates == nullptr)
    return "on_events is NULL";
  return {};
}

std::string param_error(const paceline_cc_param& p, std::span<const ParamSpec> before) {
  if (!is_name(p.name)) {
    return "parameter " + quoted(p.name) + ": a name is [a-z][a-z0-9_]*, 31 characters";
  }
  const std::string name = "parameter " + quoted(p.name);
  if (find_param(before, p.name) >= 0) return name + " is given twice";
  if (p.unit == nullptr ||
      std::find(std::begin(kUnits), std::end(kUnits), p.unit) == std::end(kUnits)) {
    return name + ": unit " + quoted(p.unit) +
           "; allowed is us, ns, Mb/s, bytes, count, flag, packets or 1";
  }
  if (p.meaning == nullptr || p.source == nullptr) return name + ": meaning or source is NULL";
  if (!std::isfinite(p.min) || !std::isfinite(p.max) || !std::isfinite(p.initial)) {
    return name + ": min, initial and max must be finite";
  }
  if (p.min > p.initial || p.initial > p.max) {
    return name + ": " + number_text(p.initial) + " is not within " + number_text(p.min) + " to " +
           number_text(p.max);
  }
  const double bounds[] = {p.min, p.initial, p.max};
  if (is_whole_unit(p.unit) && !std::all_of(std::begin(bounds), std::end(bounds), [](double value) {
        return value == std::floor(value);
      })) {
    return name + ": " + p.unit + " are whole numbers";
  }
  return {};
}

std::string read_params(Plugin& plugin) {
  const paceline_cc_algorithm& t = plugin.table;
  for (std::uint32_t i = 0; i < t.param_count; ++i) {
    paceline_cc_param p{};
    const auto* at = reinterpret_cast<const std::byte*>(t.params) + std::size_t{i} * t.param_size;
    std::memcpy(&p, at, std::min<std::size_t>(t.param_size, sizeof p));
    if (std::string error = param_error(p, plugin.params); !error.empty()) return error;
    plugin.params.push_back(
        {p.name, p.unit, p.initial, p.min, p.max, p.live != 0, p.meaning, p.source});
  }
  return {};
}

std::string value_error(const Plugin& plugin, const paceline_cc_profile_value& v) {
  const int index = v.name == nullptr ? -1 : find_param(plugin.params, v.name);
  if (index < 0) return "no parameter " + quoted(v.name);
  const ParamSpec& spec = plugin.params[static_cast<std::size_t>(index)];
  if (!std::isfinite(v.value) || !std::isfinite(v.per_bps) || v.per_bps < 0) {
    return quoted(v.name) + ": value and per_bps must be finite, per_bps 0 or more";
  }
  // Values that scale with the link rate are checked when the rate is known.
  if (v.per_bps == 0 && (v.value < spec.min || v.value > spec.max)) {
    return quoted(v.name) + " = " + number_text(v.value) + ": allowed is " + number_text(spec.min) +
           " to " + number_text(spec.max);
  }
  return {};
}

std::string profile_error(const Plugin& plugin, const paceline_cc_profile& p) {
  if (!is_name(p.name, true) || p.name == kDefaultProfile) {
    return "a name is [a-z][a-z0-9_-]*, 31 characters, and not 'default'";
  }
  if (find_profile(plugin.info, p.name) != nullptr) return "is given twice";
  if (p.source == nullptr) return "source is NULL";
  if (p.value_count > plugin.table.param_count || (p.value_count != 0 && p.values == nullptr)) {
    return at_most("value_count", p.value_count, plugin.table.param_count);
  }
  for (const paceline_cc_profile_value& value : std::span(p.values, p.value_count)) {
    if (std::string error = value_error(plugin, value); !error.empty()) return error;
  }
  return {};
}

// The info's profiles grow with them: that is how a second one of a name is found.
std::string read_profiles(Plugin& plugin) {
  const paceline_cc_algorithm& t = plugin.table;
  if (t.profile_count > PACELINE_CC_PROFILES) {
    return at_most("profile_count", t.profile_count, PACELINE_CC_PROFILES);
  }
  if (t.profile_count != 0 && t.profiles == nullptr) return "profiles is NULL";
  for (const paceline_cc_profile& p : std::span(t.profiles, t.profile_count)) {
    if (const std::string error = profile_error(plugin, p); !error.empty()) {
      return std::string("profile ").append(quoted(p.name)).append(": ").append(error);
    }
    std::vector<ProfileValue>& values = plugin.profile_values.emplace_back();
    for (const paceline_cc_profile_value& v : std::span(p.values, p.value_count)) {
      values.push_back({v.name, v.value, v.per_bps});
    }
    plugin.profiles.push_back({p.name, p.source, values});
    plugin.info.profiles = plugin.profiles;
  }
  return {};
}

// Tries `derive` at the defaults and at both ends of every range, since writes beyond its bytes
// could not be found later.
std::string derive_error(const Plugin& plugin) {
  const paceline_cc_algorithm& t = plugin.table;
  if (t.derive == nullptr) return {};
  paceline_cc_port port{};
  port.size = sizeof port;
  port.mtu_bytes = 4096;
  port.link_bps = 100'000'000'000;
  port.full_packet_bytes = 4178;
  port.base_rtt_ns = 5000;
  for (double ParamSpec::*const pick :
       {&ParamSpec::default_value, &ParamSpec::min, &ParamSpec::max}) {
    std::vector<double> values;
    for (const ParamSpec& spec : plugin.params) values.push_back(spec.*pick);
    alignas(64) std::byte room[2 * PACELINE_CC_DERIVED_BYTES];
    std::memset(room, 0, t.derived_bytes);
    std::fill(room + t.derived_bytes, std::end(room), kUntouched);
    t.derive(values.data(), &port, room);
    const bool kept = std::all_of(room + t.derived_bytes, std::end(room),
                                  [](std::byte b) { return b == kUntouched; });
    if (!kept) {
      return "derive writes beyond its derived_bytes = " + std::to_string(t.derived_bytes);
    }
  }
  return {};
}

}  // namespace

std::variant<std::unique_ptr<Plugin>, std::string> examine(const paceline_cc_algorithm* table) {
  if (table == nullptr) {
    return "it cannot run in a host of version " +
           version(PACELINE_CC_ABI_MAJOR, PACELINE_CC_ABI_MINOR);
  }
  // Size and version come first, and are where they are in every version.
  if (std::string error = version_error(*table); !error.empty()) return error;
  if (table->size < kFirstTableBytes) {
    return "its table has " + std::to_string(table->size) + " bytes: there are at least " +
           std::to_string(kFirstTableBytes);
  }
  auto plugin = std::make_unique<Plugin>();
  plugin->origin = table;
  std::memcpy(&plugin->table, table, std::min<std::size_t>(table->size, sizeof plugin->table));
  const paceline_cc_algorithm& t = plugin->table;
  if (std::string error = table_error(t); !error.empty()) return error;
  if (std::string error = read_params(*plugin); !error.empty()) return error;
  if (std::string error = read_profiles(*plugin); !error.empty()) return error;
  if (std::string error = derive_error(*plugin); !error.empty()) return error;
  if (std::string error = read_receiver(*plugin); !error.empty()) return error;
  if (std::string error = read_rates(*plugin); !error.empty()) return error;
  AlgorithmInfo& info = plugin->info;
  info.name = t.name;
  info.summary = t.summary;
  info.key = t.context == PACELINE_CC_PER_QP ? ContextKey::per_qp : ContextKey::per_peer_class;
  info.echo = static_cast<EcnEcho>(t.echo);
  info.proactive = t.receiver != nullptr || t.rates != nullptr;
  info.wants = t.wants;
  if (t.receiver != nullptr) info.wants |= kGrantWants;
  if (t.rates != nullptr) info.wants |= kRatesSignals;
  info.params = plugin->params;
  return plugin;
}

}  // namespace paceline::cc::plugin
