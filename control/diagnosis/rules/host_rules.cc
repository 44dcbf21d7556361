// Rules about hosts: ranks that compute slowly, NICs that are slow both ways, ports that are down.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "control/diagnosis/robust.h"
#include "control/diagnosis/rules/nic_bytes.h"
#include "control/diagnosis/rules/nic_floors.h"
#include "control/diagnosis/rules/rules.h"

namespace paceline::diagnosis {

namespace {

// From the first to the last time at which something stands out.
struct Stretch {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t times = 0;  // how often it stands out
  double share() const {
    return times == 0 ? 0 : static_cast<double>(times) / static_cast<double>(last - first + 1);
  }
};

Stretch stretch_of(const std::vector<bool>& stands_out) {
  Stretch out;
  for (std::size_t i = 0; i < stands_out.size(); ++i) {
    if (!stands_out[i]) continue;
    if (out.times == 0) out.first = i;
    out.last = i;
    ++out.times;
  }
  return out;
}

constexpr double kPersistent = 0.6;  // least Stretch::share()

class SlowRanks {
 public:
  explicit SlowRanks(const Evidence& evidence) : e_(evidence) {
    std::uint32_t calls = 0;
    for (const RankEvidence& rank : e_.ranks) {
      for (const RankStep& step : rank.steps) calls = std::max(calls, step.call + 1);
    }
    std::vector<std::vector<double>> computing(calls);
    for (const RankEvidence& rank : e_.ranks) {
      for (const RankStep& step : rank.steps) computing[step.call].push_back(step.computing_us);
    }
    for (const std::vector<double>& some : computing) usual_.push_back(usual_of(some));
  }

  void find(Verdicts& found) const {
    for (std::uint32_t r = 0; r < e_.ranks.size(); ++r) find(r, found);
  }

 private:
  static constexpr double kMuch = 1.1;  // times the median
  static constexpr double kSpreads = 4;
  static constexpr double kLeastSpread = 0.01;  // of the median
  // A share of the extra time that it computed. In a ring, its neighbours are late because of it.
  static constexpr double kLate = 0.2;
  static constexpr std::size_t kLeastTimes = 3;

  void find(std::uint32_t r, Verdicts& found) const {
    std::vector<bool> slow;
    std::vector<double> factors, late;
    for (const RankStep& step : e_.ranks[r].steps) {
      const Usual& usual = usual_[step.call];
      if (usual.middle <= 0) continue;
      const double longer = step.computing_us - usual.middle;
      slow.push_back(step.computing_us >= kMuch * usual.middle &&
                     usual.score(step.computing_us, kLeastSpread * usual.middle) >= kSpreads &&
                     step.late_us >= kLate * longer);
      if (!slow.back()) continue;
      factors.push_back(step.computing_us / usual.middle);
      late.push_back(step.late_us);
    }
    const Stretch stretch = stretch_of(slow);
    if (stretch.times < std::min(kLeastTimes, slow.size()) || stretch.times < 2 ||
        stretch.share() < kPersistent) {
      return;
    }
    const double factor = median(factors);
    Verdict verdict;
    verdict.cause = Cause::slow_rank;
    verdict.culprit = fmt::format("rank{}", r);
    verdict.confidence =
        stretch.share() * std::min(1.0, static_cast<double>(stretch.times + 1) / 4);
    verdict.evidence = {
        fmt::format("Rank {} computed {:.2f} times as long as the median rank before {} of {} "
                    "collectives.",
                    r, factor, stretch.times, slow.size()),
        fmt::format("It entered them {:.0f} us after the median rank.", median(late))};
    found.push_back(std::move(verdict));
  }

  const Evidence& e_;
  std::vector<Usual> usual_;  // computing time, by call
};

// How slowly each NIC sends and receives, by part of the time.
class BothWays {
 public:
  explicit BothWays(const Evidence& evidence) : e_(evidence), bytes_(evidence) {}

  struct Found {
    std::size_t nic = 0;
    PartOfTime part;
    double factor = 0;   // its slowness over the median NIC's, the mean of both ways
    double score = 0;    // spreads above the median NIC
    double fastest = 0;  // the most that it sent or received in a window, as a share of its rate
    double others = 0;   // the same of the median NIC
    double packets = 0;  // excess of its shortest round trips over the median NIC's
  };

