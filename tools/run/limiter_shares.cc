#include "tools/run/limiter_shares.h"

namespace paceline::tools {

namespace {

void add_times(const SenderLimits::Times& times, SenderLimits::Times& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += times[i];
}

}  // namespace

LimiterShares shares_of(const SenderLimits::Times& times) {
  LimiterShares shares{};
  double all = 0;
  for (unsigned i = 0; i < cc::kLimiters; ++i) {
    if (static_cast<cc::Limiter>(i) == cc::Limiter::application) continue;
    shares[i] = static_cast<double>(times[i]);
    all += shares[i];
  }
  for (double& share : shares) share = all == 0 ? 0 : share / all;
  return shares;
}

LimiterShares limiter_shares(const VirtualWorld& world) {
  SenderLimits::Times sums{};
  for (std::uint32_t nic = 0; nic < world.hosts(); ++nic)
    add_times(world.engine(nic).view().limiter_picos(world.now()), sums);
  return shares_of(sums);
}

std::vector<SenderLimits::Times> collective_limits(const VirtualWorld& world) {
  std::vector<SenderLimits::Times> sums;
  for (std::uint32_t nic = 0; nic < world.hosts(); ++nic) {
    const SenderLimits* const limits = world.app(nic).limits();
    if (limits == nullptr) return {};
    sums.resize(world.plan().collectives.size());
    for (const auto& [collective, times] : limits->by_collective()) {
      // Sends and receives of a job are of no collective.
      if (collective < sums.size()) add_times(times, sums[collective]);
    }
  }
  return sums;
}

}  // namespace paceline::tools
