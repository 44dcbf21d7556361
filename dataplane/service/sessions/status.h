// The JSON text of the service's status (docs/service.md).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "dataplane/service/sessions/management_link.h"
#include "dataplane/service/workers/service.h"

namespace paceline::service {

class Session;

// On the control thread; asks each worker for the report of its NICs. `only`: the text contains
// sessions of this tenant only.
std::string status_text(Service& service, const std::vector<const Session*>& sessions,
                        std::optional<uid_t> only, const ManagementCounts& management);

}  // namespace paceline::service
