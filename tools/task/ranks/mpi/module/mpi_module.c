/* Compiled once by the compiler wrapper of each MPI that is found (CMakeLists.txt).

   When to finalize. With mpirun of Open MPI at once: with --enable-recovery no later death concerns it.
   Not so with MPICH: its hydra ends all processes when one dies that has finalized, even with
   -disable-auto-cleanup, and without that option when one ends that has not. So there processes finalize
   at their end, and only where all live to see it, for it waits for all. */
#include "../mpi_module.h"

#include <mpi.h>
#include <stddef.h>

int paceline_mpi_begin(struct PacelineMpiPlace* place) {
  MPI_Comm here;
  int error = MPI_Init(NULL, NULL);
  if (error == MPI_SUCCESS) error = MPI_Comm_rank(MPI_COMM_WORLD, &place->rank);
  if (error == MPI_SUCCESS) error = MPI_Comm_size(MPI_COMM_WORLD, &place->ranks);
  if (error == MPI_SUCCESS) {
    error = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  }
  if (error == MPI_SUCCESS) error = MPI_Comm_size(here, &place->ranks_here);
#ifdef OPEN_MPI
  place->leaves = 0;
#else
  place->leaves = 1;
#endif
  return error;
}

int paceline_mpi_share(void* bytes, int count) {
  return MPI_Bcast(bytes, count, MPI_BYTE, 0, MPI_COMM_WORLD);
}

int paceline_mpi_end(void) {
  int error = MPI_Barrier(MPI_COMM_WORLD);
#ifdef OPEN_MPI
  if (error == MPI_SUCCESS) error = MPI_Finalize();
#endif
  return error;
}

int paceline_mpi_leave(void) {
#ifdef OPEN_MPI
  return MPI_SUCCESS;
#else
  return MPI_Finalize();
#endif
}
