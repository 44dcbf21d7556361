// How a range of the program's memory is to be reached by the service: asked before a region is
// registered, and given back after the service has let go of it.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/attach/protocol.h"

namespace paceline::verbs {

// The extents of [address, address + length), in order; none for a length of 0.
std::vector<attach::Extent> prepare_extents(std::uint64_t address, std::uint64_t length);

// The service has drained and unmapped what prepare_extents() gave for the range.
void release_extents(std::uint64_t address, std::uint64_t length);

}  // namespace paceline::verbs
