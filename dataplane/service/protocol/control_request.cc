#include "dataplane/service/protocol/control_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "dataplane/base/text/enum_text.h"
#include "dataplane/base/text/printable.h"
#include "dataplane/config/fault_kinds.h"
#include "dataplane/config/guard_bounds.h"
#include "dataplane/config/record.h"
#include "dataplane/service/protocol/control_protocol.h"
#include "dataplane/telemetry/cluster_figures.h"

namespace paceline::service {

namespace {

using Field = config::RecordField;
using ParsedJson = nlohmann::json;
using config::FieldType;

constexpr int kMostDepth = 8;
constexpr double kMostName = 63;
constexpr double kMostPath = 4096;
constexpr double kMostId = 9007199254740991.0;  // what every JSON reader keeps
constexpr double kMostClusters = telemetry::kMostClusters;
constexpr EnumTexts<20> kOps{"hello", "telemetry",   "status",      "parameters",  "configure",
                             "trial", "use_arm",     "renew",       "end_trial",   "trials",
                             "guard", "clear_guard", "load_plugin", "plugins",     "capture",
                             "fault", "take_away",   "probe_open",  "probe_begin", "probes"};
static_assert(kOps.size() == static_cast<std::size_t>(ControlOp::probes) + 1);
constexpr double kMostFaults = 512;  // of one request
constexpr double kMostFaultUs = 3.6e9;
constexpr EnumTexts<9> kFaultActions{"down",    "up",        "rate",    "delay", "loss",
                                     "corrupt", "duplicate", "reorder", "clear"};
constexpr EnumTexts<3> kDirections{"both", "up", "down"};
constexpr EnumTexts<2> kKept{"champion", "candidate"};

Field text_field(std::string name, bool required, double most = kMostName) {
  return {.name = std::move(name), .required = required, .least = 1, .most = most};
}
Field whole_field(std::string name, bool required, double least, double most) {
  return {.name = std::move(name),
          .type = FieldType::whole,
          .required = required,
          .least = least,
          .most = most};
}
Field required(Field field) {
  field.required = true;
  return field;
}
Field limit_field(std::string name, double most) {
  return {.name = std::move(name), .type = FieldType::number, .most = most, .or_null = true};
}

Field number_field(std::string name, double least, double most) {
  return {.name = std::move(name), .type = FieldType::number, .least = least, .most = most};
}

std::vector<Field> change_fields(std::vector<Field> fields = {}) {
  const std::vector<Field>& change = config::congestion_change_fields();
  fields.insert(fields.end(), change.begin(), change.end());
  fields.push_back({.name = "sha256"});
  return fields;
}

std::vector<Field> trial_fields() {
  using namespace config;
  return {text_field("name", true),
          config::nic_names_field(),
          {.name = "clusters",
           .type = FieldType::list,
           .least = 2,
           .most = kMostClusters,
           .of = {config::nic_names_field()}},
          {.name = "candidate", .type = FieldType::object, .required = true, .of = change_fields()},
          {.name = "guard",
           .type = FieldType::object,
           .of = {limit_field("retransmitted_share", kMostGuardShare),
                  limit_field("retransmitted_packets", kMostGuardPackets),
                  limit_field("pause_share", kMostGuardShare),
                  limit_field("stall_ms", kMostGuardStallMs),
                  limit_field("drops_packets", kMostGuardPackets)}},
          whole_field("hold_ms", true, kLeastHoldMs, kMostHoldMs)};
}

// Actions on links, and the kinds of [[fault]].
std::vector<std::string> fault_actions() {
  std::vector<std::string> all{kFaultActions.begin(), kFaultActions.end()};
  const auto kinds = config::fault_kind_names();
  all.insert(all.end(), kinds.begin(), kinds.end());
  return all;
}

std::vector<Field> fault_fields() {
  return {{.name = "events",
           .type = FieldType::list,
           .required = true,
           .least = 1,
           .most = kMostFaults,
           .of = {{.type = FieldType::object,
                   .of = {text_field("target", true),
                          {.name = "action", .required = true, .one_of = fault_actions()},
                          number_field("rate_mbps", 1, 3.2e6),
                          number_field("delay_ns", 1, 1e9),
                          number_field("probability", 0, 1),
                          number_field("severity", -1e9, 1e9),
                          whole_field("seed", false, 1, kMostId),
                          {.name = "direction", .one_of = {kDirections.begin(), kDirections.end()}},
                          number_field("after_us", 0, kMostFaultUs),
                          number_field("for_us", 1e-6, kMostFaultUs)}}}}};
}

std::vector<Field> probe_open_fields() {
  constexpr double kMostOffset = 1e18;
  return {
      {.name = "clocks",
       .type = FieldType::list,
       .least = 1,
       .most = kMostProbePeers,
       .of = {{.type = FieldType::object,
               .of = {text_field("nic", true), number_field("offset_ns", -kMostOffset, kMostOffset),
                      number_field("drift_ppb", -500'000, 500'000),
                      number_field("jump_ns", -kMostOffset, kMostOffset),
                      number_field("jump_after_us", 0, kMostFaultUs)}}}}};
}

std::vector<Field> probe_begin_fields() {
  constexpr double kMost24 = 0xFF'FFFF;
  constexpr double kMost31 = 0x7FFF'FFFF;
  return {whole_field("session", true, 0, kMost31),
          {.name = "peers",
           .type = FieldType::list,
           .required = true,
           .least = 1,
           .most = kMostProbePeers,
           .of = {{.type = FieldType::object,
                   .of = {text_field("address", true), whole_field("qp_number", true, 1, kMost24),
                          whole_field("qkey", true, 0, kMost31)}}}},
          number_field("rate", 0.01, 1e5),
          number_field("share", 1e-9, kMostProbeShare),
          whole_field("paths", false, 1, kMostProbePaths),
          whole_field("class", false, 0, kControlClass - 1)};
}

// The members of each operation, beside schema, id and op; in the order of ControlOp.
const std::array<std::vector<Field>, kOps.size()>& operations() {
  static const std::array<std::vector<Field>, kOps.size()> all{{
      {},
      {},
      {},
      {},
      change_fields({config::nic_names_field(), {.name = "dry_run", .type = FieldType::flag}}),
      trial_fields(),
      {text_field("name", true),
       whole_field("arm", false, 0, 1),
       {.name = "arms",
        .type = FieldType::list,
        .least = 2,
        .most = kMostClusters,
        .of = {whole_field({}, false, 0, 1)}},
       whole_field("epoch", true, 1, 255),
       {.name = "renew", .type = FieldType::flag}},
      {text_field("name", true)},
      {text_field("name", true),
       {.name = "keep", .required = true, .one_of = {kKept.begin(), kKept.end()}}},
      {},
      {},
      {config::nic_names_field()},
      {text_field("path", true, kMostPath), {.name = "sha256"}},
      {},
      {text_field("nic", true), whole_field("bytes", false, kLeastCaptureBytes, kMostCaptureBytes),
       whole_field("snap", false, kLeastCaptureSnap, kMostCaptureSnap)},
      fault_fields(),
      {required(config::nic_names_field())},
      probe_open_fields(),
      probe_begin_fields(),
      {},
  }};
  return all;
}

std::vector<Field> fields_of(std::optional<ControlOp> op) {
  std::vector<Field> fields{{.name = "schema", .type = FieldType::whole, .required = true},
                            whole_field("id", true, 0, kMostId),
                            {.name = "op", .required = true, .one_of = {kOps.begin(), kOps.end()}}};
  if (!op) return fields;
  const std::vector<Field>& more = operations()[static_cast<std::size_t>(*op)];
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

// --- what was checked, as values ---

template <class T>
void take(const ParsedJson& object, const char* name, T& out) {
  if (const auto at = object.find(name); at != object.end()) out = at->get<T>();
}

template <class T>
void take(const ParsedJson& object, const char* name, std::optional<T>& out) {
  if (const auto at = object.find(name); at != object.end()) out = at->get<T>();
}

// null switches a rule off.
void take_limit(const ParsedJson& object, const char* name, double& out) {
  if (const auto at = object.find(name); at != object.end()) {
    out = at->is_null() ? -1 : at->get<double>();
  }
}

void take_digest(const ParsedJson& object, const std::string& path, std::string& out,
                 std::vector<std::string>& errors) {
  take(object, "sha256", out);
  const bool digits = out.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!object.contains("sha256") || (digits && out.size() == 64)) return;
  errors.push_back(config::complaint(path + "sha256", in_quotes(out), "64 hexadecimal digits"));
}

config::CongestionChange change_of(const ParsedJson& object, const std::string& path,
                                   std::vector<std::string>& errors) {
  config::CongestionChange out = config::congestion_change_of(object);
  take_digest(object, path, out.sha256, errors);
  return out;
}

void take_trial(const ParsedJson& object, ControlRequest& out, std::vector<std::string>& errors) {
  take(object, "clusters", out.clusters);
  std::set<std::string_view> seen;
  for (const auto& cluster : out.clusters) {
    for (const std::string& name : cluster) {
      if (seen.insert(name).second) continue;
      errors.push_back(config::complaint("clusters", in_quotes(name), "each name once"));
    }
  }
  if (out.nics && !out.clusters.empty()) {
    errors.emplace_back("nics and clusters: a trial has one of them");
  }
  take(object, "hold_ms", out.hold_ms);
  out.change = change_of(object.at("candidate"), "candidate.", errors);
  const auto guard = object.find("guard");
  if (guard == object.end()) return;
  take_limit(*guard, "retransmitted_share", out.guard.retransmitted_share);
  take_limit(*guard, "retransmitted_packets", out.guard.retransmitted_packets);
  take_limit(*guard, "pause_share", out.guard.pause_share);
  take_limit(*guard, "stall_ms", out.guard.stall_ms);
  take_limit(*guard, "drops_packets", out.guard.drops_packets);
}

void take_arms(const ParsedJson& object, ControlRequest& out, std::vector<std::string>& errors) {
  take(object, "arm", out.arm);
  take(object, "arms", out.arms);
  take(object, "epoch", out.epoch);
  take(object, "renew", out.renew);
  if (object.contains("arm") == object.contains("arms")) {
    errors.emplace_back("arm and arms: one of them");
  }
}

// Checks how a kind of fault is given.
void check_kind(const config::FaultKindInfo& kind, const config::LinkFault& fault,
                const std::string& path, std::vector<std::string>& errors) {
  if (!kind.not_on_testbeds.empty()) {
    errors.push_back(fmt::format("{}action: {}: {}", path, kind.name, kind.not_on_testbeds));
  }
  if (fault.severity) {
    const std::string wrong = config::severity_error(kind, *fault.severity);
    if (!wrong.empty()) {
      errors.push_back(fmt::format("{}severity: {}: {}", path, *fault.severity, wrong));
    }
  }
  if (fault.seed != 0 && !kind.draws) {
    errors.push_back(fmt::format("{}seed: chance decides nothing in {}", path, kind.name));
  }
}

// A value goes with the action that needs it.
void take_faults(const ParsedJson& object, ControlRequest& out, std::vector<std::string>& errors) {
  const std::pair<const char*, std::string_view> values[] = {
      {"rate_mbps", " rate "},
      {"delay_ns", " delay "},
      {"probability", " loss corrupt duplicate reorder "},
      {"direction", " rate delay loss corrupt duplicate reorder "}};
  for (const ParsedJson& event : object.at("events")) {
    config::LinkFault& fault = out.faults.emplace_back();
    const std::string path = fmt::format("events[{}].", out.faults.size() - 1);
    take(event, "target", fault.target);
    take(event, "action", fault.action);
    take(event, "direction", fault.direction);
    take(event, "probability", fault.probability);
    take(event, "severity", fault.severity);
    take(event, "seed", fault.seed);
    double number = 0;
    take(event, "rate_mbps", number);
    fault.rate = Rate{static_cast<std::uint64_t>(std::llround(number * 1e6))};
    number = 0;
    take(event, "delay_ns", number);
    fault.delay = Picos{std::llround(number * 1e3)};
    number = 0;
    take(event, "after_us", number);
    fault.after = Picos{std::llround(number * 1e6)};
    number = 0;
    take(event, "for_us", number);
    fault.lasts = Picos{std::llround(number * 1e6)};
    const std::string action = fmt::format(" {} ", fault.action);
    const config::FaultKindInfo* const kind = config::find_fault_kind(fault.action);
    if (kind != nullptr) check_kind(*kind, fault, path, errors);
    for (const char* name : {"severity", "seed"}) {
      if (kind != nullptr || !event.contains(name)) continue;
      errors.push_back(path + name + ": does nothing with action " + in_quotes(fault.action));
    }
    for (const auto& [name, actions] : values) {
      const bool fits =
          actions.find(action) != std::string_view::npos ||
          (kind != nullptr && kind->one_direction && std::string_view(name) == "direction");
      if (event.contains(name) && !fits) {
        errors.push_back(path + name + ": does nothing with action " + in_quotes(fault.action));
      } else if (fits && !event.contains(name) && std::string_view(name) != "direction") {
        errors.push_back(path + name + ": action " + in_quotes(fault.action) + " needs it");
      }
    }
    if (event.contains("for_us") && (fault.action == "up" || fault.action == "clear")) {
      errors.push_back(path + "for_us: does nothing with action " + in_quotes(fault.action));
    }
  }
}

void take_clocks(const ParsedJson& object, ControlRequest& out) {
  const auto clocks = object.find("clocks");
  if (clocks == object.end()) return;
  for (const ParsedJson& from : *clocks) {
    ClockFault& clock = out.probe.clocks.emplace_back();
    take(from, "nic", clock.nic);
    take(from, "offset_ns", clock.offset_ns);
    take(from, "drift_ppb", clock.drift_ppb);
    take(from, "jump_ns", clock.jump_ns);
    take(from, "jump_after_us", clock.jump_after_us);
  }
}

void take_probes(const ParsedJson& object, ControlRequest& out) {
  take(object, "session", out.probe.session);
  take(object, "rate", out.probe.rate);
  take(object, "share", out.probe.share);
  take(object, "paths", out.probe.paths);
  take(object, "class", out.probe.traffic_class);
  for (const ParsedJson& from : object.at("peers")) {
    ProbeTarget& peer = out.probe.peers.emplace_back();
    take(from, "address", peer.address);
    take(from, "qp_number", peer.qp_number);
    take(from, "qkey", peer.qkey);
  }
}

void take_members(const ParsedJson& object, ControlRequest& out, std::vector<std::string>& errors) {
  take(object, "name", out.name);
  take(object, "nics", out.nics);
  switch (out.op) {
    case ControlOp::configure:
      out.change = change_of(object, "", errors);
      take(object, "dry_run", out.dry_run);
      return;
    case ControlOp::trial:
      return take_trial(object, out, errors);
    case ControlOp::use_arm:
      return take_arms(object, out, errors);
    case ControlOp::end_trial:
      out.keep_candidate = object.at("keep") == kKept[1];
      return;
    case ControlOp::load_plugin:
      take(object, "path", out.path);
      return take_digest(object, "", out.change.sha256, errors);
    case ControlOp::capture:
      take(object, "nic", out.nic);
      take(object, "bytes", out.ring_bytes);
      return take(object, "snap", out.snap);
    case ControlOp::fault:
      return take_faults(object, out, errors);
    case ControlOp::probe_open:
      return take_clocks(object, out);
    case ControlOp::probe_begin:
      return take_probes(object, out);
    default:
      return;  // has none, or those above
  }
}

}  // namespace

ParsedControl parse_control(std::string_view text) {
  ParsedControl out;
  if (text.size() > kMostControlBytes) {
    out.errors.push_back(fmt::format("the request is longer than {} bytes", kMostControlBytes));
    return out;
  }
  // Everything that an answer shows is written by recursion.
  bool too_deep = false;
  const auto watch = [&](int depth, ParsedJson::parse_event_t, ParsedJson&) {
    too_deep |= depth > kMostDepth;
    return !too_deep;
  };
  ParsedJson object = ParsedJson::parse(text.begin(), text.end(), watch, false);
  if (too_deep) {
    out.errors.push_back(fmt::format("the request is nested deeper than {}", kMostDepth));
    return out;
  }
  if (!object.is_object()) {
    out.errors.emplace_back("the request is not a JSON object");
    return out;
  }
  const auto op = object.find("op");
  std::optional<ControlOp> known;
  if (op != object.end() && op->is_string()) {
    known = enum_value<ControlOp>(kOps, op->get_ref<const std::string&>());
  }
  const std::vector<Field> fields = fields_of(known);
  // Members of an unknown operation cannot be judged.
  if (!known) {
    ParsedJson head = ParsedJson::object();
    for (const Field& field : fields) {
      if (object.contains(field.name)) head[field.name] = object[field.name];
    }
    object = std::move(head);
  }
  config::check_record(fields, object, "", out.errors);
  const auto schema = object.find("schema");
  if (schema != object.end() && schema->is_number() && *schema != kControlSchema) {
    out.errors.push_back(
        config::complaint("schema", schema->dump(), std::to_string(kControlSchema)));
  }
  const auto id = object.find("id");
  if (id != object.end() && id->is_number_integer() &&
      config::in_range(fields[1], id->get<double>())) {
    out.request.id = id->get<std::uint64_t>();
  }
  if (!out.errors.empty()) return out;
  out.request.op = *known;
  take_members(object, out.request, out.errors);
  return out;
}

}  // namespace paceline::service
