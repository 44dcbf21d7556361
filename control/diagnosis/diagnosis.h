// Names what holds up a job or a fabric, from measurements at its edge. Ranks, NICs and links are
// compared with their peers; one that differs much and for long is reported. The rules run in the
// order host, port, path, core, so that a slow GPU is never taken for the network. There may be no
// verdict.
#pragma once

#include "control/diagnosis/evidence.h"
#include "control/diagnosis/verdict.h"

namespace paceline::diagnosis {

// Faults first, then what the design causes, each in the order of Cause.
std::vector<Verdict> diagnose(const Evidence& evidence);

}  // namespace paceline::diagnosis
