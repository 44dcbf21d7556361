// Hosts: ranks that compute long, NICs that are slow both ways, ports that are down.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "control/diagnosis/robust.h"
#include "control/diagnosis/rules.h"

namespace paceline::diagnosis {

namespace {

// The stretch of time in which something stands out.
struct Stretch {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t times = 0;  // in it
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

constexpr double kPersistent = 0.6;  // share of a stretch

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
  static constexpr double kMuch = 1.1;       // times the median
  static constexpr double kSpreads = 4;
  static constexpr double kLeastSpread = 0.01;  // of the median
  static constexpr double kLate = 0.5;       // of what it computed longer
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
  std::vector<Usual> usual_;  // of computing, by call
};

// How slow each NIC is both ways, by slice of the time: the lesser of its two paces over the median
// NIC's.
class BothWays {
 public:
  explicit BothWays(const Evidence& evidence) : e_(evidence) {
    for (std::size_t s = 0; s < Evidence::kSlices; ++s) {
      std::vector<double> sent, received;
      for (const NicEvidence& nic : e_.nics) {
        sent.push_back(nic.paces[s].sent);
        received.push_back(nic.paces[s].received);
      }
      divide_by_median(sent);
      divide_by_median(received);
      std::vector<double>& now = slow_.emplace_back();
      for (std::size_t n = 0; n < sent.size(); ++n) now.push_back(std::min(sent[n], received[n]));
      std::vector<double> some = now;
      std::erase(some, 0.0);
      usual_.push_back(usual_of(some));
    }
  }

  // 0: it did not both send and receive.
  double slow(std::size_t slice, std::size_t nic) const { return slow_[slice][nic]; }
  double score(std::size_t slice, std::size_t nic) const {
    return usual_[slice].score(slow_[slice][nic], kLeastSpread);
  }

 private:
  static constexpr double kLeastSpread = 0.03;

  const Evidence& e_;
  std::vector<std::vector<double>> slow_;
  std::vector<Usual> usual_;
};

}  // namespace

void find_slow_ranks(const Evidence& evidence, Verdicts& found) {
  SlowRanks(evidence).find(found);
}

void find_slow_nic(const Evidence& evidence, Explained& explained, Verdicts& found) {
  constexpr double kMuch = 1.3;
  constexpr double kSpreads = 5;
  constexpr std::size_t kLeastSlices = 2;
  const BothWays ways(evidence);
  double most = 0;
  std::optional<Verdict> verdict;
  std::size_t culprit = 0;
  for (std::size_t n = 0; n < evidence.nics.size(); ++n) {
    if (explained.nics[n]) continue;
    std::vector<bool> out;
    std::vector<double> factors;
    for (std::size_t s = 0; s < Evidence::kSlices; ++s) {
      if (ways.slow(s, n) == 0) continue;
      out.push_back(ways.slow(s, n) >= kMuch && ways.score(s, n) >= kSpreads);
      if (out.back()) factors.push_back(ways.slow(s, n));
    }
    const Stretch stretch = stretch_of(out);
    if (stretch.times < std::min(kLeastSlices, out.size()) || stretch.share() < kPersistent) {
      continue;
    }
    const double factor = median(factors);
    if (stretch.times == 0 || factor <= most) continue;
    most = factor;
    culprit = n;
    verdict.emplace();
    verdict->cause = Cause::slow_nic;
    verdict->culprit = evidence.nics[n].name;
    verdict->confidence = stretch.share() * std::min(1.0, factor - 1 + 0.3);
    verdict->evidence = {
        fmt::format("What {} sends and what it receives takes {:.2f} times as long as at the "
                    "median NIC, in {} of {} parts of the time.",
                    verdict->culprit, factor, stretch.times, out.size())};
  }
  if (!verdict) return;
  explained.nics[culprit] = true;
  found.push_back(std::move(*verdict));
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
    if (downs == 1) {
      verdict.cause = Cause::dead_port;
      verdict.confidence = 1;
      const bool back = port.changes.back().up;
      verdict.evidence = {
          fmt::format("The link of {} went down at {:.3f} ms and {}.", port.name, first_ms,
                      back ? fmt::format("came back at {:.3f} ms", static_cast<double>(
                                             port.changes.back().at.count) / 1e9)
                           : "has not come back")};
    } else {
      verdict.cause = Cause::flapping_port;
      verdict.confidence = 1 - 1 / static_cast<double>(downs + 1);
      verdict.evidence = {fmt::format("The link of {} went down {} times, first at {:.3f} ms.",
                                      port.name, downs, first_ms)};
    }
    found.push_back(std::move(verdict));
  }
}

}  // namespace paceline::diagnosis
