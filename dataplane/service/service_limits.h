// The most that any setting may allow: what the code has room for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/transport/types.h"

namespace paceline::service {

inline constexpr std::uint32_t kMostInlineBytes = 1024;
inline constexpr std::uint32_t kMostRequests = 32768;  // QpConfig::send_queue_depth has 16 bits
inline constexpr std::uint32_t kMostSegments = transport::kMaxSegments;
inline constexpr std::uint32_t kMostEntries = 1U << 22U;
inline constexpr std::size_t kMostChannels = 1024;  // of a session: two descriptors each

// Of each NIC, queue pairs that the telemetry segment has room for; further ones are served as well
// but are not in it.
inline constexpr std::uint32_t kSegmentRecords = 2048;

}  // namespace paceline::service
