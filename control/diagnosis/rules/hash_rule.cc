// Hash collisions: a link between switches that carries far more than those beside it.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "control/diagnosis/robust.h"
#include "control/diagnosis/rules/nic_bytes.h"
#include "control/diagnosis/rules/rules.h"

namespace paceline::diagnosis {

namespace {

const std::string& from_of(const Evidence& e, std::uint32_t directed) {
  const LinkEvidence& link = e.links[directed / 2];
  return directed % 2 == 0 ? link.first : link.second;
}
const std::string& to_of(const Evidence& e, std::uint32_t directed) {
  return from_of(e, directed ^ 1U);
}

// What queue pairs send by a directed link between switches.
struct Carried {
  double bytes = 0;
  std::size_t pairs = 0;
  std::vector<double> by_window;
};

// A switch's links to the tier that they all lead to. A fair hash gives each the same share.
struct Siblings {
  std::vector<std::uint32_t> links;  // directed
  double bytes = 0;
  std::size_t pairs = 0;
};

class HashRule {
 public:
  explicit HashRule(const Evidence& evidence) : e_(evidence) {
    for (std::uint32_t link = 0; link < e_.links.size(); ++link) {
      if (e_.links[link].of_host) continue;
      for (const std::uint32_t directed : {2 * link, 2 * link + 1}) {
        groups_[group_of(directed)].links.push_back(directed);
      }
    }
    for (const PairEvidence& pair : e_.pairs) add(pair);
  }

  void find(Verdicts& found) const {
    struct Best {
      double gain = 0;
      std::uint32_t link = 0;
      double share = 0;
      double full = 0;
    } best;
    for (const auto& [name, group] : groups_) {
      const auto fair = 1.0 / static_cast<double>(group.links.size());
      for (const std::uint32_t link : group.links) {
        const auto at = carried_.find(link);
        if (at == carried_.end() || group.links.size() < 2) continue;
        const double share = at->second.bytes / group.bytes;
        // Whether chance gives so many pairs, and whether they are those with the bytes.
        const double pairs = static_cast<double>(at->second.pairs);
        const double of_pairs = pairs / static_cast<double>(group.pairs);
        const double gain =
            of_pairs < fair ? 0 : static_cast<double>(group.pairs) * surprise(of_pairs, fair);
        const double full = fullness(link, at->second);
        if (share < kMuch * fair || at->second.pairs < kLeastPairs || full < kFull) continue;
        if (gain > best.gain) best = {gain, link, share, full};
      }
    }
    if (best.gain < kLeastGain) return;
    const Siblings& group = groups_.at(group_of(best.link));
    Verdict verdict;
    verdict.cause = Cause::hash_collision;
    verdict.culprit = e_.links[best.link / 2].name;
    verdict.confidence = 1 - std::exp(-best.gain / kLeastGain);
    verdict.evidence = {
        fmt::format("{} of {}'s {} links of that tier carries {:.0f} % of what they carry, in {} "
                    "queue pairs; a fair hash gives each {:.0f} %.",
                    verdict.culprit, from_of(e_, best.link), group.links.size(), 100 * best.share,
                    carried_.at(best.link).pairs, 100.0 / static_cast<double>(group.links.size())),
        fmt::format("It is {:.0f} % full in the busiest fifth of the time.", 100 * best.full)};
    found.push_back(std::move(verdict));
  }

 private:
  static constexpr double kMuch = 1.6;     // times the fair share
  static constexpr double kLeastGain = 9;  // e^9 times as likely as with a fair hash
  static constexpr double kFull = 0.25;
  static constexpr std::size_t kLeastPairs = 6;

  // The switch, and the tier that the link leads to.
  std::string group_of(std::uint32_t directed) const {
    const std::string& to = to_of(e_, directed);
    return from_of(e_, directed) + " " + to.substr(0, to.find_first_of("0123456789"));
  }

  void add(const PairEvidence& pair) {
    const double bytes = bytes_of(pair);
    for (const std::uint32_t directed : pair.way) {
      // Downwards there is no choice of link.
      if (e_.links[directed / 2].of_host || directed % 2 != 0) continue;
      Siblings& group = groups_[group_of(directed)];
      group.bytes += bytes;
      ++group.pairs;
      Carried& carried = carried_[directed];
      carried.bytes += bytes;
      ++carried.pairs;
      carried.by_window.resize(e_.window_ends.size());
      for (std::size_t w = 0; w < pair.windows.size(); ++w) {
        carried.by_window[w] += static_cast<double>(pair.windows[w].bytes);
      }
    }
  }

  // The divergence of this share from the fair one, in nats for each pair.
  static double surprise(double share, double fair) {
    double out = 0;
    if (share > 0) out += share * std::log(share / fair);
    if (share < 1) out += (1 - share) * std::log((1 - share) / (1 - fair));
    return out;
  }

  double fullness(std::uint32_t link, const Carried& carried) const {
    std::vector<double> shares;
    for (std::size_t w = 0; w < carried.by_window.size(); ++w) {
      const double able = window_us(e_, w) * e_.links[link / 2].rate_bps / 8e6;
      if (carried.by_window[w] > 0 && able > 0) shares.push_back(carried.by_window[w] / able);
    }
    return quantile(shares, 0.8);
  }

  const Evidence& e_;
  std::map<std::string, Siblings> groups_;
  std::map<std::uint32_t, Carried> carried_;
};

}  // namespace

void find_hash_collision(const Evidence& evidence, Verdicts& found) {
  HashRule(evidence).find(found);
}

}  // namespace paceline::diagnosis
