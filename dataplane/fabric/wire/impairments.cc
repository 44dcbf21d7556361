#include "dataplane/fabric/wire/impairments.h"

namespace paceline::fabric {

namespace {
constexpr std::uint64_t kImpairmentStream = 0xFAB2'0000'0000'0000;  // of the run's seed
}  // namespace

Impairments::Impairments(const FabricSpec& spec)
    : links_(2 * spec.links.size()),
      reorder_delay_(static_cast<std::uint64_t>(spec.reorder_delay.count)) {
  for (std::uint32_t id = 0; id < links_.size(); ++id) {
    const LinkSpec& of = spec.links[id / 2];
    links_[id] = {.loss = of.loss,
                  .error_rate = of.error_rate,
                  .duplicate = of.duplicate,
                  .reorder = of.reorder,
                  .random = Random(spec.seed, kImpairmentStream + id)};
  }
}

Impairments::Drawn Impairments::draw(std::uint32_t link) {
  PerLink& at = links_[link];
  Drawn out;
  out.traffic_class = at.traffic_class;
  if (at.loss > 0) out.lost = at.random.uniform() < at.loss;
  if (at.error_rate > 0) out.corrupt = at.random.uniform() < at.error_rate;
  if (at.duplicate > 0) out.duplicate = at.random.uniform() < at.duplicate;
  if (at.reorder > 0 && at.random.uniform() < at.reorder) {
    out.late = Picos{1 + static_cast<std::int64_t>(at.random.below(reorder_delay_))};
  }
  return out;
}

void Impairments::change(std::uint32_t link, const LinkEvent& event) {
  PerLink& at = links_[link];
  if (event.action == LinkAction::loss) {
    at.loss = event.probability;
    if (event.seed != 0) at.random = Random(event.seed, kImpairmentStream + link);
  }
  if (event.action == LinkAction::corrupt) at.error_rate = event.probability;
  if (event.action == LinkAction::duplicate) at.duplicate = event.probability;
  if (event.action == LinkAction::reorder) at.reorder = event.probability;
  if (event.action == LinkAction::reclass) at.traffic_class = event.traffic_class;
}

void Impairments::mark(Link& link) const {
  const PerLink& at = links_[link.id];
  const bool draws =
      at.loss > 0 || at.error_rate > 0 || at.duplicate > 0 || at.traffic_class != kTrafficClasses;
  link.impaired = static_cast<std::uint8_t>(
      (link.impaired & (Link::kVaries | Link::kReorders | Link::kHarmless)) |
      (draws ? Link::kDraws : 0) | (at.reorder > 0 ? Link::kReorders : 0));
}

}  // namespace paceline::fabric
