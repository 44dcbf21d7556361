#include "dataplane/config/fabric_shape.h"

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
    // Of a pod: each spine has cores / spines links up.
    const FabricShape shape = shape_of(fabric);
    return oversubscribed(fabric, double{1} * shape.leaves * shape.hosts_per_leaf, shape.cores);
  }
  return uplink_rate(fabric);
}

}  // namespace paceline::config
