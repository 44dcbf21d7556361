// An all-to-all in which some ranks receive more than others.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tools/workload/draws/exchange_matrix.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::workload {

inline constexpr std::uint64_t kMostUnevenBytes = std::uint64_t{1} << 53;  // exact in a double

// Whether each transfer of an all-to-all carries what its sender has for its receiver, and nothing
// else.
bool is_direct_exchange(const Schedule& schedule);

// The algorithms whose schedules are direct in every group.
std::span<const std::string_view> direct_exchange_names();

// The bytes of each transfer of a direct exchange. In total a rank sends its entry of bytes_sent;
// transposed, it receives that. bytes: of a rank's whole buffer.
std::vector<std::uint64_t> uneven_bytes(const Schedule& schedule, std::uint64_t bytes,
                                        const ReceiverWeights& receivers, bool transposed);

}  // namespace paceline::workload
