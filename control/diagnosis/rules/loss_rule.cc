// Finds a link that loses packets whatever the load, where chance would not explain the losses.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/diagnosis/rules/link_members.h"
#include "control/diagnosis/rules/rules.h"

namespace paceline::diagnosis {

namespace {

struct Sums {
  double losses = 0;
  double packets = 0;
  // Packets are lost independently at one rate. This is the part of the log-likelihood of these
  // losses that depends on how the pairs are divided into groups.
  double likelihood() const { return losses <= 0 ? 0 : losses * std::log(losses / packets); }
  double rate() const { return packets <= 0 ? 0 : losses / packets; }
};

struct LossCandidate {
  std::uint32_t link = 0;
  LinkMembers::Direction direction = LinkMembers::Direction::both;
  double gain = 0;
  Sums inside;
};

class LossRule {
 public:
  LossRule(const Evidence& evidence, Explained& explained)
      : e_(evidence), explained_(explained), members_(evidence) {
    for (const PairEvidence& pair : e_.pairs) {
      Sums& sums = pairs_.emplace_back();
      if (explained.nics[pair.src] || explained.nics[pair.dst]) continue;
      for (const PairWindow& window : pair.windows) {
        // A timeout is not a sign of loss here: a sender whose packets wait in a long queue times
        // out too.
        sums.losses += window.losses - std::min(window.losses, window.timeouts);
        sums.packets += static_cast<double>(window.bytes) / e_.packet_bytes;
      }
      sums.packets = std::ceil(sums.packets) + sums.losses;
      all_.losses += sums.losses;
      all_.packets += sums.packets;
    }
  }

  void find(Verdicts& found) {
    if (all_.losses < kLeastLosses) return;
    std::vector<LossCandidate> candidates;
    for (std::uint32_t link = 0; link < e_.links.size(); ++link) {
      for (const LinkMembers::Direction direction :
           {LinkMembers::Direction::both, LinkMembers::Direction::forward,
            LinkMembers::Direction::backward}) {
        candidates.push_back(judge(link, direction));
      }
    }
    std::stable_sort(
        candidates.begin(), candidates.end(),
        [](const LossCandidate& a, const LossCandidate& b) { return a.gain > b.gain; });
    if (candidates.empty()) return;
    const LossCandidate& best = candidates.front();
    if (best.gain < kLeastGain || best.inside.losses < kExplains * all_.losses ||
        best.inside.rate() < kLeastRate || follows_load(best)) {
      return;
    }
    tell(best, candidates, found);
  }

 private:
  static constexpr double kLeastLosses = 2;
  static constexpr double kLeastGain = 6;   // e^6 times as likely as one rate of loss everywhere
  static constexpr double kAlike = 2;       // gains that differ by less are equal
  static constexpr double kExplains = 0.7;  // of all losses
  static constexpr double kLeastRate = 1e-5;

  LossCandidate judge(std::uint32_t link, LinkMembers::Direction direction) const {
    LossCandidate out{link, direction, 0, {}};
    for (const std::uint32_t p : members_.pairs(link, direction)) {
      out.inside.losses += pairs_[p].losses;
      out.inside.packets += pairs_[p].packets;
    }
    const Sums outside{all_.losses - out.inside.losses, all_.packets - out.inside.packets};
    // The link is not a candidate unless its pairs lose more than the others.
    if (out.inside.rate() > outside.rate()) {
      out.gain = out.inside.likelihood() + outside.likelihood() - all_.likelihood();
    }
    return out;
  }

  // Losses in windows with ECN marks come from full buffers.
  bool follows_load(const LossCandidate& candidate) const {
    double marked = 0, unmarked = 0, busy_marked = 0, busy_unmarked = 0;
    for (const std::uint32_t p : members_.pairs(candidate.link, candidate.direction)) {
      for (const PairWindow& window : e_.pairs[p].windows) {
        (window.marks > 0 ? marked : unmarked) += window.losses;
        (window.marks > 0 ? busy_marked : busy_unmarked) += static_cast<double>(window.bytes);
      }
    }
    if (busy_marked == 0 || busy_unmarked == 0) return false;
    return marked / busy_marked > 8 * (unmarked / busy_unmarked) && marked > unmarked;
  }

  void tell(const LossCandidate& best, const std::vector<LossCandidate>& candidates,
            Verdicts& found) {
    const LinkEvidence& link = e_.links[best.link];
    Verdict verdict;
    verdict.cause = Cause::lossy_link;
    verdict.culprit = link.name;
    for (const LossCandidate& other : candidates) {
      const std::string& name = e_.links[other.link].name;
      const auto named = std::find(verdict.or_else.begin(), verdict.or_else.end(), name);
      if (other.link == best.link || other.gain < best.gain - kAlike) continue;
      if (named == verdict.or_else.end()) verdict.or_else.push_back(name);
    }
    const std::size_t pairs = members_.pairs(best.link, best.direction).size();
    verdict.confidence = best.inside.losses / all_.losses * (1 - std::exp(-best.gain / 10)) /
                         static_cast<double>(1 + verdict.or_else.size());
    verdict.evidence = {
        fmt::format(
            "The {2} queue pairs that use {3} have {0:.0f} of {1:.0f} losses: {4:.2g} of their "
            "packets.",
            best.inside.losses, all_.losses, pairs, direction_text(link, best.direction),
            best.inside.rate()),
        fmt::format(
            "The other {} queue pairs lose {:.2g}.", e_.pairs.size() - pairs,
            Sums{all_.losses - best.inside.losses, all_.packets - best.inside.packets}.rate()),
        "The losses do not follow marks or load."};
    for (const std::uint32_t p : members_.pairs(best.link, LinkMembers::Direction::both)) {
      explained_.pairs[p] = true;
      if (!link.of_host) continue;
      for (const std::uint32_t nic : {e_.pairs[p].src, e_.pairs[p].dst}) {
        if (e_.nics[nic].name == link.first || e_.nics[nic].name == link.second)
          explained_.nics[nic] = true;
      }
    }
    found.push_back(std::move(verdict));
  }

  const Evidence& e_;
  Explained& explained_;
  LinkMembers members_;
  std::vector<Sums> pairs_;
  Sums all_;
};

}  // namespace

void find_lossy_link(const Evidence& evidence, Explained& explained, Verdicts& found) {
  LossRule(evidence, explained).find(found);
}

}  // namespace paceline::diagnosis
