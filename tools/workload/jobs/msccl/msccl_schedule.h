// Makes the schedule of an MSCCL program (msccl_file.h says how).
#pragma once

#include <string>

#include "tools/workload/files/text_table.h"
#include "tools/workload/jobs/msccl/msccl_program.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::workload {

// Adds errors to `errors`: sends and receives that do not match, steps that wait for themselves,
// places that hold nothing.
Schedule make_msccl_schedule(const MscclProgram& program, const std::string& source,
                             TableErrors& errors);

}  // namespace paceline::workload
