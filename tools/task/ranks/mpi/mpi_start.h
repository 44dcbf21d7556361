// Whether an MPI started this process, and which; the process's place among the ranks; and a few
// bytes from rank 0 to all of them. After end(), MPI has no part in what the processes do, until
// they leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/task/ranks/mpi/mpi_module.h"

namespace paceline::tools {

// "openmpi", "mpich", or "" if no MPI has started this process. Determined from what mpirun,
// mpiexec and srun put into the environment. PACELINE_MPI overrides it: one of these names, or
// "off". Throws std::runtime_error for another value.
std::string mpi_of_environment();

class MpiStart {
 public:
  // Loads the module for this MPI and begins. Throws std::runtime_error with what to install or to
  // build where there is none, or where MPI fails.
  explicit MpiStart(const std::string& mpi);

  std::uint32_t rank() const { return static_cast<std::uint32_t>(place_.rank); }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(place_.ranks); }
  std::uint32_t ranks_here() const { return static_cast<std::uint32_t>(place_.ranks_here); }

  // All ranks call it; all but rank 0 get the text that rank 0 gave. At most `most` bytes.
  std::string share(std::string text, std::size_t most);
  // Returns when all ranks have called it.
  void end();
  // The last thing that a process does, if all ranks live to see it: returns when all have called
  // it. Does nothing if this MPI does not need it. With `seconds` > 0 the process ends by SIGALRM
  // if that takes longer.
  bool leaves() const { return place_.leaves != 0; }
  void leave(unsigned seconds);

 private:
  PacelineMpiPlace place_{};
  PacelineMpiShare share_ = nullptr;
  PacelineMpiEnd end_ = nullptr;
  PacelineMpiLeave leave_ = nullptr;
};

}  // namespace paceline::tools
