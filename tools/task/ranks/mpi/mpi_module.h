/* What paceline asks of an MPI, and all that it asks: who am I, bring these bytes from rank 0 to
   all, we are done. A module is made for each MPI, since these differ in their binary interface,
   and is loaded only into processes that this MPI has started: paceline itself links no MPI. Each
   function returns 0, or an error of MPI. One thread, in this order. */
#ifndef PACELINE_MPI_MODULE_H
#define PACELINE_MPI_MODULE_H

#ifdef __cplusplus
extern "C" {
#endif

struct PacelineMpiPlace {
  int rank;
  int ranks;
  int ranks_here; /* on this machine */
  int leaves;     /* leave() is wanted where all ranks live to the end */
};

/* Also read as C. NOLINTBEGIN(modernize-use-using) */
typedef int (*PacelineMpiBegin)(struct PacelineMpiPlace* place);
typedef int (*PacelineMpiShare)(void* bytes, int count); /* from rank 0 */
typedef int (*PacelineMpiEnd)(void);                     /* returns when all ranks have come here */
typedef int (*PacelineMpiLeave)(void); /* likewise; the last thing that a process does */
/* NOLINTEND(modernize-use-using) */

int paceline_mpi_begin(struct PacelineMpiPlace* place);
int paceline_mpi_share(void* bytes, int count);
int paceline_mpi_end(void);
int paceline_mpi_leave(void);

#ifdef __cplusplus
}
#endif

#endif