  // The NIC whose round trips are longest both ways in any part of the time, without those already
  // explained; its messages are slow as well.
  std::optional<Found> find(const Explained& explained) const {
    std::optional<Found> most;
    const std::vector<bool> by_others = by_pairs(explained);
    for (std::size_t part = 0; part < e_.parts.size(); ++part) {
      if (!may_judge(e_.parts[part])) continue;
      const NicFloors floors(e_, e_.parts[part]);
      const auto both = floors.both();
      const auto alone = alone_above(both, kLeastAlone);
      const std::vector<double> slow = slow_in(part);
      std::vector<double> some = slow;
      std::erase(some, 0.0);
      const Usual usual = usual_of(some);
      const std::vector<double> fastest = fastest_in(e_.parts[part]);
      some = fastest;
      std::erase(some, 0.0);
      const double others = median(some);
      for (std::size_t n = 0; n < slow.size(); ++n) {
        if (explained.nics[n] || by_others[n] || !both[n]) continue;
        if (sends_as_others(e_, static_cast<std::uint32_t>(n))) continue;
        const Found one{n,          e_.parts[part], slow[n], usual.score(slow[n], kLeastSpread),
                        fastest[n], others,         *both[n]};
        if (one.packets < kLeastPackets || !agree(one)) continue;
        const bool by_packets = alone == n && (one.factor == 0 || one.factor >= kMuchAlone) &&
                                one.fastest < kFast && !sends_alone(floors, n);
        if (!by_packets && !stands_out(one)) continue;
        if (!most || one.packets > most->packets) most = one;
      }
    }
    return most;
  }

  // The NIC that sends every packet slowly, and its messages, but receives as the others.
  std::optional<Found> find_sender(const Explained& explained) const {
    std::optional<Found> most;
    for (std::size_t part = 0; part < e_.parts.size(); ++part) {
      if (!may_judge(e_.parts[part])) continue;
      const NicFloors floors(e_, e_.parts[part]);
      const auto alone = alone_above(floors.sent(), kLeastAlone);
      if (!alone || explained.nics[*alone] || sends_as_others(e_, *alone)) continue;
      std::vector<double> sent;
      for (const NicEvidence& nic : e_.nics) sent.push_back(nic.paces[part].sent);
      divide_by_median(sent);
      const Found one{*alone, e_.parts[part], sent[*alone], 0, 0, 0, *floors.sent()[*alone]};
      if (one.factor == 0 ? one.packets < kLeastNoPace : one.factor < kMuchOneWay) continue;
      if (!agree(one)) continue;
      if (!sends_alone(floors, *alone)) continue;
      if (!most || one.packets > most->packets) most = one;
    }
    return most;
  }

 private:
  static constexpr double kMuch = 1.25;
  static constexpr double kLeastOneWay = 1.05;
  static constexpr double kSpreads = 6;
  static constexpr double kLeastSpread = 0.03;
  static constexpr double kFast = 0.75;  // of its rate; a NIC that reaches it is not slow
  // A NIC that never reached this share of what the others reached needs less evidence.
  static constexpr double kCapped = 0.65;
  static constexpr double kSpreadsCapped = 3;
  // The excess of the shortest round trips, in packets: the least where the messages alone are slow
  // enough, and the least where the round trips are the main sign.
  static constexpr double kLeastPackets = 0.25;
  static constexpr double kLeastAlone = 0.4;
  static constexpr double kMuchAlone = 1.1;
  static constexpr double kMuchOneWay = 1.3;
  static constexpr double kLeastNoPace = 0.6;  // packets, where messages have no pace
  static constexpr double kOneWay = 0.5;
  static constexpr double kPacketsOfPace = 4;

  // The NICs of which explained pairs carried a large share of the bytes.
  std::vector<bool> by_pairs(const Explained& explained) const {
    constexpr double kMuchOfIt = 0.4;
    std::vector<double> all(e_.nics.size()), of_these(e_.nics.size());
    for (std::size_t p = 0; p < e_.pairs.size(); ++p) {
      const double bytes = bytes_of(e_.pairs[p]);
      for (const std::uint32_t nic : {e_.pairs[p].src, e_.pairs[p].dst}) {
        all[nic] += bytes;
        if (explained.pairs[p]) of_these[nic] += bytes;
      }
    }
    std::vector<bool> out;
    for (std::size_t n = 0; n < all.size(); ++n) {
      out.push_back(of_these[n] > 0 && of_these[n] >= kMuchOfIt * all[n]);
    }
    return out;
  }

  // A NIC that is s times as slow adds s - 1 packets; a queue adds any number. Small messages have
  // no pace.
  static bool agree(const Found& one) {
    return one.factor == 0 || one.packets <= kPacketsOfPace * one.factor;
  }
  // It receives far faster than it sends, or nothing.
  static bool sends_alone(const NicFloors& floors, std::size_t nic) {
    const auto& received = floors.received()[nic];
    return !received || *received <= kOneWay * floors.sent()[nic].value_or(0);
  }

