/* MPI program of the test: every rank checks every byte that it gets. Prints "exchange passed". */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const size_t kSizes[] = {0, 1, 8, 1000, 4096, 65536, 1000003, 2097152};

static unsigned char byte_of(int from, int to, size_t size, size_t i) {
  return (unsigned char)((size_t)(from * 31 + to * 17) + size * 7 + i * 13 + (i >> 8));
}

static void fill(unsigned char* data, int from, int to, size_t size) {
  for (size_t i = 0; i < size; ++i) data[i] = byte_of(from, to, size, i);
}

static void check(const char* what, const unsigned char* data, int from, int to, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (data[i] == byte_of(from, to, size, i)) continue;
    printf("%s: wrong byte %zu of %zu from %d to %d\n", what, i, size, from, to);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static void ring(int rank, int ranks, size_t size) {
  unsigned char* out = malloc(size + 1);
  unsigned char* in = calloc(1, size + 1);
  const int next = (rank + 1) % ranks;
  const int last = (rank + ranks - 1) % ranks;
  MPI_Request requests[2];
  fill(out, rank, next, size);
  MPI_Irecv(in, (int)size, MPI_BYTE, last, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, (int)size, MPI_BYTE, next, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  check("ring", in, last, rank, size);
  free(out);
  free(in);
}

static void all_reduce(int rank, int ranks, int count) {
  int64_t* out = malloc(sizeof(int64_t) * (size_t)count);
  int64_t* in = malloc(sizeof(int64_t) * (size_t)count);
  for (int i = 0; i < count; ++i) out[i] = (int64_t)i * (rank + 1);
  MPI_Allreduce(out, in, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) {
    if (in[i] == (int64_t)i * ranks * (ranks + 1) / 2) continue;
    printf("all-reduce: wrong sum %d of %d at rank %d\n", i, count, rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  free(out);
  free(in);
}

static void all_to_all(int rank, int ranks, size_t size) {
  unsigned char* out = malloc(size * (size_t)ranks + 1);
  unsigned char* in = calloc(1, size * (size_t)ranks + 1);
  for (int to = 0; to < ranks; ++to) fill(out + size * (size_t)to, rank, to, size);
  MPI_Alltoall(out, (int)size, MPI_BYTE, in, (int)size, MPI_BYTE, MPI_COMM_WORLD);
  for (int from = 0; from < ranks; ++from) {
    check("all-to-all", in + size * (size_t)from, from, rank, size);
  }
  free(out);
  free(in);
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < sizeof(kSizes) / sizeof(kSizes[0]); ++i) {
      ring(rank, ranks, kSizes[i]);
      all_to_all(rank, ranks, kSizes[i] / 2);
    }
    all_reduce(rank, ranks, 1);
    all_reduce(rank, ranks, 100000);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("exchange passed: %d ranks\n", ranks);
  MPI_Finalize();
  return 0;
}
