#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cc/interface/algorithm.h"

namespace paceline::cc {

// The algorithms that have a profile of that name. A user who asks for it from another algorithm
// has confused the two, and does not mean a name that looks alike.
inline std::vector<std::string_view> profile_owners(std::string_view profile,
                                                    std::span<const AlgorithmInfo> algorithms) {
  std::vector<std::string_view> owners;
  for (const AlgorithmInfo& algorithm : algorithms) {
    for (const Profile& candidate : algorithm.profiles) {
      if (candidate.name == profile) owners.push_back(algorithm.name);
    }
  }
  return owners;
}

}  // namespace paceline::cc
