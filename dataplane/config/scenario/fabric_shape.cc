#include "dataplane/config/scenario/fabric_shape.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

namespace paceline::config {

namespace {

// The rate at which `links` links carry what `hosts` hosts send, divided by the ratio.
Rate oversubscribed(const FabricConfig& fabric, double hosts, double links) {
  const double bps =
      static_cast<double>(fabric.rate.bps) * hosts / (links * fabric.oversubscription);
  return {static_cast<std::uint64_t>(bps)};
}

}  // namespace

FabricShape shape_of(const FabricConfig& fabric) {
  FabricShape shape;
  if (fabric.topology == "star") {
    shape.hosts_per_leaf = fabric.hosts;
    return shape;
  }
  shape.links_per_pair = fabric.links_per_pair;
  if (fabric.topology == "dumbbell") {
    shape.leaves = 2;
    shape.hosts_per_leaf = fabric.hosts / 2;
    return shape;
  }
  shape.leaves = fabric.leaves;
  shape.spines = fabric.spines;
  shape.hosts_per_leaf = fabric.hosts_per_leaf;
  if (fabric.topology == "fat_tree") {
    shape.pods = fabric.pods;
    shape.cores = fabric.cores;
    if (fabric.k != 0) {
      // Al-Fares et al., SIGCOMM 2008, section 2.2.
      const std::uint32_t half = fabric.k / 2;
      shape.pods = fabric.k;
      shape.leaves = shape.spines = shape.hosts_per_leaf = half;
      shape.cores = half * half;
    }
  }
  return shape;
}

Rate uplink_rate(const FabricConfig& fabric) {
  if (fabric.uplink_rate.bps != 0) return fabric.uplink_rate;
  if (fabric.oversubscription != 0 && fabric.topology != "fat_tree") {
    const FabricShape shape = shape_of(fabric);
    const std::uint32_t up = fabric.topology == "dumbbell" ? 1 : shape.spines;
    return oversubscribed(fabric, shape.hosts_per_leaf, double{1} * up * shape.links_per_pair);
  }
  return fabric.rate;
}

Rate core_rate(const FabricConfig& fabric) {
  if (fabric.core_rate.bps != 0) return fabric.core_rate;
  if (fabric.oversubscription != 0 && fabric.topology == "fat_tree") {
    // In a pod each spine has cores / spines links up.
    const FabricShape shape = shape_of(fabric);
    return oversubscribed(fabric, double{1} * shape.leaves * shape.hosts_per_leaf, shape.cores);
  }
  return uplink_rate(fabric);
}

namespace {

enum class Kind : std::uint8_t { host, leaf, spine, core };

struct Node {
  Kind kind = Kind::host;
  std::uint32_t number = 0;
};

std::optional<std::uint32_t> whole_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

class LinkFinder {
 public:
  explicit LinkFinder(const FabricConfig& fabric) : shape_(shape_of(fabric)) {}

  FoundLink find(std::string_view name) {
    const std::string_view whole = name;
    std::uint32_t parallel = 0;
    if (!take_parallel_number(name, parallel)) return {0, "expected a number behind \"#\""};
    const std::size_t dash = name.find('-');
    Node a;
    Node b;
    if (!node(name.substr(0, dash), a)) return {0, std::move(error_)};
    if (dash == std::string_view::npos) {
      if (a.kind == Kind::host && parallel == 0) return {a.number, {}};
      return {0, "expected \"host3\", or two nodes such as \"leaf0-spine1\""};
    }
    if (!node(name.substr(dash + 1), b)) return {0, std::move(error_)};
    if (a.kind > b.kind || (a.kind == b.kind && a.number > b.number)) std::swap(a, b);
    const std::optional<std::uint32_t> first = first_link(a, b);
    const std::uint32_t count = a.kind == Kind::leaf ? shape_.links_per_pair : 1;
    if (!first) return {0, fmt::format("there is no link \"{}\" in this topology", whole)};
    if (parallel >= count) {
      return {0, fmt::format("there are {} links between these nodes, numbered from 0", count)};
    }
    return {*first + parallel, {}};
  }

 private:
  bool node(std::string_view name, Node& out) {
    const std::uint32_t leaves = shape_.pods * shape_.leaves;
    const std::pair<std::string_view, std::uint32_t> kinds[] = {
        {"host", leaves * shape_.hosts_per_leaf},
        {"leaf", leaves},
        {"spine", shape_.pods * shape_.spines},
        {"core", shape_.cores}};
    for (std::size_t i = 0; i < 4; ++i) {
      const auto& [kind, count] = kinds[i];
      if (!name.starts_with(kind)) continue;
      const std::optional<std::uint32_t> number = whole_number(name.substr(kind.size()));
      if (!number) break;
      if (*number >= count) {
        error_ = count == 0 ? fmt::format("this topology has no \"{}\"", name)
                            : fmt::format("no node \"{}\"; allowed is {}0 .. {}{}", name, kind,
                                          kind, count - 1);
        return false;
      }
      out = {static_cast<Kind>(i), *number};
      return true;
    }
    error_ =
        fmt::format("\"{}\" is no node; expected host, leaf, spine or core and a number", name);
    return false;
  }

  // a is of the lower tier.
  std::optional<std::uint32_t> first_link(Node a, Node b) const {
    const std::uint32_t hosts = shape_.pods * shape_.leaves * shape_.hosts_per_leaf;
    if (a.kind == Kind::host && b.kind == Kind::leaf) {
      if (a.number / shape_.hosts_per_leaf != b.number) return std::nullopt;
      return a.number;
    }
    if (a.kind == Kind::leaf && b.kind == Kind::leaf && a.number != b.number &&
        shape_.spines == 0) {
      return hosts;
    }
    if (a.kind == Kind::leaf && b.kind == Kind::spine) {
      if (a.number / shape_.leaves != b.number / shape_.spines) return std::nullopt;
      return hosts + (a.number * shape_.spines + b.number % shape_.spines) * shape_.links_per_pair;
    }
    if (a.kind == Kind::spine && b.kind == Kind::core) {
      const std::uint32_t group = shape_.cores / shape_.spines;
      if (group == 0) return std::nullopt;  // not a multiple: reported elsewhere
      if (b.number / group != a.number % shape_.spines) return std::nullopt;
      return hosts + shape_.pods * shape_.leaves * shape_.spines * shape_.links_per_pair +
             a.number * group + b.number % group;
    }
    return std::nullopt;
  }

  FabricShape shape_;
  std::string error_;
};

}  // namespace

bool take_parallel_number(std::string_view& name, std::uint32_t& number) {
  const std::size_t hash = name.find('#');
  if (hash == std::string_view::npos) return true;
  const std::optional<std::uint32_t> value = whole_number(name.substr(hash + 1));
  name = name.substr(0, hash);
  if (value) number = *value;
  return value.has_value();
}

FoundLink find_link(const FabricConfig& fabric, std::string_view name) {
  return LinkFinder(fabric).find(name);
}

}  // namespace paceline::config
