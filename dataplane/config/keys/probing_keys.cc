// The keys of [probing].
#include <array>

#include "dataplane/config/keys/scenario_key_parts.h"

namespace paceline::config {

namespace {

using namespace key_unit;

constexpr auto kProbingKeys = std::to_array<KeySpec>({
    {.path = "probing.enabled",
     .field = PACELINE_FIELD(probing.enabled),
     .meaning = "Hosts probe each other, as with `paceline mesh`."},
    {.path = "probing.share",
     .field = PACELINE_FIELD(probing.share),
     .min = 1e-6,
     .max = 0.1,
     .meaning = "Share of a link's rate."},
    {.path = "probing.paths",
     .field = PACELINE_FIELD(probing.paths),
     .min = 1,
     .max = 64,
     .meaning = "UDP source ports, in turn."},
    {.path = "probing.clock_offset",
     .field = PACELINE_FIELD(probing.clock_offset),
     .min = 0,
     .max = kSecond,
     .meaning = "The most by which host clocks are wrong at the start, drawn."},
    {.path = "probing.clock_drift",
     .field = PACELINE_FIELD(probing.clock_drift_ppm),
     .min = 0,
     .max = 400,
     .meaning = "Parts per million, at most, by which they run fast or slow."},
});

}  // namespace

std::span<const KeySpec> probing_keys() { return kProbingKeys; }

}  // namespace paceline::config
