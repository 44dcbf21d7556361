// The processes that an MPI has started for one command, as one of them sees them. MPI brings them
// together and has then done its part; from then on they speak over TCP, so that a process that
// dies is only a closed connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tools/task/ranks/mpi/mpi_start.h"
#include "tools/task/ranks/rank_process.h"
#include "tools/task/ranks/task_course.h"
#include "tools/task/ranks/task_server.h"
#include "tools/task/ranks/task_worker.h"
#include "tools/task/task_list.h"

namespace paceline::tools {

// What rank 0 has spent on handing out and gathering: not its own tasks.
struct RankCost {
  double cpu_seconds = 0;
  SocketCost sockets;
};

class RankTeam {
 public:
  // Null if no MPI has started this process, or if it has started only this one. On other ranks
  // than 0 it returns when rank 0 has made its first list, so that only rank 0 complains of bad
  // input. `jobs`: tasks at a time, 0: jobs_for(). Throws std::runtime_error with a sentence.
  static std::unique_ptr<RankTeam> join(unsigned jobs);
  // The command ends, on rank 0 for all ranks.
  ~RankTeam();
  RankTeam(const RankTeam&) = delete;
  RankTeam& operator=(const RankTeam&) = delete;

  std::uint32_t rank() const { return rank_; }
  bool first() const { return rank_ == 0; }
  std::uint32_t ranks() const { return ranks_; }
  unsigned jobs() const { return jobs_; }
  // The command ended before this rank had anything to do. Not on rank 0.
  bool ended() const { return ended_; }

  // Executes a list: the tasks of `wanted`, which only rank 0 reads. On other ranks, and on all
  // ranks unless `keepers` says otherwise, nothing is kept. All ranks call it with the same lists.
  RankRun run(TaskList& tasks, std::span<const std::size_t> wanted, Keepers keepers, bool quiet);

  RankCost cost() const;  // on rank 0

 private:
  explicit RankTeam(std::unique_ptr<MpiStart> mpi);

  std::unique_ptr<MpiStart> mpi_;
  std::unique_ptr<RankProcess> process_;
  std::uint32_t rank_ = 0;
  std::uint32_t ranks_ = 1;
  bool begun_ = false;    // there was a list
  bool complete_ = true;  // all of them were
  unsigned jobs_ = 1;
  bool ended_ = false;
  double joined_ = 0;
  std::unique_ptr<TaskServer> server_;  // on rank 0
  std::unique_ptr<TaskWorker> worker_;  // on the others
};

// The default number of tasks at a time: the processors that this process may use, but with several
// ranks on a machine at most its part of them.
unsigned jobs_for(std::uint32_t ranks_here);

}  // namespace paceline::tools
