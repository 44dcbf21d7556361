// Who holds up a job or a fabric, from what its edge knows. Peers are compared with each other;
// what counts is who stands out by much and for long. The order of decisions is host, port, path,
// core, so that a slow GPU is never taken for the network; none is a legal answer.
#pragma once

#include "control/diagnosis/evidence.h"
#include "control/diagnosis/verdict.h"

namespace paceline::diagnosis {

// In the order of Cause. Faults first, then what is as it was designed.
std::vector<Verdict> diagnose(const Evidence& evidence);

}  // namespace paceline::diagnosis
