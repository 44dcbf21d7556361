#include "dataplane/fabric/wire/impairments.h"

#include <catch2/catch.hpp>

namespace paceline::fabric {
namespace {

FabricSpec impaired_links(std::size_t count, LinkSpec of = {}) {
  FabricSpec spec;
  spec.links.assign(count, of);
  return spec;
}

TEST_CASE("impairments: a sound link draws nothing, and its generator stands still") {
  Impairments impairments(impaired_links(1));
  Link link;
  link.id = 1;
  link.impaired = Link::kCredits;
  impairments.mark(link);
  CHECK(link.impaired == Link::kCredits);
  for (int i = 0; i < 100; ++i) CHECK_FALSE(impairments.draw(0).lost);
  impairments.change(0, {.action = LinkAction::loss, .probability = 0.5});
  Impairments fresh(impaired_links(1));
  fresh.change(0, {.action = LinkAction::loss, .probability = 0.5});
  for (int i = 0; i < 100; ++i) CHECK(impairments.draw(0).lost == fresh.draw(0).lost);
}

TEST_CASE("impairments: each happens as often as its probability says, and lateness is bounded") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(1, 6));
  INFO("seed " << seed);
  FabricSpec spec =
      impaired_links(1, {.error_rate = 0.2, .loss = 0.1, .duplicate = 0.3, .reorder = 0.4});
  spec.seed = seed;
  spec.reorder_delay = Picos{50};
  Impairments impairments(spec);
  constexpr int kDraws = 20'000;
  int lost = 0;
  int corrupt = 0;
  int twice = 0;
  int late = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Impairments::Drawn drawn = impairments.draw(0);
    lost += drawn.lost ? 1 : 0;
    corrupt += drawn.corrupt ? 1 : 0;
    twice += drawn.duplicate ? 1 : 0;
    late += drawn.late.count != 0 ? 1 : 0;
    CHECK(drawn.late >= Picos{0});
    CHECK(drawn.late <= Picos{50});
  }
  // Five standard deviations of the widest, 0.4: 347 draws.
  CHECK(lost == Approx(0.1 * kDraws).margin(347));
  CHECK(corrupt == Approx(0.2 * kDraws).margin(347));
  CHECK(twice == Approx(0.3 * kDraws).margin(347));
  CHECK(late == Approx(0.4 * kDraws).margin(347));
}

TEST_CASE("impairments: losses with a seed of their own do not depend on the run's seed") {
  FabricSpec spec = impaired_links(2);
  spec.seed = 1;
  Impairments one(spec);
  spec.seed = 2;
  Impairments other(spec);
  const auto differ = [&](std::uint64_t seed) {
    for (Impairments* each : {&one, &other}) {
      each->change(0, {.action = LinkAction::loss, .probability = 0.5, .seed = seed});
    }
    int different = 0;
    for (int i = 0; i < 200; ++i) different += one.draw(0).lost != other.draw(0).lost ? 1 : 0;
    return different;
  };
  CHECK(differ(7) == 0);
  one.change(1, {.action = LinkAction::loss, .probability = 0.5});
  other.change(1, {.action = LinkAction::loss, .probability = 0.5});
  int different = 0;
  for (int i = 0; i < 200; ++i) different += one.draw(1).lost != other.draw(1).lost ? 1 : 0;
  CHECK(different > 50);
}

TEST_CASE("impairments: what one link draws does not depend on another's traffic") {
  FabricSpec spec = impaired_links(2, {.loss = 0.5});
  Impairments alone(spec);
  Impairments beside(spec);
  for (int i = 0; i < 200; ++i) {
    (void)beside.draw(0);
    (void)beside.draw(2);
    CHECK(alone.draw(3).lost == beside.draw(3).lost);
  }
}

TEST_CASE("impairments: a link that has reordered stays one that may") {
  FabricSpec spec = impaired_links(1, {.reorder = 0.5});
  Impairments impairments(spec);
  Link link;
  impairments.mark(link);
  CHECK(link.impaired == Link::kReorders);
  impairments.change(0, {.action = LinkAction::reorder, .probability = 0});
  impairments.change(0, {.action = LinkAction::corrupt, .probability = 0.1});
  impairments.mark(link);
  CHECK(link.impaired == (Link::kReorders | Link::kDraws));
  impairments.change(0, {.action = LinkAction::corrupt, .probability = 0});
  impairments.mark(link);
  CHECK(link.impaired == Link::kReorders);
}

}  // namespace
}  // namespace paceline::fabric
