/* A program that is broken on purpose, or goes by memory on purpose (injection_test.py).
 *
 *   injection_peer post write|send COUNT   requests one after another; prints how each completes, what
 *                                          state both queue pairs are in, and which events came
 *   injection_peer batch COUNT             the same of WRITEs posted at once
 *   injection_peer hear ROUNDS memory|completion [busy]
 *       the second device answers each WRITE of the first: once its last byte is there, or once its
 *       completion is; busy: it also posts all the time
 *   injection_peer read ROUNDS memory|completion   the next READ once the last byte of one is there, or
 *                                                  once it is complete
 */
#include <poll.h>
#include <stdbool.h>

#include "two_ends.h"

enum { kBytes = 256, kReceives = 64 };

struct pair {
  struct end ends[2];
  struct ibv_cq* cq[2];
  struct ibv_qp* qp[2];
  struct ibv_mr* mr[2];
};

static void open_pair(struct pair* p) {
  open_ends(p->ends);
  for (int i = 0; i < 2; ++i) {
    p->mr[i] = memory_of(&p->ends[i], 4 * kBytes);
    NEED((p->cq[i] = ibv_create_cq(p->ends[i].device, 1024, NULL, NULL, 0)) != NULL);
    struct ibv_qp_init_attr attr = {.send_cq = p->cq[i], .recv_cq = p->cq[i], .qp_type = IBV_QPT_RC};
    attr.cap.max_send_wr = attr.cap.max_recv_wr = 256;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    NEED((p->qp[i] = ibv_create_qp(p->ends[i].pd, &attr)) != NULL);
  }
  connect_both(p->ends, p->qp[0], p->qp[1]);
}

static void receive(struct pair* p, int i, uint64_t id) {
  struct ibv_sge sge = piece(p->mr[i], 3 * kBytes, 8);
  struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
  NEED(ibv_post_recv(p->qp[i], &wr, &bad) == 0);
}

static void post(struct pair* p, int from, enum ibv_wr_opcode opcode, uint64_t id, uint32_t bytes) {
  struct ibv_sge sge = piece(p->mr[from], 0, bytes);
  struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = (uintptr_t)p->mr[1 - from]->addr;
  wr.wr.rdma.rkey = p->mr[1 - from]->rkey;
  NEED(ibv_post_send(p->qp[from], &wr, &bad) == 0);
}

static void tell_state(struct pair* p) {
  for (int i = 0; i < 2; ++i) {
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    NEED(ibv_query_qp(p->qp[i], &attr, IBV_QP_STATE, &init) == 0);
    printf("state of %d: %d\n", i, attr.qp_state);
  }
}

/* Those that come until none has for a while. */
static void tell_events(struct pair* p) {
  for (int i = 0; i < 2; ++i) {
    struct pollfd fd = {p->ends[i].device->async_fd, POLLIN, 0};
    while (poll(&fd, 1, 300) > 0) {
      struct ibv_async_event event;
      NEED(ibv_get_async_event(p->ends[i].device, &event) == 0);
      printf("event of %d: %s\n", i, ibv_event_type_str(event.event_type));
      ibv_ack_async_event(&event);
    }
  }
}

static void tell_next(struct pair* p, double since) {
  const struct ibv_wc wc = next_completion(p->cq[0]);
  const char* const late = seconds() - since > 0.02 ? ", late" : "";
  printf("request %d: %s%s\n", (int)wc.wr_id, ibv_wc_status_str(wc.status), late);
}

static void post_all(struct pair* p, const char* what, int count) {
  const bool sends = strcmp(what, "send") == 0;
  const bool batch = strcmp(what, "batch") == 0;
  for (int i = 1; i <= kReceives; ++i) receive(p, 1, (uint64_t)i);
  for (int i = 1; i <= count; ++i) {
    const double begin = seconds();
    post(p, 0, sends ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, (uint64_t)i, 8);
    if (!batch) tell_next(p, begin);
  }
  for (int i = 1; batch && i <= count; ++i) tell_next(p, seconds());
  tell_state(p);
  tell_events(p);
}

