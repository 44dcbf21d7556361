// Times for which the classes of each directed link were held back, by a pause or for lack of
// credits. Callers pass the classes that are held now (Link::paused) as `held`.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/base/units.h"

namespace paceline::fabric {

class PauseTimes {
 public:
  explicit PauseTimes(std::size_t links) : links_(links) {}

  // `at` may be in the future: a class waits for credits only once its wire is free.
  void begin(std::uint32_t link, std::size_t traffic_class, Picos at) {
    links_[link].since[traffic_class] = at;
  }
  // Both return the time that they add to the sum of the link.
  Picos end(std::uint32_t link, std::size_t traffic_class, Picos now) {
    const Picos span = lasted(links_[link], traffic_class, now);
    links_[link].sum += span;
    return span;
  }
  Picos end_all(std::uint32_t link, unsigned held, Picos now) {
    const Picos span = in_force(link, held, now);
    links_[link].sum += span;
    return span;
  }
  // Counts the pauses in force up to `now`; they continue.
  Picos settle(std::uint32_t link, unsigned held, Picos now) {
    const Picos span = end_all(link, held, now);
    for (unsigned bits = held; bits != 0; bits &= bits - 1) {
      Picos& since = links_[link].since[static_cast<std::size_t>(std::countr_zero(bits))];
      since = later(since, now);
    }
    return span;
  }

  // How long the pauses in force have lasted until `now`, summed over all classes.
  Picos in_force(std::uint32_t link, unsigned held, Picos now) const {
    Picos sum{0};
    for (unsigned bits = held; bits != 0; bits &= bits - 1) {
      sum += lasted(links_[link], static_cast<std::size_t>(std::countr_zero(bits)), now);
    }
    return sum;
  }
  // Total of the pauses that are over or settled. Throws std::out_of_range.
  Picos sum(std::uint32_t link) const { return links_.at(link).sum; }

  // Replaces the state of a link by what `other` has for it.
  void take_over(const PauseTimes& other, std::uint32_t link) { links_[link] = other.links_[link]; }

 private:
  struct PerLink {
    std::array<Picos, kTrafficClasses> since{};
    Picos sum{0};
  };
  static Picos lasted(const PerLink& link, std::size_t traffic_class, Picos now) {
    return later(now - link.since[traffic_class], Picos{0});
  }

  std::vector<PerLink> links_;
};

}  // namespace paceline::fabric
