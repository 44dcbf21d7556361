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
// One statement a line; // and /* */ comments. Labels belong to their rank and come before they are
// used. An op that `irequires` another waits for all that the other one waits for.
//
// The calcs of one cpu run one after the other, in the order of the file as far as `requires`
// permits. Sends and receives do not hold a cpu: a send takes it for as long as handing over a
// message takes, which is not in the file, and a receive that is posted waits without it; two
// ranks that each list a receive before a send would otherwise wait for each other. Their order of
// issue, by which sends and receives are matched, is that of the file in the same way.
#pragma once

#include <string>
#include <string_view>

#include "tools/workload/jobs/imported.h"
#include "tools/workload/jobs/job.h"

namespace paceline::workload {

Imported<Job> parse_goal(std::string_view text, const std::string& source);
Imported<Job> read_goal_file(const std::string& path);

}  // namespace paceline::workload
