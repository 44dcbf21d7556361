// Traffic generators: a workload's parameters and a seed to a MessagePlan. Deterministic: the same
// input gives the same plan on every compiler and machine, and every host draws from a stream of
// its own. make_plan (workload.h) checks the preconditions and reports; here they are assertions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/config/scenario.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "tools/workload/cdf.h"

namespace paceline::workload {

// `fan_in` hosts (the first ones besides it) send message_bytes each to `receiver`.
MessagePlan incast(const config::WorkloadConfig& workload, std::uint32_t hosts, std::uint64_t seed);

// Every host sends message_bytes * (hosts - 1) in all. Host j attracts weight exp(skew * z_j), z_j
// standard normal; each row splits over the other hosts by weight, to the byte. A pair that gets no
// byte has no message.
MessagePlan all_to_all(const config::WorkloadConfig& workload, std::uint32_t hosts,
                       std::uint64_t seed);

// Every host sends to one other and receives from one other: one random cycle (Sattolo's shuffle),
// or h to h + workload.shift.
MessagePlan permutation(const config::WorkloadConfig& workload, std::uint32_t hosts,
                        std::uint64_t seed);

// Poisson arrivals at every host in [0, window), sizes from the CDF, destination uniform among the
// others. `load` is payload bytes over the host's link rate, as the HPCC simulator's generator
// counts it: headers come on top. With incast_load, incasts arrive in addition, also Poisson:
// receiver and senders are drawn for each, its messages begin at once, and all have message_bytes.
MessagePlan open_loop(const config::WorkloadConfig& workload, std::span<const Rate> host_rates,
                      const Cdf& sizes, std::uint64_t seed);

// Ring all-reduces of the given gradient buckets (bytes; each at least `hosts`), one after the
// other with buckets_in_flight overlapping. A bucket is cut into `hosts` segments; in step k of 2(n
// - 1) rank r sends segment (r - k) mod n to rank r + 1, chunk by chunk, each as soon as the same
// chunk of the step before has arrived (reduce-scatter, then all-gather).
MessagePlan ring_all_reduce(const config::WorkloadConfig& workload,
                            std::span<const std::uint64_t> buckets, std::uint32_t hosts,
                            std::uint64_t seed);

// Messages that ring_all_reduce will make.
std::uint64_t ring_message_count(const config::WorkloadConfig& workload,
                                 std::span<const std::uint64_t> buckets, std::uint32_t hosts);

// Sorts by (start, src, dst), keeping the order of equals. Dependencies stay.
void sort_plan(MessagePlan& plan);

// When each host begins: uniform in [0, jitter].
std::vector<Picos> host_starts(Picos jitter, std::uint32_t hosts, std::uint64_t seed);

}  // namespace paceline::workload
