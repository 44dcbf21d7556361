#include "cc/registry.h"

#include <array>
#include <vector>

#include "cc/cadence.h"
#include "cc/dcqcn.h"
#include "cc/fixed.h"
#include "cc/nearest_name.h"
#include "cc/swift.h"

namespace paceline::cc {

std::span<const AlgorithmInfo> algorithms() {
  static const std::array<AlgorithmInfo, kAlgorithms> table{Fixed::info(), Dcqcn::info(),
                                                            cadence_info(), Swift::info()};
  return table;
}

const AlgorithmInfo* find(std::string_view name) {
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

const AlgorithmInfo* find(AlgorithmId id) {
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.id == id) return &info;
  }
  return nullptr;
}

std::string_view nearest_algorithm(std::string_view name) {
  std::vector<std::string_view> names;
  for (const AlgorithmInfo& info : algorithms()) names.push_back(info.name);
  return nearest_name(name, names);
}

}  // namespace paceline::cc
