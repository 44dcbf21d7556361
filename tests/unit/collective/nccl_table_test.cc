// The table for NCCL's example tuner plug-in, and sizes of a command line.
#include "tools/collective/tune/nccl_table.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/unit/collective/tune_samples.h"
#include "tools/collective/tune/size_range.h"

namespace paceline::tools::nccl_table_test {
namespace {

using Catch::Matchers::Contains;
using workload::CollectiveOp;

TuneCell chosen(CollectiveOp op, std::uint64_t bytes, const std::string& schedule,
                std::uint32_t channels) {
  TuneCell cell;
  cell.op = op;
  cell.bytes = bytes;
  cell.nccl = Trial{{schedule, 1 << 20, channels, 8, 1}, 1, 1, {}};
  return cell;
}

TEST_CASE("nccl table: ranges touch, cover every size and join what is the same", "[jobs]") {
  CollectiveTunePlan plan;
  plan.group =
      tune_samples::group_on("topology = \"rail\"\nnics = 4\nservers = 2\nhosts_per_leaf = 2");
  const std::string text =
      nccl_table(plan, {chosen(CollectiveOp::all_reduce, 4'096, "double_tree", 1),
                        chosen(CollectiveOp::all_reduce, 16'384, "double_tree", 1),
                        chosen(CollectiveOp::all_reduce, 65'536, "double_tree", 2),
                        chosen(CollectiveOp::all_reduce, 262'144, "rail_rings", 1),
                        chosen(CollectiveOp::broadcast, 4'096, "chain", 2)});
  // Between 16 KiB and 64 KiB 32 KiB, between 64 KiB and 256 KiB 128 KiB.
  CHECK(text ==
        "# Written by paceline collective tune, for NCCL's example tuner plug-in.\n"
        "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n"
        "allreduce,0,32768,tree,simple,1,2,8\n"
        "allreduce,32769,131072,tree,simple,2,2,8\n"
        "allreduce,131073,18446744073709551615,ring,simple,4,2,8\n"
        "broadcast,0,18446744073709551615,ring,simple,2,2,8\n");
}

TEST_CASE("nccl table: names that NCCL has, and none for what it has not", "[jobs]") {
  const workload::GroupShape one{8, 1};
  CHECK(nccl_algorithm(CollectiveOp::all_reduce, "ring", one) == "ring");
  CHECK(nccl_algorithm(CollectiveOp::all_reduce, "rail_rings", one).empty());
  CHECK(nccl_algorithm(CollectiveOp::all_reduce, "rail_rings", {8, 2}) == "ring");
  CHECK(nccl_algorithm(CollectiveOp::all_reduce, "ring", {8, 2}).empty());
  CHECK(nccl_algorithm(CollectiveOp::all_reduce, "double_tree", one) == "tree");
  CHECK(nccl_algorithm(CollectiveOp::all_reduce, "halving_doubling_far", one).empty());
  CHECK(nccl_algorithm(CollectiveOp::all_reduce, "two_level_ring", one).empty());
  CHECK(nccl_algorithm(CollectiveOp::reduce, "chain", one) == "ring");
  CHECK(nccl_algorithm(CollectiveOp::all_to_all, "nccl", one).empty());
  CHECK(nccl_algorithm(CollectiveOp::all_gather, "pat", one) == "pat");
  CHECK(nccl_algorithm(CollectiveOp::all_gather, "pat", {8, 2}).empty());
  CHECK(nccl_collective(CollectiveOp::reduce_scatter) == "reducescatter");
  CHECK(nccl_collective(CollectiveOp::all_to_all).empty());
}

TEST_CASE("size range: one size, a range, a step, and what is refused", "[jobs]") {
  using Sizes = std::vector<std::uint64_t>;
  CHECK(parse_size_range("sizes", "1MiB").value == Sizes{1 << 20});
  CHECK(parse_size_range("sizes", "4KiB..256KiB").value == Sizes{4'096, 16'384, 65'536, 262'144});
  CHECK(parse_size_range("sizes", "1kB .. 9kB step x3").value == Sizes{1'000, 3'000, 9'000});
  CHECK(parse_size_range("sizes", "1kB..10kB step x3").value == Sizes{1'000, 3'000, 9'000});
  // The size after the first would not fit 64 bits.
  CHECK(parse_size_range("sizes", "16GiB..32GiB step x1073741824").value ==
        Sizes{std::uint64_t{16} << 30});
  for (const char* bad : {"", "much", "0B", "2MiB..1MiB", "1kB..2kB step 3", "1kB..2kB step x1",
                          "1kB..", "1kB..2PB", "1kB..2kB step x"}) {
    CAPTURE(bad);
    const auto read = parse_size_range("sizes", bad);
    REQUIRE(read.errors.size() == 1);
    CHECK_THAT(read.errors[0],
               Contains("sizes \"" + std::string(bad) + "\": expected sizes of 1 B to 1000 TB"));
  }
}

}  // namespace
}  // namespace paceline::tools::nccl_table_test
