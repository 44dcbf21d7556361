#include "dataplane/service/protocol/control_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "dataplane/config/guard_bounds.h"
#include "dataplane/service/protocol/control_protocol.h"
#include "dataplane/telemetry/cluster_figures.h"

namespace paceline::service {

namespace {

using ParsedJson = nlohmann::json;

constexpr int kMostDepth = 8;
constexpr std::size_t kMostNames = 256;
constexpr std::size_t kMostName = 63;
constexpr std::size_t kMostPath = 4096;
constexpr std::size_t kMostShown = 48;  // of what was wrong, in an answer

struct OpSpec {
  std::string_view name;
  ControlOp op;
  std::vector<std::string_view> members;  // beside schema, id and op
};

const std::vector<OpSpec>& ops() {
  static const std::vector<OpSpec> all{
      {"hello", ControlOp::hello, {}},
      {"telemetry", ControlOp::telemetry, {}},
      {"status", ControlOp::status, {}},
      {"parameters", ControlOp::parameters, {}},
      {"configure",
       ControlOp::configure,
       {"nics", "algorithm", "sha256", "profile", "params", "dry_run"}},
      {"trial", ControlOp::trial, {"name", "nics", "clusters", "candidate", "guard", "hold_ms"}},
      {"use_arm", ControlOp::use_arm, {"name", "arm", "arms", "epoch", "renew"}},
      {"renew", ControlOp::renew, {"name"}},
      {"end_trial", ControlOp::end_trial, {"name", "keep"}},
      {"trials", ControlOp::trials, {}},
      {"guard", ControlOp::guard, {}},
      {"clear_guard", ControlOp::clear_guard, {"nics"}},
      {"load_plugin", ControlOp::load_plugin, {"path", "sha256"}},
      {"plugins", ControlOp::plugins, {}},
      {"capture", ControlOp::capture, {"nic", "bytes", "snap"}},
  };
  return all;
}

std::string shown(const ParsedJson& value) {
  std::string text = value.dump(-1, ' ', true, ParsedJson::error_handler_t::replace);
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "...";
  return text;
}

// Reads the members of one object and says of each what is wrong with it.
class Members {
 public:
  Members(const ParsedJson& object, std::string where, std::vector<std::string>& errors)
      : object_(object), where_(std::move(where)), errors_(errors) {}

