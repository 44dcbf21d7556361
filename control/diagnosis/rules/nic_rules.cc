// Rules about NICs that pause their switches, and NICs whose data travels in another class.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "control/diagnosis/robust.h"
#include "control/diagnosis/rules/nic_bytes.h"
#include "control/diagnosis/rules/nic_floors.h"
#include "control/diagnosis/rules/rules.h"

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

bool is_pausing(const Pauses& pauses) {
  constexpr double kLeastUs = 10;
  constexpr std::size_t kLeastWindows = 2;
  return pauses.windows >= kLeastWindows && pauses.paused_us >= kLeastUs;
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
  constexpr double kPackets = 0.25;  // excess of its shortest round trips
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

// The rate at which packets leave each NIC, whatever the load.
class SendRates {
 public:
  explicit SendRates(const Evidence& evidence) : e_(evidence), bytes_(evidence) {}

  struct Slow {
    std::uint32_t nic = 0;
    std::uint32_t slice = 0;  // from here to the end
    double factor = 0;        // times as long as at the median NIC for each packet
    double score = 0;         // its excess of time, in multiples of what chance explains
  };

  // By NIC: those that send slowly until the end, from the slice in which it shows most.
  std::vector<Slow> slow() const {
    std::vector<Slow> out(e_.nics.size());
    for (std::uint32_t slice = 0; slice + 1 < Evidence::kSlices; ++slice) {
      for (const Slow& one : slow_from(slice)) {
        if (one.score > out[one.nic].score) out[one.nic] = one;
      }
    }
    std::erase_if(out, [](const Slow& one) { return one.score == 0; });
    std::stable_sort(out.begin(), out.end(),
                     [](const Slow& a, const Slow& b) { return a.score > b.score; });
    return out;
  }

 private:
  static constexpr double kMuch = 1.5;
  static constexpr double kLeastScore = 5;
  static constexpr double kLeastAnswers = 10;
  // One look in every microsecond at whether it sends.
  static constexpr double kLookUs = 1;
  static constexpr std::size_t kLeastNics = 4;

  std::vector<Slow> slow_from(std::uint32_t slice) const {
    const std::size_t nics = e_.nics.size();
    std::vector<double> nominal_us(nics), sending_us(nics), data(nics), factors;
    for (std::size_t n = 0; n < nics; ++n) {
      const NicEvidence& nic = e_.nics[n];
      for (std::size_t w = 0; w < nic.windows.size(); ++w) {
        if (!is_in(e_, w, {slice, Evidence::kSlices - 1})) continue;
        nominal_us[n] += nic.windows[w].sent_bytes * 8e6 / nic.rate_bps;
        sending_us[n] += nic.windows[w].sending_us;
        data[n] += bytes_.sent(n)[w];
      }
      if (nominal_us[n] > 0 && sending_us[n] > 0) factors.push_back(sending_us[n] / nominal_us[n]);
    }
    if (factors.size() < kLeastNics) return {};
    const double usual = median(factors);
    std::vector<Slow> out;
    for (std::uint32_t n = 0; n < nics; ++n) {
      const double expected_us = usual * nominal_us[n];
      if (expected_us <= 0 || sending_us[n] < kMuch * expected_us) continue;
      const double score =
          (sending_us[n] - expected_us) / std::sqrt((expected_us + kLookUs) * kLookUs);
      // Acknowledgements are too short for a good measurement.
      const bool answers = data[n] * 8e6 < nominal_us[n] * e_.nics[n].rate_bps / 2;
      if (score >= (answers ? kLeastAnswers : kLeastScore))
        out.push_back({n, slice, sending_us[n] / expected_us, score});
    }
    return out;
  }

  const Evidence& e_;
  NicBytes bytes_;
};

enum class Receives : std::uint8_t { nothing, slowly, well };

// Whether each packet that a NIC receives is delayed as much as each that it sends. Behind a narrow
// host link, at least some acknowledgements find the way out empty.
Receives receives_as_it_sends(const Evidence& e, const SendRates::Slow& slow) {
  constexpr double kOfSent = 0.4;
  constexpr double kAlike = 0.8;
  const NicFloors floors(
      e, {std::min(slow.slice + 1, Evidence::kSlices - 2), Evidence::kSlices - 1}, {0.02, 1});
  const auto& received = floors.received()[slow.nic];
  const auto& sent = floors.sent()[slow.nic];
  if (!received) return Receives::nothing;
  const double more = kOfSent * (slow.factor - 1);
  const bool as_much = *received >= more;
  const bool alike = sent && *sent >= more / 2 && *received >= kAlike * *sent;
  return as_much || alike ? Receives::slowly : Receives::well;
}

std::string_view receives_text(Receives receives) {
  switch (receives) {
    case Receives::nothing:
      return "It receives nothing that would tell its port from its host link.";
    case Receives::slowly:
      return "What it receives takes longer, too.";
    case Receives::well:
      break;
  }
  return "What it receives does not take longer.";
}

}  // namespace

bool sends_as_others(const Evidence& e, std::uint32_t nic) {
  constexpr double kEnoughUs = 80;
  double us = 0;
  for (const NicWindow& window : e.nics[nic].windows) us += window.sending_us;
  return us >= kEnoughUs;
}

void find_wrong_dscp(const Evidence& e, Explained& explained, Verdicts& found) {
  constexpr double kMostNics = 0.5;  // if there are more, the fabric is configured so
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

void find_slow_senders(const Evidence& e, Explained& explained, Verdicts& found) {
  constexpr double kNear = 0.6;  // of the highest score
  constexpr double kSure = 12;
  const std::vector<SendRates::Slow> slow = SendRates(e).slow();
  // Chance may bring one near the least score, but not alone.
  if (slow.empty() ||
      (slow.size() > 1 && slow[1].score >= kNear * slow[0].score && slow[0].score < kSure)) {
    return;
  }
  for (const SendRates::Slow& one : slow) {
    if (explained.nics[one.nic] || one.score < kNear * slow.front().score) continue;
    const bool pauses = is_pausing(pauses_of(e, e.nics[one.nic]));
    const Receives receives = receives_as_it_sends(e, one);
    // Without further signs, a port with a wrong speed is the simplest cause.
    const bool host_link = pauses || receives == Receives::well;
    Verdict verdict;
    verdict.cause = host_link ? Cause::pcie_limit : Cause::slow_nic;
    verdict.culprit = e.nics[one.nic].name;
    verdict.confidence = 1 - 1 / one.score;
    verdict.evidence = {fmt::format(
        "Packets take {:.1f} times as long to leave {} as to leave the median NIC, from slice {} "
        "to slice {} of the time.",
        one.factor, verdict.culprit, one.slice + 1, Evidence::kSlices)};
    verdict.evidence.emplace_back(pauses ? "It tells its switch to pause, too."
                                         : receives_text(receives));
    explained.nics[one.nic] = true;
    found.push_back(std::move(verdict));
  }
}

void find_pausing_nics(const Evidence& e, Explained& explained, Verdicts& found) {
  constexpr double kStorm = 0.85;
  for (std::uint32_t n = 0; n < e.nics.size(); ++n) {
    if (explained.nics[n]) continue;
    const Pauses pauses = pauses_of(e, e.nics[n]);
    if (!is_pausing(pauses)) continue;
    const bool storm = pauses.share() >= kStorm;
    const bool pcie = !storm && !sends_as_others(e, n) && sends_slowly(e, n, pauses);
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
