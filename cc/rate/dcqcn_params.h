// DCQCN's parameter table and profiles, each value with the place it was read at.
//
//   [D15]  Zhu et al., SIGCOMM 2015, values for 40 Gb/s. Taken from a collection of parameters, the
//          paper itself was not read again. Timers, g and F appear again in [HR] or [NS3], B in
//          uet-htsim's dcqcn.cpp; R_AI = 40 Mb/s rests on the collection alone.
//   [NS3]  bobzhuyb/ns3-rdma, src/point-to-point/model/qbb-net-device.cc: the simulator of the
//          paper's first author.
//   [HR]   alibaba-edu/High-Precision-Congestion-Control, simulation/run.py, `--cc dcqcn` and
//          `--cc dcqcn_paper`; R_AI and R_HAI are 5 and 50 Mb/s times bandwidth / 25 Gb/s there.
//   [HC]   the same repository, simulation/src/point-to-point/model/rdma-hw.cc: code and defaults.
//   [NV]   NVIDIA DOCA 3.4, "DCQCN CC Parameters", Mellanox DOC-2790, and the defaults that
//          `mlxconfig query` prints for a ConnectX card.
#pragma once

#include <span>

#include "cc/interface/param_spec.h"

namespace paceline::cc {

// In the order of Dcqcn's indices of parameters.
std::span<const ParamSpec> dcqcn_specs();
std::span<const Profile> dcqcn_profiles();

}  // namespace paceline::cc