static volatile unsigned char* memory_at(struct pair* p, int i) {
  return (volatile unsigned char*)p->mr[i]->addr;
}

/* Until the last byte is `value`, whatever is before it. */
static void wait_for_memory(volatile unsigned char* at, unsigned char value) {
  const double limit = seconds() + kPatienceSeconds;
  while (at[kBytes - 1] != value) {
    if (seconds() > limit) die("the last byte does not come");
  }
}

static void hear(struct pair* p, int rounds, bool by_memory, bool busy) {
  int torn = 0;
  for (int i = 1; i <= kReceives; ++i) receive(p, 1, 1), receive(p, 0, 2);
  for (int round = 1; round <= rounds; ++round) {
    const unsigned char value = (unsigned char)(round % 251 + 1);
    memset(p->mr[0]->addr, value, kBytes);
    post(p, 0, IBV_WR_RDMA_WRITE_WITH_IMM, 10, kBytes);
    struct ibv_wc wc = {.opcode = 0};
    if (by_memory) {
      wait_for_memory(memory_at(p, 1), value);
      torn += memory_at(p, 1)[0] != value;
      post(p, 1, IBV_WR_SEND, 11, 8);
    }
    while (ibv_poll_cq(p->cq[1], 1, &wc) == 0 || wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
      NEED(wc.status == IBV_WC_SUCCESS);
      static double last;
      if (!busy || seconds() < last + 0.0003) continue;
      last = seconds();
      post(p, 1, IBV_WR_SEND, 11, 0);
      receive(p, 0, 2);
    }
    receive(p, 1, 1);
    torn += !by_memory && memory_at(p, 1)[0] != value;
    if (!by_memory) post(p, 1, IBV_WR_SEND, 11, 8);
    /* The answer, and all else that came meanwhile. */
    do wc = next_completion(p->cq[0]); while (wc.opcode != IBV_WC_RECV || wc.byte_len != 8);
    receive(p, 0, 2);
  }
  printf("torn %d\n", torn);
}

static void read_on(struct pair* p, int rounds, bool by_memory) {
  int torn = 0;
  for (int round = 1; round <= rounds; ++round) {
    const unsigned char value = (unsigned char)(round % 251 + 1);
    memset(p->mr[1]->addr, value, kBytes);
    post(p, 0, IBV_WR_RDMA_READ, (uint64_t)round, kBytes);
    if (by_memory) {
      wait_for_memory(memory_at(p, 0), value);
      torn += memory_at(p, 0)[0] != value;
      receive(p, 1, 1);
      post(p, 0, IBV_WR_SEND, 0, 0);
      next_completion(p->cq[0]);
    } else if (next_completion(p->cq[0]).status != IBV_WC_SUCCESS) {
      die("a READ failed");
    }
    if (by_memory) next_completion(p->cq[0]);
    torn += !by_memory && memory_at(p, 0)[0] != value;
  }
  printf("torn %d\n", torn);
}

int main(int argc, char** argv) {
  struct pair p;
  if (argc < 3) die("injection_peer post|batch|hear|read ...");
  setvbuf(stdout, NULL, _IOLBF, 0);
  open_pair(&p);
  const bool by_memory = argc > 3 && strcmp(argv[3], "memory") == 0;
  if (strcmp(argv[1], "post") == 0 && argc > 3) {
    post_all(&p, argv[2], atoi(argv[3]));
  } else if (strcmp(argv[1], "batch") == 0) {
    post_all(&p, argv[1], atoi(argv[2]));
  } else if (strcmp(argv[1], "hear") == 0) {
    hear(&p, atoi(argv[2]), by_memory, argc > 4);
  } else if (strcmp(argv[1], "read") == 0) {
    read_on(&p, atoi(argv[2]), by_memory);
  } else {
    die("injection_peer %s", argv[1]);
  }
  return 0;
}
