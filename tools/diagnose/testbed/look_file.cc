#include "tools/diagnose/testbed/look_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "dataplane/base/text/json_limits.h"

namespace paceline::tools {

namespace {

using Json = nlohmann::json;

constexpr int kSchema = 1;
constexpr const char* kKind = "paceline looks";

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

// Null: the line is not an object.
Json object_in(std::string_view line) {
  if (json_excess(line)) return nullptr;
  Json json = Json::parse(line, nullptr, false);
  return json.is_object() ? json : Json(nullptr);
}

bool take_text(const Json& from, const char* name, std::string& out) {
  const auto at = from.find(name);
  if (at == from.end() || !at->is_string()) return false;
  out = at->get<std::string>();
  return true;
}

}  // namespace

std::string head_line(const LookFileHead& head) {
  return line_of({{"schema", kSchema},
                  {"kind", kKind},
                  {"of", head.of},
                  {"source", head.source},
                  {"description", head.description},
                  {"set", head.overrides}});
}

std::string look_line(Picos at, const std::vector<SightedHost>& hosts) {
  Json list = Json::array();
  for (const SightedHost& host : hosts) {
    list.push_back(host.error.empty() ? looks::look_json(host.host) : Json{{"error", host.error}});
  }
  return line_of({{"at_ps", at.count}, {"hosts", std::move(list)}});
}

std::string read_head_line(std::string_view line, LookFileHead& out) {
  out = {};
  const Json json = object_in(line);
  if (json.is_null() || json.value("kind", Json()) != kKind) {
    return "this is not a recording; `paceline diagnose --record FILE` writes one";
  }
  if (json.value("schema", Json()) != kSchema) {
    return fmt::format("\"schema\" is not {}: another version kept these looks", kSchema);
  }
  const Json set = json.value("set", Json());
  if (!take_text(json, "of", out.of) || (out.of != "testbed" && out.of != "fleet") ||
      !take_text(json, "source", out.source) || !take_text(json, "description", out.description) ||
      !set.is_array()) {
    return "\"of\", \"source\", \"description\" or \"set\" is missing or of another type";
  }
  for (const Json& one : set) {
    if (!one.is_string()) return "\"set\": expected texts";
    out.overrides.push_back(one.get<std::string>());
  }
  return {};
}

std::string read_look_line(std::string_view line, std::size_t hosts, KeptLook& out) {
  out = {};
  const Json json = object_in(line);
  if (json.is_null()) return "expected a JSON object";
  const auto at = json.find("at_ps");
  if (at == json.end() || !at->is_number_unsigned() ||
      at->get<std::uint64_t>() >= static_cast<std::uint64_t>(kNever.count)) {
    return "\"at_ps\": expected a whole number of picoseconds";
  }
  out.at = Picos{at->get<std::int64_t>()};
  const auto list = json.find("hosts");
  if (list == json.end() || !list->is_array() || list->size() != hosts) {
    return fmt::format("\"hosts\": expected a list of {}", hosts);
  }
  for (const Json& one : *list) {
    SightedHost& host = out.hosts.emplace_back();
    if (one.is_object() && take_text(one, "error", host.error) && !host.error.empty()) continue;
    const std::string wrong = looks::read_look(one, host.host);
    if (!wrong.empty()) return fmt::format("hosts[{}]: {}", out.hosts.size() - 1, wrong);
  }
  return {};
}

}  // namespace paceline::tools
