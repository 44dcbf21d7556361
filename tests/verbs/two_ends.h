/* Two devices in one program, and reliable connections between them: what room.c, boundaries.c and
 * failover.c begin with. In the first two, the first device sends and the second receives. */
#ifndef PACELINE_TESTS_VERBS_TWO_ENDS_H
#define PACELINE_TESTS_VERBS_TWO_ENDS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kPatienceSeconds = 60, kReads = 4 /* READs and atomics under way of a queue pair */ };

struct end {
  struct ibv_context* device;
  struct ibv_pd* pd;
  union ibv_gid gid;
};

static void die(const char* format, ...) {
  va_list list;
  va_start(list, format);
  printf("failed: ");
  vprintf(format, list);
  printf("\n");
  va_end(list);
  exit(1);
}

#define NEED(condition)                                                           \
  do {                                                                            \
    if (!(condition)) die("line %d: %s (errno %d)", __LINE__, #condition, errno); \
  } while (0)

static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline void open_end(struct end* end, struct ibv_device* device) {
  NEED((end->device = ibv_open_device(device)) != NULL);
  NEED((end->pd = ibv_alloc_pd(end->device)) != NULL);
  NEED(ibv_query_gid(end->device, 1, 0, &end->gid) == 0);
}

static inline void open_ends(struct end* ends) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  if (list == NULL || count < 2) die("%d devices, two are needed", count);
  for (int i = 0; i < 2; ++i) open_end(&ends[i], list[i]);
  ibv_free_device_list(list);
}

static inline void open_named(struct end* end, const char* name) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  int at = 0;
  while (at < count && strcmp(ibv_get_device_name(list[at]), name) != 0) ++at;
  if (at == count) die("none of the %d devices is %s", count, name);
  open_end(end, list[at]);
  ibv_free_device_list(list);
}

/* Memory of `bytes`, registered with every right. */
static inline struct ibv_mr* memory_of(struct end* end, size_t bytes) {
  void* memory = NULL;
  NEED(posix_memalign(&memory, 4096, bytes + 4096) == 0);
  memset(memory, 0, bytes + 4096);
  struct ibv_mr* mr = ibv_reg_mr(end->pd, memory, bytes + 4096,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
  NEED(mr != NULL);
  return mr;
}

static inline struct ibv_sge piece(const struct ibv_mr* mr, size_t offset, size_t bytes) {
  struct ibv_sge sge = {(uint64_t)(uintptr_t)mr->addr + offset, (uint32_t)bytes, mr->lkey};
  return sge;
}

static inline int to_state(struct ibv_qp* qp, enum ibv_qp_state state) {
  struct ibv_qp_attr attr = {.qp_state = state};
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static inline void connect_at(struct ibv_qp* qp, uint8_t port, const struct ibv_qp* to,
                              const union ibv_gid* gid) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = port};
  attr.qp_access_flags =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  NEED(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  memset(&attr, 0, sizeof(attr));
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = to->qp_num;
  attr.rq_psn = 1000;
  attr.max_dest_rd_atomic = kReads;
  attr.min_rnr_timer = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = *gid;
  attr.ah_attr.grh.hop_limit = 8;
  attr.ah_attr.port_num = port;
  NEED(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
  memset(&attr, 0, sizeof(attr));
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.sq_psn = 1000;
  attr.max_rd_atomic = kReads;
  NEED(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static inline void connect_one(struct ibv_qp* qp, const struct ibv_qp* to,
                               const union ibv_gid* gid) {
  connect_at(qp, 1, to, gid);
}

/* Both ends to RTS. */
static inline void connect_both(const struct end* ends, struct ibv_qp* first,
                                struct ibv_qp* second) {
  connect_one(first, second, &ends[1].gid);
  connect_one(second, first, &ends[0].gid);
}

/* The next completion, which must come. */
static inline struct ibv_wc next_completion(struct ibv_cq* cq) {
  struct ibv_wc wc;
  const double limit = seconds() + kPatienceSeconds;
  int n;
  while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) {
    if (seconds() > limit) die("no completion for %d s", kPatienceSeconds);
  }
  if (n < 0) die("ibv_poll_cq: %d", n);
  return wc;
}

#endif
