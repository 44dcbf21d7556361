#include "tools/live_commands.h"

#include "tools/cli/cli.h"
#include "tools/host/experiment_command.h"
#include "tools/host/guard_command.h"
#include "tools/testbed/mesh/mesh_command.h"

namespace paceline::tools {

void add_live_commands(const config::Command& app, int& exit_code) {
  add_tuner_command(app, exit_code);
  add_capture_command(app, exit_code);
  add_replay_command(app, exit_code);
  add_join_command(app, exit_code);
  add_exec_command(app, exit_code);
  add_ci_command(app, exit_code);
  add_testbed_command(app, exit_code);
  add_mesh_command(app, exit_code);
  add_top_command(app, exit_code);
  add_params_command(app, exit_code);
  add_explain_command(app, exit_code);
  add_guard_command(app, exit_code);
  add_experiment_command(app, exit_code);
}

}  // namespace paceline::tools
