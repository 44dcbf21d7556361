#include "tools/collective/tune/schedule_cost.h"

#include <algorithm>
#include <utility>

namespace paceline::tools {

namespace {

// Buffers that each rank sends and receives in one round.
struct RankLoad {
  double sent = 0;
  double received = 0;
};

// The loads of the ranks over NICs or over NVLink, by round and rank.
class RoundLoads {
 public:
  RoundLoads(const PlacedSchedule& placed, bool inside)
      : ranks_(placed.schedule.ranks), loads_(std::size_t{placed.round_count} * ranks_) {
    const auto& transfers = placed.schedule.transfers;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const workload::Transfer& t = transfers[i];
      if (t.from == t.to || placed.inside(t) != inside) continue;
      at(placed.rounds[i], t.from).sent += placed.share(t);
      at(placed.rounds[i], t.to).received += placed.share(t);
    }
  }

  // The most that the sender or the receiver of a transfer has in its round.
  double around(std::uint32_t round, const workload::Transfer& t) {
    return std::max(at(round, t.from).sent, at(round, t.to).received);
  }
  double busiest(std::uint32_t round) {
    double most = 0;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      most = std::max({most, at(round, rank).sent, at(round, rank).received});
    }
    return most;
  }
  double most_sent() const {
    std::vector<double> sent(ranks_);
    for (std::size_t i = 0; i < loads_.size(); ++i) sent[i % ranks_] += loads_[i].sent;
    return *std::max_element(sent.begin(), sent.end());
  }

 private:
  RankLoad& at(std::uint32_t round, std::uint32_t rank) {
    return loads_[std::size_t{round} * ranks_ + rank];
  }

  std::uint32_t ranks_;
  std::vector<RankLoad> loads_;
};

CostSplit scaled(const CostSplit& split, double factor) {
  return {split.latency * factor, split.bandwidth * factor, split.nvlink * factor};
}

}  // namespace

PlacedSchedule place_schedule(workload::Schedule schedule, std::vector<std::uint32_t> nics,
                              std::vector<std::uint32_t> servers) {
  PlacedSchedule placed;
  placed.rounds.reserve(schedule.transfers.size());
  for (const workload::Transfer& t : schedule.transfers) {
    std::uint32_t round = 0;
    for (const std::uint32_t w : schedule.waits_of(t)) {
      const workload::Transfer& before = schedule.transfers[w];
      round = std::max(round, placed.rounds[w] + (before.from == before.to ? 0 : 1));
    }
    placed.rounds.push_back(round);
    // A copy at the end does not count as a round.
    if (t.from != t.to) placed.round_count = std::max(placed.round_count, round + 1);
  }
  placed.schedule = std::move(schedule);
  placed.nics = std::move(nics);
  placed.servers = std::move(servers);
  return placed;
}

ScheduleCost::ScheduleCost(const PlacedSchedule& placed, const PortLoads& ports)
    : waits_(placed.schedule.waits), rounds_(placed.round_count), port_share_(ports.all) {
  RoundLoads network(placed, false);
  RoundLoads nvlink(placed, true);
  std::vector<double> crowding;  // of a port between switches, over that of the busiest NIC
  for (std::uint32_t round = 0; round < rounds_; ++round) {
    const double nic = network.busiest(round);
    crowding.push_back(nic > 0 ? std::max(1.0, ports.rounds[round] / nic) : 1.0);
  }
  nvlink_share_ = nvlink.most_sent();
  const auto& transfers = placed.schedule.transfers;
  std::vector<std::uint32_t> chain;  // messages between NICs up to the end of each transfer
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const workload::Transfer& t = transfers[i];
    const std::uint32_t round = placed.rounds[i];
    Step step{t.from == t.to, placed.inside(t), 0, t.first_wait, t.waits};
    if (!step.free && step.inside) {
      step.share = nvlink.around(round, t);
    } else if (!step.free) {
      step.share =
          std::max(network.around(round, t) * crowding[round], placed.share(t) * ports.paths[i]);
    }
    steps_.push_back(step);
    std::uint32_t before = 0;
    for (const std::uint32_t w : placed.schedule.waits_of(t)) before = std::max(before, chain[w]);
    chain.push_back(before + (step.free || step.inside ? 0 : 1));
    network_rounds_ = std::max(network_rounds_, chain.back());
  }
}

// The longest chain of transfers, or the load of the busiest port or NVLink.
CostSplit ScheduleCost::part(double bytes, const SendCost& cost) const {
  std::vector<CostSplit> ends;
  ends.reserve(steps_.size());
  CostSplit longest;
  for (const Step& step : steps_) {
    CostSplit end;
    for (std::uint32_t w = 0; w < step.waits; ++w) {
      const CostSplit& before = ends[waits_[step.first_wait + w]];
      if (before.total() > end.total()) end = before;
    }
    if (step.inside && !step.free) {
      end.nvlink += cost.nvlink_alpha + step.share * bytes * cost.nvlink_beta;
    } else if (!step.free) {
      end.latency += cost.alpha;
      end.bandwidth += step.share * bytes * cost.beta;
    }
    ends.push_back(end);
    if (end.total() > longest.total()) longest = end;
  }
  const CostSplit port{cost.alpha, port_share_ * bytes * cost.beta, 0};
  const CostSplit nvlink{0, 0, cost.nvlink_alpha + nvlink_share_ * bytes * cost.nvlink_beta};
  if (port_share_ > 0 && port.total() > longest.total()) longest = port;
  if (nvlink_share_ > 0 && nvlink.total() > longest.total()) longest = nvlink;
  return longest;
}

CostSplit ScheduleCost::estimate(const PartCut& cut, const SendCost& cost) const {
  const auto parts = static_cast<double>(cut.parts);
  const double bytes = static_cast<double>(cut.bytes) / parts;
  const CostSplit first = part(bytes, cost);
  const double port = port_share_ * bytes * cost.beta;
  const double nvlink = nvlink_share_ * bytes * cost.nvlink_beta;
  const double turn = first.total() / static_cast<double>(std::max<std::uint64_t>(
                                          1, std::min(cut.parts, cut.under_way)));
  CostSplit all = first;
  if (turn >= port && turn >= nvlink) {
    const CostSplit more = scaled(first, (parts - 1) * turn / first.total());
    all.latency += more.latency;
    all.bandwidth += more.bandwidth;
    all.nvlink += more.nvlink;
  } else if (port >= nvlink) {
    all.bandwidth += (parts - 1) * port;
  } else {
    all.nvlink += (parts - 1) * nvlink;
  }
  return all;
}

}  // namespace paceline::tools
