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

// The order of dataplane/fabric/topology/clos.h: hosts', leaf-spine (or the trunk), spine-core.
std::vector<NamedLink> regular_links(const config::FabricConfig& fabric) {
  const config::FabricShape shape = config::shape_of(fabric);
  std::vector<NamedLink> links;
  const std::uint32_t leaves = shape.planes * shape.pods * shape.leaves;
  for (std::uint32_t end = 0; end < leaves * shape.hosts_per_leaf; ++end) {
    NamedLink link =
        between(config::endpoint_name(fabric, end), node("leaf", end / shape.hosts_per_leaf), 0);
    link.name = link.first;
    links.push_back(std::move(link));
  }
  if (shape.spines == 0) {
    for (std::uint32_t i = 0; fabric.topology == "dumbbell" && i < shape.links_per_pair; ++i) {
      links.push_back(between("leaf0", "leaf1", i));
    }
    return links;
  }
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    for (std::uint32_t j = 0; j < shape.spines; ++j) {
      const std::uint32_t spine = leaf / shape.leaves * shape.spines + j;
      for (std::uint32_t i = 0; i < shape.links_per_pair; ++i) {
        links.push_back(between(node("leaf", leaf), node("spine", spine), i));
      }
    }
  }
  const std::uint32_t group = shape.cores / shape.spines;
  for (std::uint32_t spine = 0; spine < shape.planes * shape.pods * shape.spines; ++spine) {
    const std::uint32_t plane = spine / (shape.pods * shape.spines);
    for (std::uint32_t i = 0; i < group; ++i) {
      const std::uint32_t core = plane * shape.cores + spine % shape.spines * group + i;
      links.push_back(between(node("spine", spine), node("core", core), 0));
    }
  }
  return links;
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
  return scenario.fabric.links.empty() ? regular_links(scenario.fabric)
                                       : links_of_file(scenario.fabric, numbers);
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
