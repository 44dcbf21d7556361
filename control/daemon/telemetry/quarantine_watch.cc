#include "control/daemon/telemetry/quarantine_watch.h"

namespace paceline::daemon {

void QuarantineWatch::begin(const Sampler& sampler) {
  counts_.clear();
  series_ = sampler.find_series("plugin_quarantines");
}

std::vector<std::string> QuarantineWatch::look(const Sampler& sampler) {
  std::vector<std::string> out;
  if (!series_) return out;
  counts_.resize(sampler.nics().size());
  for (std::size_t nic = 0; nic < counts_.size(); ++nic) {
    if (sampler.sampled_at_unix_ns(nic) == 0) continue;
    const std::uint64_t now = sampler.values(nic)[*series_];
    if (counts_[nic] && now > *counts_[nic]) out.push_back(sampler.nics()[nic].name);
    counts_[nic] = now;
  }
  return out;
}

}  // namespace paceline::daemon