  // Long enough for a queue to empty meanwhile, or the end of the time.
  static bool may_judge(const PartOfTime& part) {
    constexpr std::uint32_t kLeastSlices = 4;
    return part.last + 1 == Evidence::kSlices || part.last - part.first + 1 >= kLeastSlices;
  }

  static bool stands_out(const Found& one) {
    if (one.factor < kMuch || one.fastest >= kFast) return false;
    return one.score >= kSpreads ||
           (one.score >= kSpreadsCapped && one.fastest < kCapped * one.others);
  }

  static double mean_of(double sent, double received) {
    if (sent == 0 || received == 0) return 0;
    return std::min(sent, received) < kLeastOneWay ? std::min(1.0, std::min(sent, received))
                                                   : std::sqrt(sent * received);
  }

  std::vector<double> slow_in(std::size_t part) const {
    std::vector<double> sent, received, out;
    for (const NicEvidence& nic : e_.nics) {
      sent.push_back(nic.paces[part].sent);
      received.push_back(nic.paces[part].received);
    }
    divide_by_median(sent);
    divide_by_median(received);
    for (std::size_t n = 0; n < sent.size(); ++n) out.push_back(mean_of(sent[n], received[n]));
    return out;
  }

  // The most that each NIC sent or received in a window of the part, as a share of its rate.
  std::vector<double> fastest_in(const PartOfTime& part) const {
    std::vector<double> out(e_.nics.size());
    for (std::size_t w = 0; w < e_.window_ends.size(); ++w) {
      if (!is_in(e_, w, part)) continue;
      for (std::size_t n = 0; n < out.size(); ++n) {
        const double able = window_us(e_, w) / 1e6 * e_.nics[n].rate_bps;
        if (able <= 0) continue;
        out[n] = std::max(out[n], 8 * std::max(bytes_.sent(n)[w], bytes_.received(n)[w]) / able);
      }
    }
    return out;
  }

  const Evidence& e_;
  NicBytes bytes_;
};

}  // namespace

void find_slow_ranks(const Evidence& evidence, Verdicts& found) { SlowRanks(evidence).find(found); }

void find_slow_nic(const Evidence& evidence, Explained& explained, Verdicts& found) {
  const BothWays nics(evidence);
  const auto slow = nics.find(explained);
  const auto sender = slow ? std::nullopt : nics.find_sender(explained);
  if (!slow && !sender) return;
  const BothWays::Found& one = slow ? *slow : *sender;
  Verdict verdict;
  verdict.cause = slow ? Cause::slow_nic : Cause::pcie_limit;
  verdict.culprit = evidence.nics[one.nic].name;
  verdict.confidence =
      std::min(1.0, 0.5 + one.packets) * (one.factor == 0 ? 0.8 : std::min(1.0, one.factor - 0.5));
  verdict.evidence = {
      fmt::format("The shortest round trips {} {} are longer than the median NIC's by the time of "
                  "{:.2f} packets from slice {} to slice {} of {} of the time.",
                  slow ? "to and from" : "from", verdict.culprit, one.packets, one.part.first + 1,
                  one.part.last + 1, Evidence::kSlices)};
  if (one.factor != 0) {
    verdict.evidence.push_back(
        fmt::format("Messages take {:.2f} times as long as at the median NIC.", one.factor));
  }
  if (slow) {
    verdict.evidence.push_back(
        fmt::format("It reached at most {:.0f} % of its rate, the median NIC {:.0f} %.",
                    100 * one.fastest, 100 * one.others));
  }
  explained.nics[one.nic] = true;
  found.push_back(std::move(verdict));
}

void find_bad_ports(const Evidence& evidence, Explained& explained, Verdicts& found) {
  for (const PortEvidence& port : evidence.ports) {
    const auto downs = std::count_if(port.changes.begin(), port.changes.end(),
                                     [](const PortChange& change) { return !change.up; });
    if (downs == 0) continue;
    explained.nics[port.nic] = true;
    Verdict verdict;
    verdict.culprit = port.name;
    const double first_ms = static_cast<double>(port.changes.front().at.count) / 1e9;
    if (!port.changes.back().up && downs == 1) {
      verdict.cause = Cause::dead_port;
      verdict.confidence = 1;
      verdict.evidence = {fmt::format(
          "The link of {} went down at {:.3f} ms and has not come back.", port.name, first_ms)};
    } else {
      verdict.cause = Cause::flapping_port;
      verdict.confidence = 1 - 1 / static_cast<double>(downs + 1);
      verdict.evidence = {
          fmt::format("The link of {} went down {} times, first at {:.3f} ms, and came back.",
                      port.name, downs, first_ms)};
    }
    found.push_back(std::move(verdict));
  }
}

}  // namespace paceline::diagnosis
