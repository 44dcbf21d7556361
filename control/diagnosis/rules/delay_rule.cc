// Finds a link between switches that lengthens round trips without a queue.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "control/diagnosis/robust.h"
#include "control/diagnosis/rules/link_members.h"
#include "control/diagnosis/rules/rules.h"

namespace paceline::diagnosis {

namespace {

// What one link adds to the shortest round trips of a part of the time.
struct DelayCandidate {
  std::uint32_t link = 0;
  PartOfTime part;
  double more_us = 0;         // each time that a packet or its acknowledgement passes the link
  std::size_t affected = 0;   // pairs by this link whose round trips are long
  std::size_t members = 0;    // pairs by this link
  std::size_t elsewhere = 0;  // other pairs whose round trips are long
  double weight() const { return more_us * (part.last - part.first + 1); }
};

// The shortest round trip of a part of the time, over that of an empty fabric. A queue empties now
// and then, so this shows what a path adds.
struct PairFloor {
  double excess_us = 0;     // without the queue at its receiver
  double least_us = 0;      // with it
  double most_us = 0;       // the same of the longest round trip of a window
  std::size_t windows = 0;  // with a measurement
};

class DelayRule {
 public:
  DelayRule(const Evidence& evidence, const Explained& explained)
      : e_(evidence), explained_(explained), members_(evidence, LinkMembers::Of::round_trips) {}

  void find(Verdicts& found) const {
    const std::vector<DelayCandidate> candidates = all_candidates();
    if (candidates.empty()) return;
    const DelayCandidate& best = candidates.front();
    Verdict verdict;
    verdict.cause = Cause::bad_path;
    verdict.culprit = e_.links[best.link].name;
    for (const DelayCandidate& other : candidates) {
      if (other.link == best.link || other.affected < best.affected) continue;
      if (other.more_us >= kAlike * best.more_us)
        verdict.or_else.push_back(e_.links[other.link].name);
    }
    verdict.confidence = static_cast<double>(best.affected) /
                         static_cast<double>(best.members + best.elsewhere) /
                         static_cast<double>(1 + verdict.or_else.size());
    verdict.evidence = {
        fmt::format("The shortest round trips of {} of the {} queue pairs that use {}, for data or "
                    "acknowledgements, are {:.1f} us too long from slice {} to slice {} of {} of "
                    "the time; so are those of {} others.",
                    best.affected, best.members, verdict.culprit, best.more_us, best.part.first + 1,
                    best.part.last + 1, Evidence::kSlices, best.elsewhere),
        "Their packets are not marked more often than the others': the cause is not a queue."};
    found.push_back(std::move(verdict));
  }

 private:
  static constexpr double kLeastUs = 4;
  static constexpr double kLeastPackets = 8;  // of the link's rate: a slow NIC adds fewer
  static constexpr double kSpreads = 3;
  static constexpr double kLow = 0.1;  // this share of the link's pairs need not stand out
  static constexpr double kAlike = 0.9;
  static constexpr double kSteady = 0.8;
  static constexpr double kExplains = 0.7;  // of the pairs with long round trips
  static constexpr double kExplainsAlike = 0.5;
  static constexpr std::size_t kLeastWindows = 6;
  // Slices of the time. The excess lasted for most of it; a queue at the beginning does not.
  static constexpr std::uint32_t kLeastSlices = 3;
  static constexpr std::uint32_t kMostSlices = 5;
  static constexpr std::size_t kLeastOthers = 3;
  static constexpr std::ptrdiff_t kLeastNics = 3;
  static constexpr double kMostElsewhere = 0.2;
  static constexpr double kNoChance = 14;        // e^-14: one in a million
  static constexpr std::size_t kLeastPeers = 8;  // pairs to a NIC, of which
  static constexpr double kQuick = 0.25;         // this share is thought to meet no bad path

