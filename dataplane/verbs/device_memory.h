// Memory of the device, as ibv_alloc_dm hands it out.
#pragma once

#include <cstdint>

namespace paceline::verbs {

// Of one allocation; what NICs with such memory offer is of that order.
inline constexpr std::uint64_t kDeviceMemory = 256U << 10U;  // bytes

}  // namespace paceline::verbs
