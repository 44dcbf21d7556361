#include "dataplane/config/scenario/link_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "dataplane/config/scenario/fabric_shape.h"

namespace paceline::config {

namespace {

// Collects links.
class LinkGroup {
 public:
  explicit LinkGroup(const FabricConfig& fabric) : fabric_(fabric), shape_(shape_of(fabric)) {}

  std::uint32_t leaves() const { return shape_.all_leaves(); }
  std::uint32_t spines() const { return shape_.all_spines(); }
  std::uint32_t cores() const { return shape_.all_cores(); }
  std::uint32_t planes() const { return fabric_.ports; }
  std::uint32_t servers() const { return fabric_.hosts / fabric_.nics; }

  void add_leaf(std::uint32_t leaf) {
    add(leaf * shape_.hosts_per_leaf, shape_.hosts_per_leaf);
    add(shape_.leaf_link(leaf, 0), (shape_.dumbbell() ? 1 : shape_.spines) * shape_.links_per_pair);
  }
  void add_spine(std::uint32_t spine) {
    const std::uint32_t first_leaf = spine / shape_.spines * shape_.leaves;
    for (std::uint32_t i = 0; i < shape_.leaves; ++i) {
      add(shape_.leaf_link(first_leaf + i, spine % shape_.spines), shape_.links_per_pair);
    }
    add(shape_.core_link(spine, 0), shape_.cores_per_spine());
  }
  void add_core(std::uint32_t core) {
    const std::uint32_t group = shape_.cores_per_spine();
    if (group == 0) return;  // not a multiple of the spines, which is told elsewhere
    const std::uint32_t plane = core / shape_.cores;
    const std::uint32_t place = core % shape_.cores;
    for (std::uint32_t pod = plane * shape_.pods; pod < (plane + 1) * shape_.pods; ++pod) {
      add(shape_.core_link(pod * shape_.spines + place / group, place % group), 1);
    }
  }
  void add_plane(std::uint32_t plane) {
    const std::uint32_t per_plane = leaves() / fabric_.ports;
    for (std::uint32_t i = 0; i < per_plane; ++i) add_leaf(plane * per_plane + i);
    if (shape_.planes == 1) return;
    const std::uint32_t spines_each = spines() / shape_.planes;
    add(shape_.core_link(plane * spines_each, 0), spines_each * shape_.cores_per_spine());
  }
  void add_server(std::uint32_t server) {
    for (std::uint32_t port = 0; port < fabric_.ports; ++port) {
      for (std::uint32_t rail = 0; rail < fabric_.nics; ++rail) {
        add(port * fabric_.hosts + rail * servers() + server, 1);
      }
    }
  }

  std::vector<std::uint32_t> take() {
    std::sort(links_.begin(), links_.end());
    return std::move(links_);
  }

 private:
  void add(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) links_.push_back(first + i);
  }

  const FabricConfig& fabric_;
  FabricShape shape_;
  std::vector<std::uint32_t> links_;
};

}  // namespace

FoundLinks find_links(const FabricConfig& fabric, std::string_view name) {
  LinkGroup group(fabric);
  struct Kind {
    std::string_view name;
    std::uint32_t count;
    void (LinkGroup::*add)(std::uint32_t);
  };
  const Kind kinds[] = {{"leaf", group.leaves(), &LinkGroup::add_leaf},
                        {"spine", group.spines(), &LinkGroup::add_spine},
                        {"core", group.cores(), &LinkGroup::add_core},
                        {"plane", group.planes(), &LinkGroup::add_plane},
                        {"server", group.servers(), &LinkGroup::add_server}};
  for (const Kind& kind : kinds) {
    if (!name.starts_with(kind.name)) continue;
    const std::optional<std::uint32_t> number = whole_number(name.substr(kind.name.size()));
    if (!number) continue;
    if (*number >= kind.count) {
      return {{},
              kind.count == 0 ? fmt::format("this topology has no \"{}\"", name)
                              : fmt::format("no \"{}\"; allowed is {}0 .. {}{}", name, kind.name,
                                            kind.name, kind.count - 1)};
    }
    (group.*kind.add)(*number);
    return {group.take(), {}};
  }
  const FoundLink found = find_link(fabric, name);
  if (!found.error.empty()) return {{}, found.error};
  return {{found.index}, {}};
}

}  // namespace paceline::config
