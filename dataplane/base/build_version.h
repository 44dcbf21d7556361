#pragma once

namespace paceline {

// The version with the commit that was built, "0.2.0 (6b81f6c40d5e)", with "-dirty" for a tree with
// changes; without a commit if it is unknown (cmake/PacelineCommit.cmake). For display: results
// files have kResultsVersion (control/experiment) instead, so that equal results have equal files.
const char* build_version();

}  // namespace paceline
