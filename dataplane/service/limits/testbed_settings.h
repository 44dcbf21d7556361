// [service] of a testbed file as the service's settings.
#pragma once

#include "dataplane/config/testbed/testbed.h"
#include "dataplane/service/limits/service_settings.h"

namespace paceline::service {

ServiceSettings settings_of(const config::ServiceConfig& config);

}  // namespace paceline::service
