#include "dataplane/telemetry/nic_meter.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <utility>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline::telemetry {
namespace {

constexpr MessageIdeal kNicIdeal{100'000'000'000, 5'000, 4096, 4178};

TEST_CASE("messages count for the NIC, and for the cluster that they go to", "[messages]") {
  NicMeter meter(kNicIdeal);
  MessageBegun before = meter.begin(0, 100, 0);  // there are no clusters yet
  CHECK(before.cluster == kNoCluster);
  meter.use_clusters(2, 1);
  meter.set_epoch(4);
  CHECK(meter.clusters() == 2);
  CHECK(meter.own_cluster() == 1);
  MessageBegun first = meter.begin(0, 10'000, 0);
  MessageBegun second = meter.begin(0, 100, 1);
  MessageBegun outside = meter.begin(0, 100, kNoCluster);
  MessageBegun beyond = meter.begin(0, 100, 2);
  CHECK(meter.all().outstanding() == 5);
  CHECK(meter.of(0).outstanding() == 1);
  CHECK(meter.of(1).outstanding() == 1);
  for (MessageBegun* message : {&before, &first, &second, &outside, &beyond}) {
    meter.end(*message, 20'000, MessageEnd::completed);
    meter.end(*message, 30'000, MessageEnd::completed);  // once each
  }
  CHECK(meter.all().outstanding() == 0);
  CHECK(meter.all().figures()[0].completed == 4);
  CHECK(meter.all().figures()[0].crossed == 1);
  CHECK(meter.of(0).figures()[0].completed == 1);
  CHECK(meter.of(0).figures()[0].completed_bytes == 10'000);
  CHECK(meter.of(1).figures()[0].log2_slowdown == 2 * kLogUnit);  // four times the ideal
}

TEST_CASE("an epoch crosses in the clusters as in the NIC, and messages outlive clusters",
          "[messages]") {
  NicMeter meter(kNicIdeal);
  meter.set_epoch(1);
  meter.use_clusters(2, 0);
  MessageBegun crossing = meter.begin(0, 100, 1);
  MessageBegun failing = meter.begin(0, 100, 1);
  meter.set_epoch(2);
  meter.end(crossing, 10, MessageEnd::completed);
  meter.use_clusters(0, kNoCluster);
  meter.end(failing, 10, MessageEnd::failed);
  CHECK(meter.begin(0, 100, 1).cluster == kNoCluster);
  meter.use_clusters(2, 0);
  CHECK(meter.of(1).figures()[0].begun == 2);
  CHECK(meter.of(1).figures()[0].crossed == 2);
  CHECK(meter.of(1).outstanding() == 0);
}

TEST_CASE("the clusters' figures add up to those of the NIC", "[messages]") {
  constexpr std::uint64_t kSeed = 11;
  INFO("seed " << kSeed);
  Random random(kSeed);
  NicMeter meter(kNicIdeal);
  meter.use_clusters(kMostClusters, 0);
  std::vector<MessageBegun> under_way;
  std::uint64_t now = 0;
  for (int i = 0; i < 20'000; ++i) {
    now += random.below(1000);
    if (random.below(2) == 0 || under_way.empty()) {
      under_way.push_back(meter.begin(now, random.below(1U << random.below(22)),
                                      static_cast<std::uint8_t>(random.below(kMostClusters))));
    } else {
      std::swap(under_way[random.below(under_way.size())], under_way.back());
      meter.end(under_way.back(), now,
                random.below(10) == 0 ? MessageEnd::failed : MessageEnd::completed);
      under_way.pop_back();
    }
    if (random.below(100) == 0) meter.set_epoch(static_cast<std::uint8_t>(random.below(3)));
  }
  MessagesBySize sum{};
  std::uint64_t outstanding = 0;
  for (std::size_t c = 0; c < kMostClusters; ++c) {
    for (std::size_t s = 0; s < kMessageSizes; ++s) add(sum[s], meter.of(c).figures()[s]);
    outstanding += meter.of(c).outstanding();
  }
  CHECK(outstanding == under_way.size());
  CHECK(std::memcmp(&sum, &meter.all().figures(), sizeof(sum)) == 0);
}

}  // namespace
}  // namespace paceline::telemetry
