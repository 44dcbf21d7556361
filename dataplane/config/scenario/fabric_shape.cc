#include "dataplane/config/scenario/fabric_shape.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <tuple>
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
  shape.planes = fabric.planes == "own" ? fabric.ports : 1;
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
  shape.leaves = fabric.leaves * (fabric.ports / shape.planes);
  shape.spines = fabric.spines;
  shape.hosts_per_leaf = fabric.hosts_per_leaf;
  if (fabric.topology == "rail") {
    shape.pods = fabric.nics;
    shape.leaves = fabric.servers / fabric.hosts_per_leaf;
    shape.cores = fabric.cores;
  }
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
  const FabricShape shape = shape_of(fabric);
  const std::uint32_t up = fabric.topology == "dumbbell" ? 1 : shape.spines;
  if (fabric.oversubscription != 0 && shape.cores == 0 && up != 0) {
    return oversubscribed(fabric, shape.hosts_per_leaf, double{1} * up * shape.links_per_pair);
  }
  return fabric.rate;
}

Rate core_rate(const FabricConfig& fabric) {
  if (fabric.core_rate.bps != 0) return fabric.core_rate;
  const FabricShape shape = shape_of(fabric);
  if (fabric.oversubscription != 0 && shape.cores != 0) {
    // In a pod each spine has cores / spines links up.
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

class LinkFinder {
 public:
  explicit LinkFinder(const FabricConfig& fabric)
      : fabric_(fabric),
        shape_(shape_of(fabric)),
        nics_(static_cast<std::uint32_t>(shape_.endpoints()) / fabric.ports) {}

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
    if (name.starts_with("host") || name.starts_with("server")) return end(name, out);
    const std::tuple<std::string_view, Kind, std::uint32_t> kinds[] = {
        {"leaf", Kind::leaf, shape_.all_leaves()},
        {"spine", Kind::spine, shape_.all_spines()},
        {"core", Kind::core, shape_.all_cores()}};
    for (const auto& [word, kind, count] : kinds) {
      if (!name.starts_with(word)) continue;
      const Numbered number = numbered(name, word, count);
      if (number == Numbered::no) break;
      out = {kind, last_};
      return number == Numbered::yes;
    }
    error_ =
        fmt::format("\"{}\" is not a node; expected host, leaf, spine or core and a number", name);
    return false;
  }

  // A port of a NIC: "host3.p1", "server2.nic1.p1".
  bool end(std::string_view name, Node& out) {
    const std::string_view whole = name;
    std::uint32_t port = 0;
    if (const std::size_t dot = name.rfind(".p"); dot != std::string_view::npos) {
      const Numbered number = numbered(name.substr(dot + 1), "p", fabric_.ports);
      if (number != Numbered::yes) return number == Numbered::no && no_end(whole);
      port = last_;
      name = name.substr(0, dot);
    }
    std::uint32_t rail = 0;
    std::string_view word = "host";
    std::uint32_t count = nics_;
    if (name.starts_with("server")) {
      word = "server";
      count = nics_ / fabric_.nics;
      const std::size_t dot = name.find(".nic");
      if (dot == std::string_view::npos) return no_end(whole);
      const Numbered number = numbered(name.substr(dot + 1), "nic", fabric_.nics);
      if (number != Numbered::yes) return number == Numbered::no && no_end(whole);
      rail = last_;
      name = name.substr(0, dot);
    }
    const Numbered number = numbered(name, word, count);
    if (number != Numbered::yes) return number == Numbered::no && no_end(whole);
    out = {Kind::host, port * nics_ + rail * count + last_};
    return true;
  }

  // Whether the name is that word and a number below `count`, then in last_. Beyond it: error_ says
  // so.
  enum class Numbered : std::uint8_t { no, yes, beyond };
  Numbered numbered(std::string_view name, std::string_view word, std::uint32_t count) {
    const std::optional<std::uint32_t> number = whole_number(name.substr(word.size()));
    if (!number) return Numbered::no;
    last_ = *number;
    if (last_ < count) return Numbered::yes;
    error_ = count == 0 ? fmt::format("this topology has no \"{}\"", name)
                        : fmt::format("no node \"{}\"; allowed is {}0 .. {}{}", name, word, word,
                                      count - 1);
    return Numbered::beyond;
  }

  bool no_end(std::string_view name) {
    error_ = fmt::format(
        "\"{}\" is not a host; expected one such as \"host3\" or \"server2.nic1\", or a port of it "
        "such as \"host3.p1\"",
        name);
    return false;
  }

  // a is of the lower tier.
  std::optional<std::uint32_t> first_link(Node a, Node b) const {
    if (a.kind == Kind::host && b.kind == Kind::leaf) {
      if (a.number / shape_.hosts_per_leaf != b.number) return std::nullopt;
      return a.number;
    }
    if (a.kind == Kind::leaf && b.kind == Kind::leaf && a.number != b.number && shape_.dumbbell()) {
      return shape_.leaf_link(0, 0);
    }
    if (a.kind == Kind::leaf && b.kind == Kind::spine) {
      if (a.number / shape_.leaves != b.number / shape_.spines) return std::nullopt;
      return shape_.leaf_link(a.number, b.number % shape_.spines);
    }
    if (a.kind == Kind::spine && b.kind == Kind::core) {
      // No group: not a multiple, which is reported elsewhere.
      const std::uint32_t place = b.number - shape_.first_core(a.number);
      if (place >= shape_.cores_per_spine()) return std::nullopt;
      return shape_.core_link(a.number, place);
    }
    return std::nullopt;
  }

  const FabricConfig& fabric_;
  FabricShape shape_;
  std::uint32_t nics_;      // all
  std::uint32_t last_ = 0;  // number that numbered() read
  std::string error_;
};

}  // namespace

std::string endpoint_name(const FabricConfig& fabric, std::uint32_t endpoint) {
  const std::uint32_t port = endpoint / fabric.hosts;
  const std::uint32_t nic = endpoint % fabric.hosts;
  return port == 0 ? fmt::format("host{}", nic) : fmt::format("host{}.p{}", nic, port);
}

std::optional<std::uint32_t> whole_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<unsigned> subnet_prefix(const FabricConfig& fabric) {
  std::array<unsigned, 5> parts{};
  constexpr std::string_view kSeparators = "..../";
  const char* at = fabric.subnet.data();
  const char* end = at + fabric.subnet.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && (at == end || *at++ != kSeparators[i])) return std::nullopt;
    const auto [stop, code] = std::from_chars(at, end, parts[i]);
    if (code != std::errc{} || parts[i] > (i < 4 ? 255U : 30U)) return std::nullopt;
    at = stop;
  }
  if (at != end || parts[4] < 8) return std::nullopt;
  const std::uint32_t address = parts[0] << 24 | parts[1] << 16 | parts[2] << 8 | parts[3];
  const std::uint32_t host_bits = ~(0xFFFF'FFFFU << (32 - parts[4]));
  return (address & host_bits) == 0 ? std::optional(parts[4]) : std::nullopt;
}

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
