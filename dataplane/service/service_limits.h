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
inline constexpr std::size_t kMostChannels = 1024;  // of a session
inline constexpr std::uint64_t kChannelDescriptors = 2;
// Its connection, the program's process, folder, state and address space, its memory, doorbells,
// event descriptor and pipe.
inline constexpr std::uint64_t kSessionDescriptors = 10;
// The shared memory of a queue, and what the engine keeps for the same requests, which is less than
// twice as much; `kQueueBytes` for the rest of it.
inline constexpr std::uint64_t kQueueCopies = 3;
inline constexpr std::uint64_t kQueueBytes = std::uint64_t{16} << 10U;

// Of each NIC, queue pairs that the telemetry segment has room for; further ones are served as well
// but are not in it.
inline constexpr std::uint32_t kSegmentRecords = 2048;

}  // namespace paceline::service
