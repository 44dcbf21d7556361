#include "dataplane/config/scenario/link_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "dataplane/config/scenario/fabric_shape.h"

namespace paceline::config {

namespace {

// Collects links by the numbering of dataplane/fabric/topology/clos.h.
class LinkGroup {
 public:
  explicit LinkGroup(const FabricConfig& fabric)
      : fabric_(fabric),
        shape_(shape_of(fabric)),
        hosts_(static_cast<std::uint32_t>(shape_.endpoints())),
        pods_(shape_.planes * shape_.pods),
        leaves_(pods_ * shape_.leaves),
        spines_(pods_ * shape_.spines),
        group_(shape_.spines == 0 ? 0 : shape_.cores / shape_.spines),
        first_core_link_(hosts_ + leaves_ * shape_.spines * shape_.links_per_pair) {}

  std::uint32_t leaves() const { return leaves_; }
  std::uint32_t spines() const { return spines_; }
  std::uint32_t cores() const { return shape_.planes * shape_.cores; }
  std::uint32_t planes() const { return fabric_.ports; }
  std::uint32_t servers() const { return fabric_.hosts / fabric_.nics; }

  void add_leaf(std::uint32_t leaf) {
    add(leaf * shape_.hosts_per_leaf, shape_.hosts_per_leaf);
    if (shape_.spines == 0 && fabric_.topology == "dumbbell") {
      add(hosts_, shape_.links_per_pair);
    } else {
      const std::uint32_t up = shape_.spines * shape_.links_per_pair;
      add(hosts_ + leaf * up, up);
    }
  }
  void add_spine(std::uint32_t spine) {
    const std::uint32_t pod = spine / shape_.spines;
    for (std::uint32_t i = 0; i < shape_.leaves; ++i) {
      const std::uint32_t leaf = pod * shape_.leaves + i;
      const std::uint32_t pair = leaf * shape_.spines + spine % shape_.spines;
      add(hosts_ + pair * shape_.links_per_pair, shape_.links_per_pair);
    }
    add(first_core_link_ + spine * group_, group_);
  }
  void add_core(std::uint32_t core) {
    if (group_ == 0) return;  // not a multiple of the spines, which is told elsewhere
    const std::uint32_t plane = core / shape_.cores;
    const std::uint32_t place = core % shape_.cores;
    for (std::uint32_t pod = plane * shape_.pods; pod < (plane + 1) * shape_.pods; ++pod) {
      const std::uint32_t spine = pod * shape_.spines + place / group_;
      add(first_core_link_ + spine * group_ + place % group_, 1);
    }
  }
  void add_plane(std::uint32_t plane) {
    const std::uint32_t per_plane = leaves_ / fabric_.ports;
    for (std::uint32_t i = 0; i < per_plane; ++i) add_leaf(plane * per_plane + i);
    if (shape_.planes == 1) return;
    const std::uint32_t links = spines_ / shape_.planes * group_;
    add(first_core_link_ + plane * links, links);
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
  std::uint32_t hosts_;  // ends of the fabric
  std::uint32_t pods_, leaves_, spines_;
  std::uint32_t group_;  // cores that a spine is linked to
  std::uint32_t first_core_link_;
  std::vector<std::uint32_t> links_;
};

// The number of `name` if it is `kind` and a number.
std::optional<std::uint32_t> number_of(std::string_view name, std::string_view kind) {
  if (!name.starts_with(kind) || name.size() == kind.size()) return std::nullopt;
  std::uint32_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, code] = std::from_chars(name.data() + kind.size(), end, number);
  if (code != std::errc{} || stop != end) return std::nullopt;
  return number;
}

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
    const std::optional<std::uint32_t> number = number_of(name, kind.name);
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