  // At most one per link, for the part of the time in which it shows most. The best explanation of
  // all long round trips comes first.
  std::vector<DelayCandidate> all_candidates() const {
    std::vector<std::optional<DelayCandidate>> best(e_.links.size());
    for (const PartOfTime& part : e_.parts) {
      const std::uint32_t slices = part.last - part.first + 1;
      if (slices < kLeastSlices || (part.last + 1 < Evidence::kSlices && slices < kMostSlices))
        continue;
      const std::vector<PairFloor> floors = floors_in(part);
      for (std::uint32_t link = 0; link < e_.links.size(); ++link) {
        if (e_.links[link].of_host) continue;
        const auto one = judge(link, part, floors);
        if (one && (!best[link] || one->weight() > best[link]->weight())) best[link] = one;
      }
    }
    std::vector<DelayCandidate> out;
    for (const auto& one : best) {
      if (one) out.push_back(*one);
    }
    std::stable_sort(out.begin(), out.end(), [](const DelayCandidate& a, const DelayCandidate& b) {
      if (a.affected != b.affected) return a.affected > b.affected;
      return a.weight() > b.weight();
    });
    return out;
  }

  std::vector<PairFloor> floors_in(const PartOfTime& part) const {
    std::vector<PairFloor> out(e_.pairs.size());
    for (std::uint32_t p = 0; p < e_.pairs.size(); ++p) {
      const PairEvidence& pair = e_.pairs[p];
      if (pair.way.empty() || explained_.pairs[p] || explained_.nics[pair.src] ||
          explained_.nics[pair.dst])
        continue;
      std::uint32_t least = 0, most = 0;
      for (std::size_t w = 0; w < pair.windows.size(); ++w) {
        const std::uint32_t rtt_ns = pair.windows[w].rtt_ns;
        if (rtt_ns == 0 || !is_in(e_, w, part)) continue;
        if (++out[p].windows == 1 || rtt_ns < least) least = rtt_ns;
        most = std::max(most, rtt_ns);
      }
      if (out[p].windows == 0) continue;
      out[p].most_us = (static_cast<double>(most) - pair.base_rtt_ns) / 1e3;
      out[p].least_us = (static_cast<double>(least) - pair.base_rtt_ns) / 1e3;
    }
    take_queues_off(out);
    return out;
  }

  // Pairs to the same NIC wait in the same last queue: the wait of the quickest quarter of them is
  // subtracted from all of them.
  void take_queues_off(std::vector<PairFloor>& floors) const {
    std::vector<std::vector<double>> to(e_.nics.size());
    for (std::size_t p = 0; p < floors.size(); ++p) {
      if (floors[p].windows > 0) to[e_.pairs[p].dst].push_back(floors[p].least_us);
    }
    std::vector<double> queue(e_.nics.size(), 0);
    for (std::size_t nic = 0; nic < to.size(); ++nic) {
      if (to[nic].size() >= kLeastPeers) queue[nic] = std::max(0.0, quantile(to[nic], kQuick));
    }
    for (std::size_t p = 0; p < floors.size(); ++p) {
      floors[p].excess_us = floors[p].least_us - queue[e_.pairs[p].dst];
    }
  }

  // Marks for each byte that the pairs sent in this part.
  double marks_of(const std::vector<bool>& inside, bool which, const PartOfTime& part) const {
    double marks = 0, bytes = 0;
    for (std::size_t p = 0; p < e_.pairs.size(); ++p) {
      if (inside[p] != which) continue;
      for (std::size_t w = 0; w < e_.pairs[p].windows.size(); ++w) {
        if (!is_in(e_, w, part)) continue;
        marks += e_.pairs[p].windows[w].marks;
        bytes += static_cast<double>(e_.pairs[p].windows[w].bytes);
      }
    }
    return bytes == 0 ? 0 : marks / bytes;
  }

  // How often a packet of the pair and its acknowledgement pass the link together.
  static double passes(const PairEvidence& pair, std::uint32_t link) {
    const auto by_link = [&](std::uint32_t directed) { return directed / 2 == link; };
    return static_cast<double>(std::count_if(pair.way.begin(), pair.way.end(), by_link) +
                               std::count_if(pair.ack_way.begin(), pair.ack_way.end(), by_link));
  }

