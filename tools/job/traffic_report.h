// Traffic of training as a table and as JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/job/traffic_task.h"

namespace paceline::tools {

// Decimal units, four digits: "4.102 GB".
std::string si_bytes(double bytes);

std::string traffic_text(const TrafficTask& task,
                         const std::vector<workload::DimensionTraffic>& rows);
std::string traffic_json(const TrafficTask& task,
                         const std::vector<workload::DimensionTraffic>& rows);

}  // namespace paceline::tools
