// Schedules in GOAL text (spcl/LogGOPSim).
//
//   num_ranks N
//   rank R {                                         each of 0 .. N - 1 once
//     [label:] send SIZEb to RANK [tag T] [cpu C] [nic K]
//     [label:] recv SIZEb from RANK|-1 [tag T|-1] [cpu C] [nic K]
//     [label:] calc NANOSECONDS [cpu C]
//     label requires label                           starts when the other has ended
//     label irequires label                          starts when the other has started
//   }
//
// One statement per line; // and /* */ comments. A label belongs to its rank and is defined before
// it is used. An op that `irequires` another waits for everything that the other one waits for.
//
// The calcs of one cpu run one after the other, in the order of the file as far as `requires`
// permits. Sends and receives do not hold a cpu. A send takes it only to hand over the message, and
// the file does not say how long that takes. A posted receive waits without it: otherwise two ranks
// that each list a receive before a send would wait for each other. Sends and receives are matched
// in the order in which they are issued, which is that of the file in the same way.
#pragma once

#include <string>
#include <string_view>

#include "tools/workload/jobs/imported.h"
#include "tools/workload/jobs/job.h"

namespace paceline::workload {

Imported<Job> parse_goal(std::string_view text, const std::string& source);
Imported<Job> read_goal_file(const std::string& path);

}  // namespace paceline::workload
