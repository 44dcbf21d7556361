#include "control/diagnosis/rules/nic_floors.h"

#include <algorithm>

#include "control/diagnosis/robust.h"
#include "control/diagnosis/rules/rules.h"

namespace paceline::diagnosis {

namespace {

std::vector<std::optional<double>> above_median(std::vector<std::vector<double>>& excess,
                                                const NicFloors::Of& of) {
  std::vector<std::optional<double>> out(excess.size());
  std::vector<double> all;
  for (std::size_t n = 0; n < excess.size(); ++n) {
    if (excess[n].size() < of.least_windows) continue;
    out[n] = quantile(excess[n], of.low);
    all.push_back(*out[n]);
  }
  const double middle = median(all);
  for (auto& one : out) {
    if (one) *one -= middle;
  }
  return out;
}

}  // namespace

NicFloors::NicFloors(const Evidence& evidence, const PartOfTime& part, const Of& of) {
  std::vector<bool> inside;
  for (std::size_t w = 0; w < evidence.window_ends.size(); ++w) {
    inside.push_back(is_in(evidence, w, part));
  }
  std::vector<std::vector<double>> sent(evidence.nics.size()), received(evidence.nics.size());
  for (const PairEvidence& pair : evidence.pairs) {
    for (std::size_t w = 0; w < pair.windows.size(); ++w) {
      if (!inside[w] || pair.windows[w].rtt_ns == 0) continue;
      const double bits_us = 8e6 * evidence.packet_bytes;
      const double us = excess_us(pair, pair.windows[w]);
      sent[pair.src].push_back(us * evidence.nics[pair.src].rate_bps / bits_us);
      received[pair.dst].push_back(us * evidence.nics[pair.dst].rate_bps / bits_us);
    }
  }
  sent_ = above_median(sent, of);
  received_ = above_median(received, of);
}

std::vector<std::optional<double>> NicFloors::both() const {
  std::vector<std::optional<double>> out(sent_.size());
  for (std::size_t n = 0; n < out.size(); ++n) {
    if (sent_[n] && received_[n]) out[n] = std::min(*sent_[n], *received_[n]);
  }
  return out;
}

std::optional<std::uint32_t> alone_above(const std::vector<std::optional<double>>& floors,
                                         double least) {
  constexpr double kSpreads = 6;
  constexpr double kLeastSpread = 0.05;
  constexpr double kNear = 0.6;
  std::optional<std::uint32_t> best;
  std::vector<double> all;
  double next = 0;
  for (std::uint32_t n = 0; n < floors.size(); ++n) {
    if (!floors[n]) continue;
    all.push_back(*floors[n]);
    if (!best || *floors[n] > *floors[*best]) {
      if (best) next = std::max(next, *floors[*best]);
      best = n;
    } else {
      next = std::max(next, *floors[n]);
    }
  }
  if (!best || *floors[*best] < least || next > kNear * *floors[*best]) return std::nullopt;
  if (usual_of(all).score(*floors[*best], kLeastSpread) < kSpreads) return std::nullopt;
  return best;
}

}  // namespace paceline::diagnosis
