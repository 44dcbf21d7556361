#include "dataplane/fabric/topology/clos.h"

#include <algorithm>
#include <cassert>

#include "dataplane/fabric/topology/fabric_spec.h"

namespace paceline::fabric {

namespace {

std::uint32_t at_least_one(std::uint32_t n) { return std::max<std::uint32_t>(n, 1); }

}  // namespace

FabricSpec clos(const ClosShape& shape, const ClosLinks& links) {
  assert(shape.regular() && (shape.spines == 0 || shape.cores % shape.spines == 0));
  FabricSpec spec;
  spec.shape = shape;
  spec.hosts = shape.hosts();
  spec.switches = shape.switches();
  spec.links.reserve(std::size_t{spec.hosts} + shape.leaf_links() + shape.core_links());
  for (std::uint32_t host = 0; host < spec.hosts; ++host) {
    spec.links.push_back({.a = host,
                          .b = spec.hosts + host / shape.hosts_per_leaf,
                          .rate = links.host_rate,
                          .delay = links.host_delay});
  }
  const auto link = [&spec, &links](std::uint32_t a, std::uint32_t b, Rate rate) {
    spec.links.push_back(
        {.a = spec.hosts + a, .b = spec.hosts + b, .rate = rate, .delay = links.uplink_delay});
  };
  if (shape.dumbbell()) {
    for (std::uint32_t i = 0; i < shape.links_per_pair; ++i) link(0, 1, links.uplink_rate);
    return spec;
  }
  for (std::uint32_t leaf = 0; leaf < shape.all_leaves(); ++leaf) {
    const std::uint32_t pod = leaf / shape.leaves;
    for (std::uint32_t spine = 0; spine < shape.spines; ++spine) {
      for (std::uint32_t i = 0; i < shape.links_per_pair; ++i) {
        link(leaf, shape.all_leaves() + pod * shape.spines + spine, links.uplink_rate);
      }
    }
  }
  const std::uint32_t group = shape.cores_per_spine();
  const std::uint32_t first_core = shape.all_leaves() + shape.all_spines();
  for (std::uint32_t spine = 0; spine < shape.all_spines(); ++spine) {
    const std::uint32_t plane = spine / (shape.pods * shape.spines);
    const std::uint32_t core = first_core + plane * shape.cores + spine % shape.spines * group;
    for (std::uint32_t i = 0; i < group; ++i) {
      link(shape.all_leaves() + spine, core + i, links.core_rate);
    }
  }
  return spec;
}

ClosRouter::ClosRouter(const ClosShape& shape)
    : hosts_(shape.hosts()),
      leaves_(shape.all_leaves()),
      spines_(shape.all_spines()),
      spines_per_pod_(shape.spines),
      cores_(shape.cores),
      links_per_pair_(shape.spines == 0 && !shape.dumbbell() ? 0 : shape.links_per_pair),
      up_per_leaf_(shape.spines * shape.links_per_pair),
      up_per_spine_(shape.cores_per_spine()),
      first_core_link_(hosts_ + shape.leaf_links()),
      by_hosts_per_leaf_(at_least_one(shape.hosts_per_leaf)),
      by_leaves_(at_least_one(shape.leaves)),
      by_spines_(at_least_one(shape.spines)),
      by_pods_(at_least_one(shape.pods)) {}

}  // namespace paceline::fabric
