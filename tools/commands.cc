#include "tools/commands.h"

#include "tools/cli/cli.h"
#include "tools/diagnose/diagnose_command.h"
#include "tools/live_commands.h"

namespace paceline::tools {

void add_commands(const config::Command& app, int& exit_code) {
  add_ab_command(app, exit_code);
  add_report_command(app, exit_code);
  add_league_command(app, exit_code);
  add_sweep_command(app, exit_code);
  add_plan_commands(app, exit_code);
  add_emulate_command(app, exit_code);
  add_collective_command(app, exit_code);
  add_job_command(app, exit_code);
  add_diagnose_command(app, exit_code, watch_testbed);
  add_topology_command(app, exit_code);
  add_cc_command(app, exit_code);
  add_tune_command(app, exit_code);
  add_agree_command(app, exit_code);
  add_live_commands(app, exit_code);
  add_completion_command(app, exit_code);
}

}  // namespace paceline::tools
