// /v1/nics, queue pairs, series, explain and /metrics.
#pragma once

#include <functional>

#include "control/daemon/api/endpoint.h"
#include "control/daemon/service_link/clock.h"
#include "control/daemon/telemetry/metrics_text.h"
#include "control/daemon/telemetry/sampler.h"

namespace paceline::daemon {

// All arguments outlive the endpoints.
void add_telemetry_endpoints(Endpoints& endpoints, const Sampler& sampler, const Clock& clock,
                             std::function<DaemonFigures()> figures);

}  // namespace paceline::daemon
