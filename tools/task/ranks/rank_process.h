// The process that an MPI has started keeps its place, and a child of it does the work. So a child
// that crashes, or is killed for lack of memory, costs its rank and not the command. If a process
// that mpirun has started dies, mpirun ends all ranks, or (Open MPI 4.1, between machines) never
// ends itself.
#pragma once

#include <cstdint>
#include <functional>

#include "dataplane/attach/descriptors/descriptor.h"

namespace paceline::tools {

class MpiStart;

class RankProcess {
 public:
  // Continues in a child. The calling process waits for it, passes on signals, leaves MPI and ends
  // with the child's exit code (if a signal ended the child: rank 0 with its code, others with 0).
  // It calls `let_go` first, to release what only the child is to have. No other thread may run.
  // Throws std::runtime_error if no child can be made.
  RankProcess(MpiStart& mpi, std::uint32_t rank, const std::function<void()>& let_go);

  // Every rank has lived to the end of the command: leaving may wait for all of them.
  void set_whole();

 private:
  attach::Descriptor to_parent_;
};

}  // namespace paceline::tools
