// GET /v1/look: one look at this host, for commands that compare hosts (`paceline diagnose
// --fleet`).
#pragma once

#include "control/daemon/api/endpoint.h"
#include "control/daemon/service_link/clock.h"
#include "control/daemon/service_link/control_client.h"
#include "control/daemon/telemetry/sampler.h"

namespace paceline::daemon {

// All arguments outlive the endpoint.
void add_look_endpoint(Endpoints& endpoints, const Sampler& sampler, ControlClient& service,
                       const Clock& clock);

}  // namespace paceline::daemon
