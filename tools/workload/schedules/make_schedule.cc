// The algorithms by name, and what each allows.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "tools/workload/schedules/families/families.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::workload {

namespace {

// Most ranks. The pieces of Growth::square grow with their square: 23 million of Bruck's all-to-all
// among 2048.
constexpr std::uint32_t kMostRanks = 65'536;
constexpr std::uint32_t kMostRanksSquare = 2'048;
// In Growth::square_rings each rank of a server has a ring.
constexpr std::uint64_t kMostRingChunks = 1'024 * 1'024 * 8;

enum class Growth : std::uint8_t { linear, square, square_rings };
enum class Sizes : std::uint8_t { any, powers_of_two };

struct Algorithm {
  std::string_view name;
  Schedule (*make)(const GroupShape& group, const ScheduleOptions& options);
  Growth growth = Growth::square;
  Sizes sizes = Sizes::any;
};

constexpr std::array kAllReduce{
    Algorithm{"ring", ring_all_reduce_schedule},
    Algorithm{"two_level_ring", two_level_all_reduce_schedule},
    Algorithm{"rail_rings", rail_ring_all_reduce_schedule, Growth::square_rings},
    Algorithm{"double_tree", double_tree_schedule, Growth::linear},
    Algorithm{"halving_doubling_near", halving_doubling_near_schedule},
    Algorithm{"halving_doubling_far", halving_doubling_far_schedule},
    Algorithm{"recursive_doubling", recursive_doubling_schedule, Growth::linear},
};
constexpr std::array kReduceScatter{
    Algorithm{"ring", ring_reduce_scatter_schedule},
    Algorithm{"two_level_ring", two_level_reduce_scatter_schedule},
    Algorithm{"rail_rings", rail_ring_reduce_scatter_schedule, Growth::square_rings},
    Algorithm{"halving_near", halving_near_schedule, Growth::square, Sizes::powers_of_two},
    Algorithm{"halving_far", halving_far_schedule, Growth::square, Sizes::powers_of_two},
    Algorithm{"pat", pat_reduce_scatter_schedule},
};
constexpr std::array kAllGather{
    Algorithm{"ring", ring_all_gather_schedule},
    Algorithm{"two_level_ring", two_level_all_gather_schedule},
    Algorithm{"rail_rings", rail_ring_all_gather_schedule, Growth::square_rings},
    Algorithm{"doubling_near", doubling_near_schedule, Growth::square, Sizes::powers_of_two},
    Algorithm{"doubling_far", doubling_far_schedule, Growth::square, Sizes::powers_of_two},
    Algorithm{"bruck", bruck_all_gather_schedule},
    Algorithm{"pat", pat_all_gather_schedule},
};
constexpr std::array kAllToAll{
    Algorithm{"nccl", nccl_all_to_all_schedule},
    Algorithm{"linear_shift", linear_shift_schedule},
    Algorithm{"pairwise_xor", pairwise_xor_schedule, Growth::square, Sizes::powers_of_two},
    Algorithm{"bruck", bruck_all_to_all_schedule},
    Algorithm{"window", window_all_to_all_schedule},
    Algorithm{"pxn", pxn_all_to_all_schedule},
    Algorithm{"pxn_batched", pxn_batched_all_to_all_schedule},
};
constexpr std::array kBroadcast{
    Algorithm{"chain", chain_broadcast_schedule, Growth::linear},
    Algorithm{"binomial", binomial_broadcast_schedule, Growth::linear},
    Algorithm{"scatter_all_gather", scatter_all_gather_schedule},
};
constexpr std::array kReduce{
    Algorithm{"chain", chain_reduce_schedule, Growth::linear},
    Algorithm{"binomial", binomial_reduce_schedule, Growth::linear},
};

template <std::size_t N>
constexpr std::array<std::string_view, N> names_of(const std::array<Algorithm, N>& algorithms) {
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) names[i] = algorithms[i].name;
  return names;
}
constexpr auto kAllReduceNames = names_of(kAllReduce);
constexpr auto kReduceScatterNames = names_of(kReduceScatter);
constexpr auto kAllGatherNames = names_of(kAllGather);
constexpr auto kAllToAllNames = names_of(kAllToAll);
constexpr auto kBroadcastNames = names_of(kBroadcast);
constexpr auto kReduceNames = names_of(kReduce);

struct Algorithms {
  std::span<const Algorithm> all;
  std::span<const std::string_view> names;
};
constexpr std::array<Algorithms, kCollectiveOps> kAlgorithms{
    Algorithms{kAllReduce, kAllReduceNames}, Algorithms{kReduceScatter, kReduceScatterNames},
    Algorithms{kAllGather, kAllGatherNames}, Algorithms{kAllToAll, kAllToAllNames},
    Algorithms{kBroadcast, kBroadcastNames}, Algorithms{kReduce, kReduceNames}};

const Algorithms& algorithms_of(CollectiveOp op) {
  return kAlgorithms[static_cast<std::size_t>(op)];
}

std::uint32_t most_ranks(Growth growth, std::uint32_t per_server) {
  if (growth == Growth::linear) return kMostRanks;
  std::uint32_t most = kMostRanksSquare;
  if (growth == Growth::square_rings) {
    while (std::uint64_t{most} * most * per_server > kMostRingChunks && most > 2) most /= 2;
  }
  return most;
}

std::vector<std::string> group_errors(CollectiveOp op, const Algorithm& algorithm,
                                      const GroupShape& group, const ScheduleOptions& options) {
  std::vector<std::string> errors;
  const std::string of = fmt::format("{} by \"{}\": ", to_string(op), algorithm.name);
  const std::uint32_t most = most_ranks(algorithm.growth, group.per_server);
  if (group.ranks < 2 || group.ranks > most) {
    errors.push_back(fmt::format("{}ranks = {}: allowed is [2 .. {}]", of, group.ranks, most));
    return errors;
  }
  if (group.per_server == 0 || group.ranks % group.per_server != 0) {
    errors.push_back(fmt::format("{}ranks per server = {}: allowed is a divisor of {}, the ranks",
                                 of, group.per_server, group.ranks));
  }
  if (algorithm.sizes == Sizes::powers_of_two && !std::has_single_bit(group.ranks)) {
    errors.push_back(fmt::format("{}ranks = {}: allowed is a power of two", of, group.ranks));
  }
  if (options.root >= group.ranks) {
    errors.push_back(
        fmt::format("{}root = {}: allowed is [0 .. {}]", of, options.root, group.ranks - 1));
  }
  if (options.aggregation != 0 && !std::has_single_bit(options.aggregation)) {
    errors.push_back(
        fmt::format("{}aggregation = {}: allowed is 0 or a power of two", of, options.aggregation));
  }
  return errors;
}

}  // namespace

std::span<const std::string_view> schedule_names(CollectiveOp op) {
  return algorithms_of(op).names;
}

config::Read<Schedule> make_schedule(CollectiveOp op, std::string_view algorithm,
                                     const GroupShape& group, const ScheduleOptions& options) {
  const std::span<const Algorithm> all = algorithms_of(op).all;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Algorithm& a) { return a.name == algorithm; });
  config::Read<Schedule> read;
  if (found == all.end()) {
    read.errors.push_back(fmt::format("{} by \"{}\": expected {}", to_string(op), algorithm,
                                      config::list_names(schedule_names(op))));
    return read;
  }
  read.errors = group_errors(op, *found, group, options);
  if (read.ok()) read.value = found->make(group, options);
  return read;
}

}  // namespace paceline::workload