  // Several pairs that one NIC sends or receives: its delay, as likely as the path's.
  bool share_a_nic(const std::vector<std::uint32_t>& pairs) const {
    if (pairs.size() < 2) return false;
    const PairEvidence& first = e_.pairs[pairs.front()];
    const auto all_have = [&](std::uint32_t nic) {
      return std::all_of(pairs.begin(), pairs.end(), [&](std::uint32_t p) {
        return e_.pairs[p].src == nic || e_.pairs[p].dst == nic;
      });
    };
    return all_have(first.src) || all_have(first.dst);
  }

  // Queues lengthen round trips here and there: `elsewhere` of `others`. Tests whether queues would
  // hardly ever lengthen as many of the pairs by this link, which go to several NICs.
  bool is_no_chance(const DelayCandidate& one, std::size_t others,
                    const std::vector<std::uint32_t>& measured) const {
    std::vector<std::uint32_t> to;
    for (const std::uint32_t p : measured) to.push_back(e_.pairs[p].dst);
    std::sort(to.begin(), to.end());
    const auto nics = std::unique(to.begin(), to.end()) - to.begin();
    const double share = static_cast<double>(one.elsewhere + 1) / static_cast<double>(others + 1);
    return nics >= kLeastNics && share <= kMostElsewhere &&
           static_cast<double>(one.affected) >= (1 - kLow) * static_cast<double>(one.members) &&
           -std::log(share) * static_cast<double>(one.affected) >= kNoChance;
  }

  std::optional<DelayCandidate> judge(std::uint32_t link, const PartOfTime& part,
                                      const std::vector<PairFloor>& floors) const {
    std::vector<bool> inside(e_.pairs.size());
    std::vector<double> with, without;
    std::vector<std::uint32_t> measured;  // by this link
    std::size_t windows = 0;
    const auto& members = members_.pairs(link, LinkMembers::Direction::both);
    for (const std::uint32_t p : members) {
      inside[p] = true;
      if (floors[p].windows == 0) continue;
      windows += floors[p].windows;
      with.push_back(floors[p].excess_us / passes(e_.pairs[p], link));
      measured.push_back(p);
    }
    for (std::size_t p = 0; p < floors.size(); ++p) {
      if (!inside[p] && floors[p].windows > 0) without.push_back(floors[p].excess_us);
    }
    if (windows < kLeastWindows || without.size() < kLeastOthers || share_a_nic(measured))
      return {};
    // Queues change; one or two pairs alone must show that their delay does not.
    const auto changes = [&](std::uint32_t p) {
      return floors[p].least_us < kSteady * floors[p].most_us;
    };
    if (measured.size() <= 2 && (2 * measured.size() <= members.size() ||
                                 std::any_of(measured.begin(), measured.end(), changes)))
      return {};
    DelayCandidate out{link, part, quantile(with, kLow), 0, with.size(), 0};
    const Usual usual = usual_of(without);
    const double packets_us = kLeastPackets * 8e6 * e_.packet_bytes / e_.links[link].rate_bps;
    if (out.more_us - usual.middle < std::max({kLeastUs, packets_us, kSpreads * usual.spread}))
      return {};
    const double is_long = usual.middle + (out.more_us - usual.middle) / 2;
    const auto longer = [&](double us) { return us >= is_long; };
    out.affected = static_cast<std::size_t>(std::count_if(with.begin(), with.end(), longer));
    out.elsewhere = static_cast<std::size_t>(std::count_if(without.begin(), without.end(), longer));
    // A path adds the same to all; queues differ.
    const bool alike = with.size() >= 3 && kAlike * median(with) <= out.more_us;
    if (static_cast<double>(out.affected) < (alike ? kExplainsAlike : kExplains) *
                                                static_cast<double>(out.affected + out.elsewhere) &&
        !is_no_chance(out, without.size(), measured))
      return {};
    if (marks_of(inside, true, part) > 1.5 * marks_of(inside, false, part) + 1e-7) return {};
    return out;
  }

  const Evidence& e_;
  const Explained& explained_;
  LinkMembers members_;
};

}  // namespace

void find_bad_path(const Evidence& evidence, const Explained& explained, Verdicts& found) {
  DelayRule(evidence, explained).find(found);
}

}  // namespace paceline::diagnosis
