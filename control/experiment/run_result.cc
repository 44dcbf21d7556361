#include "control/experiment/run_result.h"

namespace paceline::experiment {

std::string_view to_text(RunStatus status) {
  switch (status) {
    case RunStatus::ok:
      return "ok";
    case RunStatus::unfinished:
      return "unfinished";
    case RunStatus::failed:
      return "failed";
  }
  return "?";
}

}  // namespace paceline::experiment
