// Finds a link between switches that lengthens round trips steadily, without a queue.
#include <fmt/format.h>

#include <algorithm>

#include "control/diagnosis/link_members.h"
#include "control/diagnosis/robust.h"
#include "control/diagnosis/rules.h"

namespace paceline::diagnosis {

namespace {

// By how much the round trips of a link's pairs exceed those of the others, and when.
struct DelayCandidate {
  std::uint32_t link = 0;
  double more_us = 0;  // the median over the windows in which the link stands out
  std::size_t windows = 0;
  std::size_t of = 0;  // all windows from the first to the last of these
  double weight = 0;
  bool steady = false;  // not caused by a queue
};

class DelayRule {
 public:
  DelayRule(const Evidence& evidence, const Explained& explained)
      : e_(evidence), explained_(explained), members_(evidence) {}

  void find(Explained& explained, Verdicts& found) const {
    std::vector<DelayCandidate> candidates;
    for (std::uint32_t link = 0; link < e_.links.size(); ++link) {
      if (e_.links[link].of_host || members_.pairs(link, LinkMembers::Direction::both).empty())
        continue;
      const DelayCandidate one = judge(link);
      if (one.windows >= kLeastWindows && one.steady &&
          static_cast<double>(one.windows) >= kPersistent * static_cast<double>(one.of)) {
        candidates.push_back(one);
      }
    }
    if (candidates.empty()) return;
    std::stable_sort(
        candidates.begin(), candidates.end(),
        [](const DelayCandidate& a, const DelayCandidate& b) { return a.weight > b.weight; });
    const DelayCandidate& best = candidates.front();
    Verdict verdict;
    verdict.cause = Cause::bad_path;
    verdict.culprit = e_.links[best.link].name;
    for (const DelayCandidate& other : candidates) {
      if (other.link == best.link || other.weight < kAlike * best.weight) continue;
      if (members_.pairs(other.link, LinkMembers::Direction::both) ==
          members_.pairs(best.link, LinkMembers::Direction::both))
        verdict.or_else.push_back(e_.links[other.link].name);
    }
    const std::size_t pairs = members_.pairs(best.link, LinkMembers::Direction::both).size();
    verdict.confidence = static_cast<double>(best.windows) / static_cast<double>(best.of) /
                         static_cast<double>(1 + verdict.or_else.size());
    verdict.evidence = {
        fmt::format("The round trips of the {} queue pairs that use {} are "
                    "{:.1f} us longer than the others', in {} of {} windows.",
                    pairs, verdict.culprit, best.more_us, best.windows, best.of),
        "Their packets are not marked more often than the others': the cause is no queue."};
    for (const std::uint32_t p : members_.pairs(best.link, LinkMembers::Direction::both)) {
      explained.pairs[p] = true;
    }
    found.push_back(std::move(verdict));
  }

 private:
  static constexpr double kLeastUs = 4;
  static constexpr double kSpreads = 3;
  static constexpr double kLow = 0.2;  // this share of the link's pairs need not stand out
  static constexpr double kAlike = 0.9;
  static constexpr double kPersistent = 0.75;
  static constexpr std::size_t kLeastWindows = 4;
  static constexpr double kSteady = 0.75;
  static constexpr std::size_t kLeastPairs = 3;

  bool counts(const PairEvidence& pair, std::uint32_t number, std::size_t window) const {
    return pair.windows[window].rtt_ns != 0 && !pair.way.empty() && !explained_.pairs[number] &&
           !explained_.nics[pair.src] && !explained_.nics[pair.dst];
  }

  static double excess_us(const PairEvidence& pair, std::size_t window) {
    return (static_cast<double>(pair.windows[window].rtt_ns) - pair.base_rtt_ns) / 1e3;
  }

  // Whether nearly all measurements of the link's pairs, in the windows `first` to `last`, are near
  // their median. A queue grows and drains; a longer path does not change.
  bool steady(std::uint32_t link, std::size_t first, std::size_t last) const {
    std::vector<double> all;
    std::size_t pairs = 0;
    for (const std::uint32_t p : members_.pairs(link, LinkMembers::Direction::both)) {
      const std::size_t before = all.size();
      for (std::size_t w = first; w <= last; ++w) {
        if (counts(e_.pairs[p], p, w)) all.push_back(excess_us(e_.pairs[p], w));
      }
      if (all.size() > before) ++pairs;
    }
    const double middle = median(all);
    return pairs >= kLeastPairs && quantile(all, kLow) >= kSteady * middle;
  }

  DelayCandidate judge(std::uint32_t link) const {
    DelayCandidate out{link, 0, 0, 0, 0, false};
    std::vector<bool> inside(e_.pairs.size());
    for (const std::uint32_t p : members_.pairs(link, LinkMembers::Direction::both))
      inside[p] = true;
    std::vector<double> more;
    std::size_t first = 0;
    for (std::size_t w = 0; w < e_.window_ends.size(); ++w) {
      std::vector<double> with, without;
      double marks_with = 0, marks_without = 0, bytes_with = 0, bytes_without = 0;
      for (std::uint32_t p = 0; p < e_.pairs.size(); ++p) {
        const PairEvidence& pair = e_.pairs[p];
        if (!counts(pair, p, w)) continue;
        const PairWindow& window = pair.windows[w];
        (inside[p] ? with : without).push_back(excess_us(pair, w));
        (inside[p] ? marks_with : marks_without) += window.marks;
        (inside[p] ? bytes_with : bytes_without) += static_cast<double>(window.bytes);
      }
      if (with.empty() || without.size() < 3) continue;
      const double low = quantile(with, kLow);
      const Usual usual = usual_of(without);
      const double least = std::max(kLeastUs, kSpreads * usual.spread);
      const double rate_with = marks_with / bytes_with;
      const double rate_without = bytes_without == 0 ? 0 : marks_without / bytes_without;
      if (low - usual.middle < least || rate_with > 1.5 * rate_without + 1e-7) continue;
      if (out.windows == 0) first = w;
      ++out.windows;
      out.of = w - first + 1;
      more.push_back(low - usual.middle);
      out.weight += more.back();
    }
    out.more_us = median(more);
    out.steady = out.windows > 0 && steady(link, first, first + out.of - 1);
    return out;
  }

  const Evidence& e_;
  const Explained& explained_;
  LinkMembers members_;
};

}  // namespace

void find_bad_path(const Evidence& evidence, Explained& explained, Verdicts& found) {
  DelayRule(evidence, explained).find(explained, found);
}

}  // namespace paceline::diagnosis
