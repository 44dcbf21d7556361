// Rules about NICs that pause their switches, and NICs whose data travels in another class.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "control/diagnosis/nic_floors.h"
#include "control/diagnosis/robust.h"
#include "control/diagnosis/rules.h"

namespace paceline::diagnosis {

namespace {

// What a NIC did from the first to the last window in which it told its switch to pause.
struct Pauses {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t windows = 0;  // with pauses
  double paused_us = 0;
  double us = 0;         // of the windows between them
  double inside_us = 0;  // with pauses, of these
  double share() const { return us <= 0 ? 0 : inside_us / us; }
};

Pauses pauses_of(const Evidence& e, const NicEvidence& nic) {
  Pauses out;
  for (std::size_t w = 0; w < nic.windows.size(); ++w) {
    if (nic.windows[w].pausing_us <= 0) continue;
    if (out.windows++ == 0) out.first = w;
    out.last = w;
    out.paused_us += nic.windows[w].pausing_us;
  }
  // The first and the last window may have been without pauses for a part.
  const std::size_t edge = out.last - out.first >= 2 ? 1 : 0;
  for (std::size_t w = out.first + edge; out.windows != 0 && w + edge <= out.last; ++w) {
    out.us += window_us(e, w);
    out.inside_us += nic.windows[w].pausing_us;
  }
  return out;
}

// How slowly a NIC's messages go, over the median NIC, in the parts of the time that lie in these
// windows.
double sent_pace(const Evidence& e, std::uint32_t nic, const Pauses& during) {
  const Picos begin = during.first == 0 ? Picos{0} : e.window_ends[during.first - 1];
  std::vector<double> ratios;
  for (std::size_t part = 0; part < e.parts.size(); ++part) {
    if (e.until / Evidence::kSlices * e.parts[part].first < begin) continue;
    std::vector<double> all;
    for (const NicEvidence& one : e.nics) {
      if (one.paces[part].sent > 0) all.push_back(one.paces[part].sent);
    }
    const double middle = median(all);
    const double own = e.nics[nic].paces[part].sent;
    if (own > 0 && middle > 0) ratios.push_back(own / middle);
  }
  return median(ratios);
}

// Whether a NIC that takes data slowly sends slowly, too.
bool sends_slowly(const Evidence& e, std::uint32_t nic, const Pauses& during) {
  constexpr double kPackets = 0.25;  // its shortest round trips are longer by so many
  constexpr double kMuch = 1.15;
  constexpr double kUnsteady = 1;  // where queues hide a packet
  const Picos begin = during.first == 0 ? Picos{0} : e.window_ends[during.first - 1];
  const Picos slice = e.until / Evidence::kSlices;
  PartOfTime part{0, Evidence::kSlices - 1};
  while (part.first + 2 < Evidence::kSlices && slice * part.first < begin) ++part.first;
  const NicFloors floors(e, part);
  std::vector<double> all;
  for (const auto& one : floors.sent()) {
    if (one) all.push_back(*one);
  }
  const std::optional<double>& floor = floors.sent()[nic];
  const double pace = sent_pace(e, nic, during);
  const bool longer = floor.value_or(0) >= kPackets;
  if (pace == 0) return longer;
  return pace >= kMuch && (longer || !floor || usual_of(all).spread > kUnsteady);
}

}  // namespace

void find_wrong_dscp(const Evidence& e, Explained& explained, Verdicts& found) {
  constexpr double kMostNics = 0.5;  // more of them: it is how the fabric is configured
  std::vector<std::uint32_t> odd;
  for (std::uint32_t n = 0; n < e.nics.size(); ++n) {
    const auto& windows = e.nics[n].windows;
    if (std::any_of(windows.begin(), windows.end(),
                    [](const NicWindow& w) { return w.reclassed_packets != 0; })) {
      odd.push_back(n);
    }
  }
  if (static_cast<double>(odd.size()) > kMostNics * static_cast<double>(e.nics.size())) return;
  for (const std::uint32_t n : odd) {
    std::uint64_t packets = 0;
    for (const NicWindow& window : e.nics[n].windows) packets += window.reclassed_packets;
    Verdict verdict;
    verdict.cause = Cause::wrong_dscp;
    verdict.culprit = e.nics[n].name;
    verdict.confidence = 1;
    verdict.evidence = {fmt::format(
        "{} sent {} packets of data in another traffic class than its peers, by its counters for "
        "each class.",
        verdict.culprit, packets)};
    explained.nics[n] = true;
    found.push_back(std::move(verdict));
  }
}

void find_pausing_nics(const Evidence& e, Explained& explained, Verdicts& found) {
  constexpr double kLeastUs = 10;
  constexpr double kStorm = 0.85;
  constexpr std::size_t kLeastWindows = 2;
  for (std::uint32_t n = 0; n < e.nics.size(); ++n) {
    const Pauses pauses = pauses_of(e, e.nics[n]);
    if (pauses.windows < kLeastWindows || pauses.paused_us < kLeastUs) continue;
    const bool storm = pauses.share() >= kStorm;
    const bool pcie = !storm && sends_slowly(e, n, pauses);
    Verdict verdict;
    verdict.culprit = e.nics[n].name;
    verdict.confidence = std::min(1.0, static_cast<double>(pauses.windows) / 8);
    verdict.cause = storm ? Cause::pfc_storm : pcie ? Cause::pcie_limit : Cause::slow_receiver;
    verdict.evidence = {fmt::format(
        "{} told its switch to pause for {:.0f} % of the time from window {} to window {} of {}.",
        verdict.culprit, 100 * pauses.share(), pauses.first + 1, pauses.last + 1,
        e.window_ends.size())};
    if (storm) {
      verdict.evidence.emplace_back("No load explains that.");
    } else {
      verdict.evidence.emplace_back(pcie ? "It sends more slowly than its peers, too."
                                         : "It sends as fast as its peers.");
    }
    explained.nics[n] = true;
    found.push_back(std::move(verdict));
  }
}

}  // namespace paceline::diagnosis
