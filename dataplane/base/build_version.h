#pragma once

namespace paceline {

// The version with the commit that was built, "0.2.0 (6b81f6c40d5e)", "-dirty" behind it for a tree
// with changes; without it where there is none (cmake/PacelineCommit.cmake). For people: results
// files have kResultsVersion (control/experiment), so that equal results have equal files.
const char* build_version();

}  // namespace paceline