  const ParsedJson* find(const char* name) const {
    const auto at = object_.find(name);
    return at == object_.end() ? nullptr : &*at;
  }
  void complain(const char* name, const ParsedJson& value, std::string_view allowed) {
    errors_.push_back(fmt::format("{}{}: {} is not {}", where_, name, shown(value), allowed));
  }
  void missing(const char* name, std::string_view allowed) {
    errors_.push_back(fmt::format("{}{} is missing: {}", where_, name, allowed));
  }
  void refuse_others(const std::vector<std::string_view>& known) {
    for (const auto& [name, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      errors_.push_back(
          fmt::format("{}member {} is not known here", where_, shown(ParsedJson(name))));
    }
  }

  std::uint64_t whole(const char* name, std::uint64_t least, std::uint64_t most, bool required) {
    const std::string allowed = fmt::format("a whole number from {} to {}", least, most);
    const ParsedJson* const value = find(name);
    if (value == nullptr) {
      if (required) missing(name, allowed);
      return least;
    }
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() < least ||
        value->get<std::uint64_t>() > most) {
      complain(name, *value, allowed);
      return least;
    }
    return value->get<std::uint64_t>();
  }
  bool flag(const char* name, bool otherwise) {
    const ParsedJson* const value = find(name);
    if (value == nullptr) return otherwise;
    if (value->is_boolean()) return value->get<bool>();
    complain(name, *value, "true or false");
    return otherwise;
  }
  std::optional<std::string> text(const char* name, bool required, std::size_t most = kMostName) {
    const std::string allowed = fmt::format("a text of 1 to {} characters", most);
    const ParsedJson* const value = find(name);
    if (value == nullptr) {
      if (required) missing(name, allowed);
      return std::nullopt;
    }
    if (!value->is_string() || value->get_ref<const std::string&>().empty() ||
        value->get_ref<const std::string&>().size() > most) {
      complain(name, *value, allowed);
      return std::nullopt;
    }
    return value->get<std::string>();
  }
  // null switches a rule off.
  void limit(const char* name, double most, double& out) {
    const ParsedJson* const value = find(name);
    if (value == nullptr) return;
    if (value->is_null()) {
      out = -1;
      return;
    }
    if (!value->is_number() || !(value->get<double>() >= 0) || !(value->get<double>() <= most)) {
      complain(name, *value, fmt::format("a number from 0 to {}, or null", most));
      return;
    }
    out = value->get<double>();
  }
  std::optional<std::vector<std::string>> names(const char* name) {
    const ParsedJson* const value = find(name);
    if (value == nullptr) return std::nullopt;
    std::vector<std::string> out;
    bool good = value->is_array() && !value->empty() && value->size() <= kMostNames;
    if (good) {
      for (const ParsedJson& entry : *value) {
        good &= entry.is_string() && entry.get_ref<const std::string&>().size() <= kMostName;
        if (good) out.push_back(entry.get<std::string>());
      }
    }
    if (!good) complain(name, *value, fmt::format("a list of 1 to {} names", kMostNames));
    std::vector<std::string> sorted = out;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
      complain(name, *value, "a list without repetitions");
    }
    return out;
  }
  // Lists of names, no name twice; empty: not given.
  std::vector<std::vector<std::string>> clusters() {
    const ParsedJson* const value = find("clusters");
    if (value == nullptr) return {};
    const std::string allowed =
        fmt::format("a list of 2 to {} lists of names, each name once", telemetry::kMostClusters);
    std::vector<std::vector<std::string>> out;
    std::vector<std::string> all;
    bool good =
        value->is_array() && value->size() >= 2 && value->size() <= telemetry::kMostClusters;
    for (std::size_t c = 0; good && c < value->size(); ++c) {
      const ParsedJson& list = (*value)[c];
      good = list.is_array() && !list.empty() && list.size() <= kMostNames;
      out.emplace_back();
      for (std::size_t i = 0; good && i < list.size(); ++i) {
        good = list[i].is_string() && list[i].get_ref<const std::string&>().size() <= kMostName;
        if (good) out.back().push_back(list[i].get<std::string>());
      }
      if (good) all.insert(all.end(), out.back().begin(), out.back().end());
    }
    std::sort(all.begin(), all.end());
    good = good && std::adjacent_find(all.begin(), all.end()) == all.end();
    if (!good) complain("clusters", *value, allowed);
    return good ? out : std::vector<std::vector<std::string>>{};
  }
  // By cluster; empty: not given.
  std::vector<std::uint8_t> arms() {
    const ParsedJson* const value = find("arms");
    if (value == nullptr) return {};
    std::vector<std::uint8_t> out;
    bool good =
        value->is_array() && value->size() >= 2 && value->size() <= telemetry::kMostClusters;
    for (std::size_t c = 0; good && c < value->size(); ++c) {
      const ParsedJson& arm = (*value)[c];
      good = arm.is_number_unsigned() && arm.get<std::uint64_t>() <= 1;
      if (good) out.push_back(arm.get<std::uint8_t>());
    }
    if (!good) {
      complain("arms", *value,
               fmt::format("a list of 2 to {} numbers, 0 or 1", telemetry::kMostClusters));
    }
    return out;
  }
  // Of a file, empty: not given.
  std::string digest() {
    const ParsedJson* const value = find("sha256");
    if (value == nullptr) return {};
    std::string out = value->is_string() ? value->get<std::string>() : std::string();
    if (out.size() != 64 || out.find_first_not_of("0123456789abcdef") != std::string::npos) {
      complain("sha256", *value, "64 hexadecimal digits");
    }
    return out;
  }
  CcChange change() {
    CcChange out;
    out.algorithm = text("algorithm", false, kMostPath);
    out.sha256 = digest();
    out.profile = text("profile", false);
    const ParsedJson* const params = find("params");
    if (params == nullptr) return out;
    if (!params->is_object()) {
      complain("params", *params, "an object of names and numbers");
      return out;
    }
    for (const auto& [name, value] : params->items()) {
      if (!value.is_number() || !std::isfinite(value.get<double>())) {
        errors_.push_back(fmt::format("{}params: {} is not a number, but {}", where_,
                                      shown(ParsedJson(name)), shown(value)));
        continue;
      }
      out.params.push_back({name, value.get<double>()});
    }
    return out;
  }

