#include "dataplane/verbs/region_extents.h"

namespace paceline::verbs {

std::vector<attach::Extent> prepare_extents(std::uint64_t /*address*/, std::uint64_t length) {
  std::vector<attach::Extent> extents;
  if (length != 0) extents.push_back({length, 0, attach::ExtentKind::by_copy, 0});
  return extents;
}

void release_extents(std::uint64_t /*address*/, std::uint64_t /*length*/) {}

}  // namespace paceline::verbs
