// The most that any setting may allow: what the code has room for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/transport/interface/types.h"

namespace paceline::service {

inline constexpr std::uint32_t kMostInlineBytes = 1024;
inline constexpr std::uint32_t kMostRequests = 32768;  // QpConfig::send_queue_depth has 16 bits
inline constexpr std::uint32_t kMostSegments = transport::kMaxSegments;
inline constexpr std::uint32_t kMostEntries = 1U << 22U;
inline constexpr std::size_t kMostChannels = 1024;  // of a session
inline constexpr std::uint64_t kChannelDescriptors = 2;
// The descriptors of a session: its connection; the program's process, folder, state and address
// space; the process that copies; its memory, doorbells, event descriptor and pipe.
inline constexpr std::uint64_t kSessionDescriptors = 11;
// A tenant has half of the service's descriptors, and at least this many: a service that may open
// fewer than twice as many serves one user.
inline constexpr std::uint64_t kFewDescriptors = 512;

// Queue pairs per NIC in the telemetry segment. Further queue pairs are served but not in the
// segment.
inline constexpr std::uint32_t kSegmentRecords = 2048;

}  // namespace paceline::service
