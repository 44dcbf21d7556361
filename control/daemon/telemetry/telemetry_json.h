// The sampler's data as JSON for the API.
#pragma once

#include "control/daemon/api/endpoint.h"
#include "control/daemon/telemetry/explain.h"
#include "control/daemon/telemetry/sampler.h"

namespace paceline::daemon {

// A row of /v1/nics; rates are those of the last whole second.
Json nic_summary(const Sampler& sampler, std::size_t nic, std::int64_t now_unix_ns);
// The same, with every series.
Json nic_details(const Sampler& sampler, std::size_t nic, std::int64_t now_unix_ns);
Json queue_pair_json(const telemetry::QueuePairRecord& record);
Json explanation_json(const Explanation& explanation);
Json history_json(const HistoryPart& part);

}  // namespace paceline::daemon
