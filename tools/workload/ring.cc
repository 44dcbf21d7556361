#include <algorithm>
#include <cassert>
#include <vector>

#include "tools/workload/generators.h"

namespace paceline::workload {

namespace {

// How a bucket is divided: `hosts` segments that differ by at most a byte, each in chunks.
class BucketShape {
 public:
  BucketShape(std::uint64_t bytes, std::uint32_t hosts, std::uint32_t chunk_bytes)
      : bytes_(bytes), hosts_(hosts), chunk_bytes_(chunk_bytes) {}

  std::uint64_t segment_bytes(std::uint32_t segment) const {
    return bytes_ / hosts_ + (segment < bytes_ % hosts_ ? 1 : 0);
  }
  std::uint32_t chunks(std::uint32_t segment) const {
    return static_cast<std::uint32_t>((segment_bytes(segment) + chunk_bytes_ - 1) / chunk_bytes_);
  }
  // Chunks of a segment differ by at most a byte as well.
  std::uint64_t chunk_size(std::uint32_t segment, std::uint32_t chunk) const {
    const std::uint64_t bytes = segment_bytes(segment);
    const std::uint32_t n = chunks(segment);
    return bytes / n + (chunk < bytes % n ? 1 : 0);
  }

 private:
  std::uint64_t bytes_;
  std::uint32_t hosts_;
  std::uint32_t chunk_bytes_;
};

}  // namespace

std::uint64_t ring_message_count(const config::WorkloadConfig& workload,
                                 std::span<const std::uint64_t> buckets, std::uint32_t hosts) {
  std::uint64_t count = 0;
  for (const std::uint64_t bytes : buckets) {
    const BucketShape shape(bytes, hosts, workload.chunk_bytes);
    std::uint64_t chunks = 0;
    for (std::uint32_t s = 0; s < hosts; ++s) chunks += shape.chunks(s);
    count += chunks * 2 * (hosts - 1);  // every segment travels 2(n - 1) steps
  }
  return count;
}

MessagePlan ring_all_reduce(const config::WorkloadConfig& workload,
                            std::span<const std::uint64_t> buckets, std::uint32_t hosts,
                            std::uint64_t seed) {
  assert(hosts >= 2);
  MessagePlan plan;
  plan.collectives.push_back({"ring_all_reduce", Picos{0}});
  plan.messages.reserve(ring_message_count(workload, buckets, hosts));
  const std::vector<Picos> starts = host_starts(workload.start_jitter, hosts, seed);
  const std::uint32_t steps = 2 * (hosts - 1);

  // Index of the first chunk that rank r sent in the step before, and of the last message that
  // completed an earlier bucket at rank r.
  std::vector<std::uint32_t> before(hosts), current(hosts);
  std::vector<std::vector<std::uint32_t>> completes;

  for (std::size_t b = 0; b < buckets.size(); ++b) {
    assert(buckets[b] >= hosts);
    const BucketShape shape(buckets[b], hosts, workload.chunk_bytes);
    for (std::uint32_t k = 0; k < steps; ++k) {
      for (std::uint32_t r = 0; r < hosts; ++r) {
        const std::uint32_t segment = (r + steps + 2 - k) % hosts;  // steps + 2 = 2n: r - k mod n
        const std::uint32_t left = (r + hosts - 1) % hosts;
        current[r] = static_cast<std::uint32_t>(plan.messages.size());
        for (std::uint32_t c = 0; c < shape.chunks(segment); ++c) {
          std::uint32_t after = kNoMessage;
          if (k > 0) {
            after = before[left] + c;  // the same segment arrived from the left in step k - 1
          } else if (b >= workload.buckets_in_flight) {
            after = completes[b - workload.buckets_in_flight][r];
          }
          plan.messages.push_back({.src = r,
                                   .dst = (r + 1) % hosts,
                                   .bytes = shape.chunk_size(segment, c),
                                   .start = starts[r],
                                   .after = after,
                                   .hint_kind = kHintRing,
                                   .hint_degree = 1});  // one sender towards each rank
        }
      }
      std::swap(before, current);
    }
    // Rank r has bucket b when the last chunk of the last step arrived from the left; queue pairs
    // deliver in order, so nothing of the bucket comes after it.
    std::vector<std::uint32_t> last(hosts);
    for (std::uint32_t r = 0; r < hosts; ++r) {
      const std::uint32_t left = (r + hosts - 1) % hosts;
      const std::uint32_t segment = (left + steps + 2 - (steps - 1)) % hosts;
      last[r] = before[left] + shape.chunks(segment) - 1;
    }
    completes.push_back(std::move(last));
  }
  sort_plan(plan);
  return plan;
}

}  // namespace paceline::workload
