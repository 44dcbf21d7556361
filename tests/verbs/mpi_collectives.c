/* Times MPI_Allreduce, sum of float32 in place: mpi_collectives ITERATIONS BYTES...
 *
 * Each size has one iteration that is not counted. Every iteration begins after a barrier, with
 * data of its own; after another barrier every rank compares every element. Prints one line of JSON
 * for a size: the time is the mean of the slowest rank, the bus bandwidth is
 * size / time * 2(n-1)/n. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Each rank adds its own bit of the sum, 2^rank times a number of the element: a sum that lacks a
 * rank, or has one twice, is wrong. Below 2^24, so exact in any order. */
#define MOST_RANKS 12

static uint32_t number_of(uint32_t element, uint32_t iteration) {
  return ((element * 2654435761u + iteration * 2246822519u) >> 20) | 1;
}

static void fill(float* data, int count, int rank, int iteration) {
  for (int i = 0; i < count; ++i) {
    data[i] = (float)(number_of((uint32_t)i, (uint32_t)iteration) << rank);
  }
}

static int wrong_elements(const float* data, int count, int ranks, int iteration) {
  const uint32_t all = (1u << ranks) - 1;
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    wrong += data[i] != (float)(number_of((uint32_t)i, (uint32_t)iteration) * all);
  }
  return wrong;
}

static void run_size(int rank, int ranks, long bytes, int iterations) {
  const int count = (int)(bytes / (long)sizeof(float));
  float* const data = malloc((size_t)bytes);
  double own_seconds = 0, seconds = 0;
  long long own_wrong = 0, wrong = 0;
  if (data == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i <= iterations; ++i) {
    fill(data, count, rank, i);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (i > 0) own_seconds += (MPI_Wtime() - begin) / iterations;
    MPI_Barrier(MPI_COMM_WORLD);
    own_wrong += wrong_elements(data, count, ranks, i);
  }
  MPI_Reduce(&own_seconds, &seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&own_wrong, &wrong, 1, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    const double algorithm = (double)bytes / seconds / 1e9;
    printf("{\"bytes\": %ld, \"ranks\": %d, \"took_us\": %.1f, \"bus_gbytes\": %.4f, \"wrong\": "
           "%lld}\n",
           bytes, ranks, seconds * 1e6, algorithm * 2 * (ranks - 1) / ranks, wrong);
    fflush(stdout);
  }
  free(data);
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int iterations = argc > 2 ? atoi(argv[1]) : 0;
  if (iterations < 1 || ranks > MOST_RANKS) {
    fprintf(stderr, "mpi_collectives ITERATIONS BYTES...: expected 1 iteration or more, one size "
                    "or more, at most %d ranks\n", MOST_RANKS);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  for (int i = 2; i < argc; ++i) run_size(rank, ranks, atol(argv[i]), iterations);
  MPI_Finalize();
  return 0;
}
