// The queue pairs that use each link, from their source ports and the description of the fabric.
// The culprit is the link that the affected pairs share and the others avoid.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "control/diagnosis/evidence.h"

namespace paceline::diagnosis {

class LinkMembers {
 public:
  enum class Direction : std::uint8_t { forward, backward, both };

  enum class Of : std::uint8_t { data, round_trips };

  // Whether a pair uses the links of its data alone, or those of its acknowledgements too.
  explicit LinkMembers(const Evidence& evidence, Of of = Of::data);

  // Indices into Evidence::pairs, ascending, each once.
  const std::vector<std::uint32_t>& pairs(std::uint32_t link, Direction direction) const {
    return members_[link][static_cast<std::size_t>(direction)];
  }

 private:
  std::vector<std::array<std::vector<std::uint32_t>, 3>> members_;  // by link
};

// "host3 to leaf0", or the link's name for both directions.
std::string direction_text(const LinkEvidence& link, LinkMembers::Direction direction);

}  // namespace paceline::diagnosis
