// The process that an MPI has started keeps its place, and a child of it does the work: so a child
// that crashes, or is killed for want of memory, costs its rank and not the command. An mpirun ends
// all ranks when a process that it has started dies, or (Open MPI 4.1, between machines) never ends
// itself.
#pragma once

#include <cstdint>
#include <functional>

#include "dataplane/attach/descriptor.h"

namespace paceline::tools {

class MpiStart;

class RankProcess {
 public:
  // Goes on in a child. The process that called waits for it, hands on signals, leaves MPI and
  // ends, with the exit code of the child; that of rank 0 also if a signal has ended the child,
  // others then with 0. It calls `let_go` first, for what the child alone is to have. No other
  // thread may run. Throws std::runtime_error where there can be no child.
  RankProcess(MpiStart& mpi, std::uint32_t rank, const std::function<void()>& let_go);

  // Every rank has lived to the end of the command: leaving may wait for all of them.
  void set_whole();

 private:
  attach::Descriptor to_parent_;
};

}  // namespace paceline::tools
