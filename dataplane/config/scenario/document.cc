#include "dataplane/config/scenario/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "dataplane/config/scenario/fabric_shape.h"
#include "dataplane/config/scenario/link_group.h"

namespace paceline::config {

namespace {

constexpr std::int64_t kSchema = 1;

// Parameters belong to the algorithm that they were written for: if an override of `path` replaces
// the algorithm, the file's parameters are dropped. Those given by overrides stay.
void drop_parameters_of_another(TomlNode& root, std::string_view path, const TomlNode& algorithm) {
  TomlNode* owner = &root;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    TomlMember* const table = owner->find(path.substr(0, dot));
    if (table == nullptr) return;
    owner = &table->value;
    path.remove_prefix(dot + 1);
  }
  if (path != "algorithm") return;
  const TomlMember* const before = owner->find(path);
  TomlMember* const params = owner->find("params");
  if (before == nullptr || params == nullptr || before->value.text == algorithm.text) return;
  std::erase_if(params->value.members, [](const TomlMember& m) { return m.where.line != 0; });
}

}  // namespace

std::vector<Override> split_overrides(const std::vector<std::string>& texts, Diagnostics& errors) {
  std::vector<Override> out;
  for (const std::string& text : texts) {
    const Where where{"--set " + text, 0, 0};
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      errors.add(where, "expected key=value, such as fabric.ecn.kmin=200kB");
      continue;
    }
    out.push_back({text.substr(0, equals),
                   parse_override_value(std::string_view(text).substr(equals + 1), where)});
  }
  return out;
}

void apply_override(TomlNode& root, std::string_view path, const TomlNode& value,
                    Diagnostics& errors) {
  drop_parameters_of_another(root, path, value);
  const std::string problem = set_at(root, path, value);
  if (!problem.empty()) errors.add(value.where, problem);
}

void forgive_replaced_choices(TomlNode& scenario) {
  const auto forgive = [&scenario](std::string_view table, std::string_view choice) {
    TomlMember* owner = scenario.find(table);
    if (owner == nullptr) return;
    const TomlMember* given = owner->value.find(choice);
    if (given != nullptr && given->value.where.line == 0) mark_inherited(owner->value);
  };
  forgive("workload", "kind");
  forgive("fabric", "topology");
  forgive("fabric", "topology_file");
}

bool check_schema(const TomlNode& root, std::uint32_t& schema, Diagnostics& errors) {
  const TomlMember* m = root.find("schema");
  if (m == nullptr) return true;
  if (m->value.type == TomlNode::Type::integer && m->value.integer == kSchema) {
    schema = static_cast<std::uint32_t>(kSchema);
    return true;
  }
  errors.add(m->value.where,
             fmt::format("schema = {}: this program reads schema {}", describe(m->value), kSchema));
  return false;
}

void imply_planes(Scenario& s, const GivenKeys& given) {
  if (given.given("transport.planes")) return;
  s.transport.planes = s.transport.reliability == "selective" ? "spray" : "hash";
}

void imply(Scenario& s, const GivenKeys& given) {
  if (given.given("fabric.topology_file") && !given.given("fabric.topology")) {
    s.fabric.topology = "file";
  }
  if (given.given("fabric.k") && !given.given("fabric.topology")) s.fabric.topology = "fat_tree";
  // These topologies ignore a number of ports that the file inherits.
  if (s.fabric.topology == "file" || s.fabric.topology == "dumbbell") s.fabric.ports = 1;
  if (s.fabric.topology != "file") {
    // A number beyond 32 bits exceeds the limit that check_scenario reports, as it also reports
    // links that do not exist.
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    const FabricShape shape = shape_of(s.fabric);
    if (s.fabric.topology != "dumbbell" && s.fabric.topology != "star") {
      const std::uint64_t hosts = shape.endpoints() / s.fabric.ports;
      s.fabric.hosts = static_cast<std::uint32_t>(std::min(hosts, kMost));
    }
    s.fabric.switches = static_cast<std::uint32_t>(std::min(shape.switches(), kMost));
    for (EventConfig& event : s.events) {
      event.links = find_links(s.fabric, event.link).links;
    }
    for (FaultConfig& fault : s.faults) {
      fault.links = find_links(s.fabric, fault.target).links;
    }
  }
  imply_planes(s, given);
  // Either key selects PFC. A contradiction between them is left for check_scenario to report.
  if (!given.given("fabric.flow_control")) {
    s.fabric.flow_control = s.fabric.pfc.enabled ? "pfc" : "none";
  } else if (!given.given("fabric.pfc.enabled")) {
    s.fabric.pfc.enabled = s.fabric.flow_control == "pfc";
  }
  if (given.given("workload.cdf_file") && !given.given("workload.cdf")) s.workload.cdf = "file";
  if (given.given("workload.placement_file") && !given.given("workload.placement"))
    s.workload.placement = "file";
  if (given.given("workload.flows_file") && !given.given("workload.kind"))
    s.workload.kind = "flows";
  if (given.given("workload.matrix_file") && !given.given("workload.kind"))
    s.workload.kind = "htsim";
  if (given.given("workload.job.file") && !given.given("workload.kind")) s.workload.kind = "job";
}

std::string default_name(const std::string& source, std::string_view otherwise) {
  std::string stem = std::filesystem::path(source).stem().string();
  std::replace_if(
      stem.begin(), stem.end(),
      [](char c) {
        return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '-' || c == '_');
      },
      '-');
  return stem.empty() ? std::string(otherwise) : stem.substr(0, 64);
}

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

}  // namespace paceline::config
