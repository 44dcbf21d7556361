// The rules of a scenario, by topic. Each function adds its errors to the context.
#pragma once

#include "dataplane/config/scenario/table_reader.h"

namespace paceline::config {

void check_fabric(const Scenario& scenario, const GivenKeys& given, const Where& start,
                  ReadContext& context);
void check_transport(const Scenario& scenario, const GivenKeys& given, const Where& start,
                     ReadContext& context);
void check_probing(const Scenario& scenario, const GivenKeys& given, const Where& start,
                   ReadContext& context);
// The targets of faults.
void check_faults(const Scenario& scenario, const GivenKeys& given, const Where& start,
                  ReadContext& context);
// Servers and the placement of ranks, and where there is a workload its own keys.
void check_workload(const Scenario& scenario, const GivenKeys& given, const Where& start,
                    ReadContext& context);

}  // namespace paceline::config
