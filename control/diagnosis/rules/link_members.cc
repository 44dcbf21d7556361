#include "control/diagnosis/rules/link_members.h"

#include <fmt/format.h>

namespace paceline::diagnosis {

LinkMembers::LinkMembers(const Evidence& evidence, Of of) : members_(evidence.links.size()) {
  const auto add = [](std::vector<std::uint32_t>& to, std::uint32_t pair) {
    if (to.empty() || to.back() != pair) to.push_back(pair);
  };
  for (std::uint32_t p = 0; p < evidence.pairs.size(); ++p) {
    const auto add_way = [&](const std::vector<std::uint32_t>& way) {
      for (const std::uint32_t directed : way) {
        add(members_[directed / 2][directed % 2], p);
        add(members_[directed / 2][static_cast<std::size_t>(Direction::both)], p);
      }
    };
    add_way(evidence.pairs[p].way);
    if (of == Of::round_trips) add_way(evidence.pairs[p].ack_way);
  }
}

std::string direction_text(const LinkEvidence& link, LinkMembers::Direction direction) {
  switch (direction) {
    case LinkMembers::Direction::forward:
      return fmt::format("{} to {}", link.first, link.second);
    case LinkMembers::Direction::backward:
      return fmt::format("{} to {}", link.second, link.first);
    case LinkMembers::Direction::both:
      break;
  }
  return fmt::format("{}, both ways", link.name);
}

}  // namespace paceline::diagnosis
