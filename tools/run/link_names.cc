#include "tools/run/link_names.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "cc/nearest_name.h"
#include "dataplane/config/scenario/fabric_shape.h"

namespace paceline::tools {

namespace {

NamedLink between(std::string first, std::string second, std::uint32_t parallel) {
  std::string name = first + "-" + second;
  if (parallel != 0) name += fmt::format("#{}", parallel);
  return {std::move(name), std::move(first), std::move(second)};
}

std::string node(const char* kind, std::uint32_t number) {
  return fmt::format("{}{}", kind, number);
}

NamedLink regular_link(const config::FabricConfig& fabric, const config::FabricShape& shape,
                       std::uint32_t index) {
  const std::uint32_t first_up = shape.leaf_link(0, 0);
  if (index < first_up) {
    NamedLink link = between(config::endpoint_name(fabric, index),
                             node("leaf", index / shape.hosts_per_leaf), 0);
    link.name = link.first;
    return link;
  }
  if (shape.spines == 0) return between("leaf0", "leaf1", index - first_up);
  const std::uint32_t first_core_link = shape.core_link(0, 0);
  if (index < first_core_link) {
    const std::uint32_t pair = (index - first_up) / shape.links_per_pair;
    const std::uint32_t leaf = pair / shape.spines;
    const std::uint32_t spine = leaf / shape.leaves * shape.spines + pair % shape.spines;
    return between(node("leaf", leaf), node("spine", spine),
                   (index - first_up) % shape.links_per_pair);
  }
  const std::uint32_t group = shape.cores_per_spine();
  const std::uint32_t spine = (index - first_core_link) / group;
  const std::uint32_t core = shape.first_core(spine) + (index - first_core_link) % group;
  return between(node("spine", spine), node("core", core), 0);
}

std::vector<NamedLink> links_of_file(const config::FabricConfig& fabric,
                                     const workload::NodeNumbers& numbers) {
  std::vector<NamedLink> links;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> parallel;
  for (const config::LinkSpec& link : fabric.links) {
    const std::uint32_t n = parallel[std::minmax(link.a, link.b)]++;
    links.push_back(between(fmt::format("{}", numbers.number(link.a)),
                            fmt::format("{}", numbers.number(link.b)), n));
  }
  return links;
}

// The name with its ends the other way round.
std::string turned(const NamedLink& link) {
  const std::size_t hash = link.name.find('#');
  return link.second + "-" + link.first + (hash == std::string::npos ? "" : link.name.substr(hash));
}

}  // namespace

std::vector<NamedLink> link_names(const config::Scenario& scenario,
                                  const workload::NodeNumbers& numbers) {
  if (!scenario.fabric.links.empty()) return links_of_file(scenario.fabric, numbers);
  const config::FabricShape shape = config::shape_of(scenario.fabric);
  std::vector<NamedLink> links;
  for (std::uint32_t i = 0; i < shape.links(); ++i) {
    links.push_back(regular_link(scenario.fabric, shape, i));
  }
  return links;
}

NamedLink link_name(const config::Scenario& scenario, const workload::NodeNumbers& numbers,
                    std::uint32_t index) {
  if (!scenario.fabric.links.empty()) return links_of_file(scenario.fabric, numbers).at(index);
  return regular_link(scenario.fabric, config::shape_of(scenario.fabric), index);
}

LinkByName link_by_name(const config::Scenario& scenario, const std::vector<NamedLink>& links,
                        std::string_view name) {
  LinkByName found;
  if (scenario.fabric.links.empty()) {
    const config::FoundLink regular = config::find_link(scenario.fabric, name);
    if (regular.error.empty()) return {regular.index, {}};
    found.error = regular.error;
  } else {
    const auto at = std::find_if(links.begin(), links.end(), [name](const NamedLink& link) {
      return link.name == name || turned(link) == name;
    });
    if (at != links.end()) return {static_cast<std::uint32_t>(at - links.begin()), {}};
    found.error = fmt::format("the topology file has no link \"{}\"", name);
  }
  std::vector<std::string_view> names;
  names.reserve(links.size());
  for (const NamedLink& link : links) names.push_back(link.name);
  const std::string_view nearest = cc::nearest_name(name, names);
  if (!nearest.empty()) found.error += fmt::format("; nearest is \"{}\"", nearest);
  return found;
}

}  // namespace paceline::tools
