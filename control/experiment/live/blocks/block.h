// The datum of a live experiment: one cluster in one block, never a message and never a queue pair.
// It is made from the counters of the cluster's NICs at two moments: the end of the block's
// wash-out and the end of the block.
//
// Messages that an arm stalls are missing among the completed ones, which would make the arm look
// fast. So every figure of slowdown counts messages that were begun in the block and are neither
// completed nor outnumbered by earlier ones that were: `stalled` = begun - completed in the
// measured span, no less than 0. In a healthy block about as many complete as begin, and nothing is
// added. Each stalled message enters with kStalledSlowdown, the end of the histogram, so the mean
// is restricted at that bound. Messages that ended in error count as stalled.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/experiment/live/blocks/block_metrics.h"
#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/telemetry/message_figures.h"

namespace paceline::experiment::live {

// 2^12: where telemetry::MessageFigures ends.
inline constexpr double kStalledSlowdown = 4096;

// A counter that the source does not have.
inline constexpr std::uint64_t kNotCounted = std::numeric_limits<std::uint64_t>::max();

// Cumulative counters of a NIC, by the names of telemetry::EngineCounters and of the segment.
struct NicTotals {
  std::uint64_t tx_data_packets = kNotCounted;
  std::uint64_t tx_data_bytes = kNotCounted;
  std::uint64_t rx_data_packets = kNotCounted;
  std::uint64_t rx_data_bytes = kNotCounted;
  std::uint64_t rx_ce_packets = kNotCounted;
  std::uint64_t retransmitted_packets = kNotCounted;
  std::uint64_t cnps_received = kNotCounted;
  std::uint64_t paused_ns = kNotCounted;
  std::uint64_t worker_busy_cycles = kNotCounted;
  std::uint64_t worker_packets = kNotCounted;  // that these cycles went to
};

// Their names, in that order.
std::vector<std::string_view> total_series();
// Sets the total of that name; false (and nothing set) for a series that is not among them.
bool set_total(NicTotals& totals, std::string_view series, std::uint64_t value);

// Sample of a NIC at one edge of a block.
struct NicSample {
  std::string nic;
  std::uint64_t at_ns = 0;  // of the NIC's worker
  std::uint32_t epoch = 0;  // as published: 1 .. 255
  std::uint32_t arm = 0;
  std::uint32_t guard = 0;  // not 0: a trip is latched
  std::uint64_t rate_bps = 0;
  std::uint32_t channels = 0;  // queue pairs in use
  telemetry::MessagesBySize messages{};
  NicTotals totals;
};

struct BlockPlace {
  std::uint32_t block = 0;
  std::uint32_t cluster = 0;
  std::uint8_t arm = 0;
  std::uint8_t epoch = 1;
  std::uint32_t pair() const { return block / 2; }
};

struct SizeFigures {
  std::uint64_t begun = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t crossed = 0;
  std::uint64_t stalled() const { return begun > completed ? begun - completed : 0; }
};

enum class Discarded : std::uint8_t {
  no,
  itself,
  with_partner,  // only because the other block of its pair was
};
// Beginning of `why` if a block was discarded with its partner.
inline constexpr std::string_view kPartner = "pair: ";

struct BlockRecord {
  BlockPlace place;
  std::uint64_t begin_ns = 0;  // measured span, by the first NIC's worker
  std::uint64_t end_ns = 0;
  std::array<SizeFigures, telemetry::kMessageSizes> messages{};
  double load = kUndefined;      // payload begun, of the NICs' rates
  std::uint32_t channels = 0;    // at the end
  double telemetry_missing = 0;  // share of the samples that were due
  BlockValues values;
  Discarded discarded = Discarded::no;
  std::string why;  // of a discarded one
};

// The figures between two edges. `begin` and `end` hold the cluster's NICs in the same order. A
// block is discarded, with the reason, if its figures are worthless: a NIC is missing, has another
// arm or epoch than the block, has counters that ran backwards (the service restarted), or its
// guard tripped. The caller sets values that others measure (collective time, temperature, queues).
BlockRecord block_between(const BlockPlace& place, std::span<const NicSample> begin,
                          std::span<const NicSample> end);

// Mean of ln slowdown over completed messages of the first `sizes` classes, restricted as above;
// NaN without a message. `log2_sum` in 1 / telemetry::kLogUnit.
double restricted_log_slowdown(std::uint64_t completed, std::uint64_t log2_sum,
                               std::uint64_t stalled);

// Quantile of slowdown, `stalled` messages above all others; interpolated in the bucket by ratio.
double slowdown_quantile(std::span<const std::uint64_t, telemetry::kSlowdownBuckets> buckets,
                         std::uint64_t stalled, double share);

// blocks.jsonl: one line per record, appended before the next block begins.
std::string record_line(const BlockRecord& record);  // with its newline

// Lines are whole or cut off: a last line without a newline, or that does not parse, is what a
// crash left and is dropped (`cut_off`); one in the middle is an error.
struct BlockFile {
  std::vector<BlockRecord> records;
  bool cut_off = false;
  std::size_t whole_bytes = 0;  // where the next line belongs; bytes beyond are cut off first
};
config::Read<BlockFile> read_blocks(std::string_view text, const std::string& source);

}  // namespace paceline::experiment::live
