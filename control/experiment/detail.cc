#include "control/experiment/detail.h"

#include <bit>

namespace paceline::experiment {
namespace {

constexpr double kThousandths = 1000.0;

// clang-format off: a table
constexpr std::array<SignalSpec, kSignals> kTable{{
    {Signal::deepest_queue, "deepest_queue_bytes", "bytes", true,
     "fullest switch port, greatest of the looks in the interval"},
    {Signal::queued, "queued_bytes", "bytes", true,
     "all switch ports together, greatest of the looks in the interval"},
    {Signal::delivered, "delivered_bytes", "bytes", false,
     "payload that receivers accepted in sequence, all hosts"},
    {Signal::paused, "paused_ps", "ps", false,
     "time for which a class of a link was paused, summed over links and classes"},
    {Signal::cnps, "cnps", "packets", false, "congestion notification packets sent"},
    {Signal::marked, "marked_packets", "packets", false,
     "packets marked congestion-experienced, all switches"},
    {Signal::dropped, "dropped_packets", "packets", false, "packets lost in the fabric"},
    {Signal::retransmitted, "retransmitted_bytes", "bytes", false, "payload sent again"},
}};
// clang-format on

constexpr bool in_order() {
  for (std::size_t i = 0; i < kSignals; ++i) {
    if (static_cast<std::size_t>(kTable[i].signal) != i) return false;
  }
  return true;
}
static_assert(in_order(), "rows follow the enumerators");

SizeSlowdown bin_of(unsigned octave, const Histogram& values) {
  const auto at = [&values](double q) {
    return static_cast<double>(values.quantile(q)) / kThousandths;
  };
  return {std::uint64_t{1} << octave, values.count(), at(0.5), at(0.95), at(0.99), at(1)};
}

}  // namespace

const std::array<SignalSpec, kSignals>& signal_table() { return kTable; }

unsigned size_octave(std::uint64_t message_bytes) {
  return message_bytes <= 1 ? 0U : static_cast<unsigned>(std::bit_width(message_bytes - 1));
}

void Distribution::add(std::uint64_t message_bytes, Picos fct, Picos ideal) {
  fct_ns.record(static_cast<std::uint64_t>(fct.count) / 1000);
  const double factor = static_cast<double>(fct.count) / static_cast<double>(ideal.count);
  slowdown[size_octave(message_bytes)].record(static_cast<std::uint64_t>(factor * kThousandths));
}

void Distribution::merge(const Distribution& other) {
  runs += other.runs;
  outstanding += other.outstanding;
  fct_ns.merge(other.fct_ns);
  for (const auto& [octave, values] : other.slowdown) slowdown[octave].merge(values);
}

ArmFigures figures_of(const ArmDetail& detail) {
  const Distribution& from = detail.distribution;
  ArmFigures out;
  out.scenario = detail.scenario;
  out.arm = detail.arm;
  out.runs = from.runs;
  out.messages = from.fct_ns.count();
  out.outstanding = from.outstanding;
  std::uint64_t below = 0;
  from.fct_ns.for_each_bucket([&](std::uint64_t lowest, std::uint64_t width, std::uint64_t count) {
    below += count;
    out.fct_ns.push_back({lowest + (width - 1) / 2, below});
  });
  if (!out.fct_ns.empty()) {  // the ends are known exactly
    out.fct_ns.front().value = from.fct_ns.min();
    out.fct_ns.back().value = from.fct_ns.max();
  }
  for (const auto& [octave, values] : from.slowdown) {
    out.slowdown.push_back(bin_of(octave, values));
  }
  out.series = detail.series;
  return out;
}

const ArmFigures* Detail::find(std::string_view scenario, std::string_view arm) const {
  for (const ArmFigures& figures : arms) {
    if (figures.scenario == scenario && figures.arm == arm) return &figures;
  }
  return nullptr;
}

}  // namespace paceline::experiment