 private:
  const ParsedJson& object_;
  std::string where_;
  std::vector<std::string>& errors_;
};

void read_trial(const ParsedJson& object, Members& members, ControlRequest& out,
                std::vector<std::string>& errors) {
  out.name = members.text("name", true).value_or("");
  out.nics = members.names("nics");
  out.clusters = members.clusters();
  if (out.nics && !out.clusters.empty()) {
    errors.emplace_back("nics and clusters: a trial has one of them");
  }
  out.hold_ms =
      static_cast<std::uint32_t>(members.whole("hold_ms", kLeastHoldMs, kMostHoldMs, true));
  const auto candidate = object.find("candidate");
  if (candidate == object.end()) {
    members.missing("candidate", "an object with algorithm, profile or params");
  } else if (!candidate->is_object()) {
    members.complain("candidate", *candidate, "an object with algorithm, profile or params");
  } else {
    Members inner(*candidate, "candidate: ", errors);
    inner.refuse_others({"algorithm", "sha256", "profile", "params"});
    out.change = inner.change();
  }
  const auto guard = object.find("guard");
  if (guard == object.end()) return;
  if (!guard->is_object()) return members.complain("guard", *guard, "an object of limits");
  Members inner(*guard, "guard: ", errors);
  inner.refuse_others(
      {"retransmitted_share", "retransmitted_packets", "pause_share", "stall_ms", "drops_packets"});
  using namespace config;
  inner.limit("retransmitted_share", kMostGuardShare, out.guard.retransmitted_share);
  inner.limit("retransmitted_packets", kMostGuardPackets, out.guard.retransmitted_packets);
  inner.limit("pause_share", kMostGuardShare, out.guard.pause_share);
  inner.limit("stall_ms", kMostGuardStallMs, out.guard.stall_ms);
  inner.limit("drops_packets", kMostGuardPackets, out.guard.drops_packets);
}

void read_body(const ParsedJson& object, Members& members, ControlRequest& out,
               std::vector<std::string>& errors) {
  switch (out.op) {
    case ControlOp::configure:
      out.nics = members.names("nics");
      out.change = members.change();
      out.dry_run = members.flag("dry_run", false);
      return;
    case ControlOp::trial:
      return read_trial(object, members, out, errors);
    case ControlOp::use_arm:
      out.name = members.text("name", true).value_or("");
      out.arms = members.arms();
      if (members.find("arms") == nullptr) {
        out.arm = static_cast<std::uint8_t>(members.whole("arm", 0, 1, true));
      } else if (members.find("arm") != nullptr) {
        errors.emplace_back("arm and arms: one of them");
      }
      out.epoch = static_cast<std::uint8_t>(members.whole("epoch", 1, 255, true));
      out.renew = members.flag("renew", true);
      return;
    case ControlOp::renew:
      out.name = members.text("name", true).value_or("");
      return;
    case ControlOp::end_trial: {
      out.name = members.text("name", true).value_or("");
      const ParsedJson* const keep = members.find("keep");
      if (keep == nullptr) {
        members.missing("keep", "\"champion\" or \"candidate\"");
      } else if (*keep != "champion" && *keep != "candidate") {
        members.complain("keep", *keep, "\"champion\" or \"candidate\"");
      } else {
        out.keep_candidate = *keep == "candidate";
      }
      return;
    }
    case ControlOp::clear_guard:
      out.nics = members.names("nics");
      return;
    case ControlOp::load_plugin:
      out.path = members.text("path", true, kMostPath).value_or("");
      out.change.sha256 = members.digest();
      return;
    case ControlOp::capture:
      out.nic = members.text("nic", true).value_or("");
      if (members.find("bytes") != nullptr) {
        out.ring_bytes = members.whole("bytes", kLeastCaptureBytes, kMostCaptureBytes, true);
      }
      if (members.find("snap") != nullptr) {
        out.snap = static_cast<std::uint32_t>(
            members.whole("snap", kLeastCaptureSnap, kMostCaptureSnap, true));
      }
      return;
    case ControlOp::plugins:
    case ControlOp::hello:
    case ControlOp::telemetry:
    case ControlOp::status:
    case ControlOp::parameters:
    case ControlOp::trials:
    case ControlOp::guard:
      return;
  }
}

}  // namespace

ParsedControl parse_control(std::string_view text) {
  ParsedControl out;
  if (text.size() > kMostControlBytes) {
    out.errors.push_back(fmt::format("the request is longer than {} bytes", kMostControlBytes));
    return out;
  }
  // Whatever is shown in an answer is written by recursion.
  bool too_deep = false;
  const auto watch = [&](int depth, ParsedJson::parse_event_t, ParsedJson&) {
    too_deep |= depth > kMostDepth;
    return !too_deep;
  };
  const ParsedJson object = ParsedJson::parse(text.begin(), text.end(), watch, false);
  if (too_deep) {
    out.errors.push_back(fmt::format("the request is nested deeper than {}", kMostDepth));
    return out;
  }
  if (!object.is_object()) {
    out.errors.emplace_back("the request is no JSON object");
    return out;
  }
  Members members(object, "", out.errors);
  constexpr std::uint64_t kMostId = (std::uint64_t{1} << 53U) - 1;  // what every JSON reader keeps
  out.request.id = members.whole("id", 0, kMostId, true);
  const ParsedJson* const schema = members.find("schema");
  if (schema == nullptr) {
    members.missing("schema", std::to_string(kControlSchema));
  } else if (*schema != kControlSchema) {
    members.complain("schema", *schema, fmt::format("{}, the one known here", kControlSchema));
  }
  const ParsedJson* const op = members.find("op");
  if (op == nullptr || !op->is_string()) {
    if (op == nullptr) {
      members.missing("op", "the name of an operation");
    } else {
      members.complain("op", *op, "the name of an operation");
    }
    return out;
  }
  const auto spec = std::find_if(ops().begin(), ops().end(),
                                 [&](const OpSpec& s) { return *op == std::string(s.name); });
  if (spec == ops().end()) {
    members.complain("op", *op, "an operation of this service");
    return out;
  }
  out.request.op = spec->op;
  std::vector<std::string_view> known{"schema", "id", "op"};
  known.insert(known.end(), spec->members.begin(), spec->members.end());
  members.refuse_others(known);
  read_body(object, members, out.request, out.errors);
  return out;
}

}  // namespace paceline::service
