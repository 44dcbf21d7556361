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
    links_[id] = {of.loss, of.error_rate, of.duplicate, of.reorder,
                  Random(spec.seed, kImpairmentStream + id)};
  }
}

Impairments::Drawn Impairments::draw(std::uint32_t link) {
  PerLink& at = links_[link];
  Drawn out;
  if (at.loss > 0) out.lost = at.random.uniform() < at.loss;
  if (at.error_rate > 0) out.corrupt = at.random.uniform() < at.error_rate;
  if (at.duplicate > 0) out.duplicate = at.random.uniform() < at.duplicate;
  if (at.reorder > 0 && at.random.uniform() < at.reorder) {
    out.late = Picos{1 + static_cast<std::int64_t>(at.random.below(reorder_delay_))};
  }
  return out;
}

void Impairments::change(std::uint32_t link, LinkAction action, double probability) {
  PerLink& at = links_[link];
  if (action == LinkAction::loss) at.loss = probability;
  if (action == LinkAction::corrupt) at.error_rate = probability;
  if (action == LinkAction::duplicate) at.duplicate = probability;
  if (action == LinkAction::reorder) at.reorder = probability;
}

void Impairments::mark(Link& link) const {
  const PerLink& at = links_[link.id];
  const bool draws = at.loss > 0 || at.error_rate > 0 || at.duplicate > 0;
  link.impaired = static_cast<std::uint8_t>(
      (link.impaired & (Link::kVaries | Link::kReorders | Link::kHarmless)) |
      (draws ? Link::kDraws : 0) | (at.reorder > 0 ? Link::kReorders : 0));
}

}  // namespace paceline::fabric
