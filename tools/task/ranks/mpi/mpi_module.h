/* The functions that paceline uses of an MPI: the rank of this process, a broadcast from rank 0,
   and the end. There is a module for each MPI, because their binary interfaces differ. It is loaded
   only into processes that this MPI has started: paceline itself links no MPI. Each function
   returns 0, or an error of MPI. Call them on one thread, in this order. */
#ifndef PACELINE_MPI_MODULE_H
#define PACELINE_MPI_MODULE_H

#ifdef __cplusplus
extern "C" {
#endif

struct PacelineMpiPlace {
  int rank;
  int ranks;
  int ranks_here; /* on this machine */
  int leaves;     /* call leave() if all ranks are alive at the end */
};

/* Also read as C. NOLINTBEGIN(modernize-use-using) */
typedef int (*PacelineMpiBegin)(struct PacelineMpiPlace* place);
typedef int (*PacelineMpiShare)(void* bytes, int count); /* from rank 0 */
typedef int (*PacelineMpiEnd)(void);                     /* returns when all ranks have called it */
typedef int (*PacelineMpiLeave)(void);                   /* likewise; the last call of a process */
/* NOLINTEND(modernize-use-using) */

int paceline_mpi_begin(struct PacelineMpiPlace* place);
int paceline_mpi_share(void* bytes, int count);
int paceline_mpi_end(void);
int paceline_mpi_leave(void);

#ifdef __cplusplus
}
#endif

#endif
