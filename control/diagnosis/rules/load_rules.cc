// Two conditions that are not faults: an incast, and a core with less capacity than its hosts.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "control/diagnosis/robust.h"
#include "control/diagnosis/rules/nic_bytes.h"
#include "control/diagnosis/rules/rules.h"

namespace paceline::diagnosis {

namespace {

// Bits per second over a window, as a share of a rate.
double share_of(double bytes, double us, double rate_bps) {
  return us <= 0 || rate_bps <= 0 ? 0 : bytes * 8e6 / us / rate_bps;
}

}  // namespace

void find_incast(const Evidence& e, const Explained& explained, Verdicts& found) {
  constexpr std::size_t kLeastSenders = 4;
  constexpr double kFull = 0.7;         // of the NIC's rate
  constexpr double kMoreThanUsual = 4;  // bytes received, over the median NIC's
  const NicBytes bytes(e);
  std::vector<double> received;
  for (std::size_t n = 0; n < e.nics.size(); ++n) {
    const std::vector<double>& of_nic = bytes.received(n);
    received.push_back(std::accumulate(of_nic.begin(), of_nic.end(), 0.0));
  }
  std::vector<std::vector<std::uint32_t>> senders(e.nics.size(),
                                                  std::vector<std::uint32_t>(e.window_ends.size()));
  for (const PairEvidence& pair : e.pairs) {
    for (std::size_t w = 0; w < pair.windows.size(); ++w) {
      senders[pair.dst][w] += pair.windows[w].bytes > 0 ? 1U : 0U;
    }
  }
  std::vector<double> some = received;
  const double usual = median(some);
  for (std::size_t n = 0; n < e.nics.size(); ++n) {
    if (explained.nics[n] || received[n] == 0 || received[n] < kMoreThanUsual * usual) continue;
    const std::vector<double>& by_window = bytes.received(n);
    double full = 0;
    std::uint32_t most = 0;
    for (std::size_t w = 0; w < e.window_ends.size(); ++w) {
      if (senders[n][w] < kLeastSenders) continue;
      if (share_of(by_window[w], window_us(e, w), e.nics[n].rate_bps) < kFull) continue;
      full += by_window[w];
      most = std::max(most, senders[n][w]);
    }
    if (full < 0.5 * received[n]) continue;
    Verdict verdict;
    verdict.cause = Cause::incast;
    verdict.culprit = e.nics[n].name;
    verdict.confidence = full / received[n];
    verdict.evidence = {fmt::format(
        "Up to {} NICs send to {} at the same time; {:.0f} % of what it receives comes while its "
        "link is {:.0f} % full or more.",
        most, verdict.culprit, 100 * full / received[n], 100 * kFull)};
    found.push_back(std::move(verdict));
  }
}

void find_oversubscription(const Evidence& e, Verdicts& found) {
  constexpr double kFull = 0.6;
  if (e.oversubscription <= 1.05) return;
  // What each switch sends towards other switches, and the capacity for it.
  std::map<std::string, double> capacity;
  std::map<std::string, std::vector<double>> sent;
  for (const LinkEvidence& link : e.links) {
    if (!link.of_host) capacity[link.first] += link.rate_bps;
  }
  for (const PairEvidence& pair : e.pairs) {
    for (const std::uint32_t directed : pair.way) {
      const LinkEvidence& link = e.links[directed / 2];
      if (link.of_host || directed % 2 != 0) continue;
      std::vector<double>& at = sent[link.first];
      at.resize(e.window_ends.size());
      for (std::size_t w = 0; w < pair.windows.size(); ++w) {
        at[w] += static_cast<double>(pair.windows[w].bytes);
      }
    }
  }
  double most = 0;
  std::string where;
  for (const auto& [name, bytes] : sent) {
    std::vector<double> shares;
    for (std::size_t w = 0; w < bytes.size(); ++w) {
      if (bytes[w] > 0) shares.push_back(share_of(bytes[w], window_us(e, w), capacity[name]));
    }
    const double share = median(shares);
    if (share > most) {
      most = share;
      where = name;
    }
  }
  if (most < kFull) return;
  Verdict verdict;
  verdict.cause = Cause::oversubscribed;
  verdict.culprit = where;
  verdict.confidence = std::min(1.0, most);
  verdict.evidence = {
      fmt::format("The links of a leaf to its hosts have {:.1f} times the capacity of its uplinks; "
                  "the uplinks of "
                  "{} are {:.0f} % full at the median.",
                  e.oversubscription, where, 100 * most)};
  found.push_back(std::move(verdict));
}

}  // namespace paceline::diagnosis
