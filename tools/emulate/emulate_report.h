// Output of `paceline emulate`, printed and written. For a run in virtual time nothing in it
// depends on the machine or its clock.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "dataplane/config/scenario.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {

// For people.
std::string emulation_text(const config::Scenario& scenario, const ScenarioRun& run);
// How well a run in real time kept time, as text.
std::string real_time_text(const RealTimeReport& report);
// The same as JSON.
nlohmann::ordered_json real_time_json(const RealTimeReport& report);
// For machines: schema 1, stable key order.
std::string emulation_json(const config::Scenario& scenario, const ScenarioRun& run);
// id,src,dst,bytes,start_ns,fct_ns,ideal_ns; fct_ns is empty for messages that did not complete.
std::string flows_csv(const ScenarioRun& run);

// One line per interval of the time series; see docs/telemetry.md.
std::string series_csv(const ScenarioRun& run);

}  // namespace paceline::tools
