/* What happens at the ends of queues: exactly full, one beyond, empty, and gone.
 *
 *   boundaries CASE    prints "CASE passed"
 */
#include <pthread.h>
#include <stdatomic.h>

#include "two_ends.h"

enum { kQueue = 16, kBytes = 1 << 16 };

static struct end ends[2];
static struct ibv_mr* from;
static struct ibv_mr* into;

struct link {
  struct ibv_cq* cq[2];
  struct ibv_qp* qp[2];
  struct ibv_qp_cap cap;
};

struct wanted {
  uint32_t requests, pieces, inline_bytes, completions;
  struct ibv_srq* srq;
  struct ibv_comp_channel* channel;
};

static struct link make_link(struct wanted w) {
  struct link l;
  if (w.requests == 0) w.requests = kQueue;
  if (w.pieces == 0) w.pieces = 1;
  if (w.completions == 0) w.completions = 4 * kQueue;
  for (int i = 0; i < 2; ++i) {
    l.cq[i] = ibv_create_cq(ends[i].device, (int)w.completions, NULL, i == 1 ? w.channel : NULL, 0);
    NEED(l.cq[i] != NULL);
    struct ibv_qp_init_attr attr = {.send_cq = l.cq[i], .recv_cq = l.cq[i], .qp_type = IBV_QPT_RC};
    if (i == 1) attr.srq = w.srq;
    attr.cap.max_send_wr = attr.cap.max_recv_wr = w.requests;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = w.pieces;
    attr.cap.max_inline_data = w.inline_bytes;
    NEED((l.qp[i] = ibv_create_qp(ends[i].pd, &attr)) != NULL);
    if (i == 0) l.cap = attr.cap;
  }
  connect_both(ends, l.qp[0], l.qp[1]);
  return l;
}

static void unmake_link(struct link* l) {
  for (int i = 0; i < 2; ++i) {
    NEED(ibv_destroy_qp(l->qp[i]) == 0);
    NEED(ibv_destroy_cq(l->cq[i]) == 0);
  }
}

static int send_of(struct ibv_qp* qp, enum ibv_wr_opcode opcode, struct ibv_sge* list, int count,
                   unsigned flags, int id) {
  struct ibv_send_wr wr = {
      .wr_id = (uint64_t)id, .sg_list = list, .num_sge = count, .opcode = opcode};
  struct ibv_send_wr* bad = NULL;
  wr.send_flags = flags;
  wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)into->addr;
  wr.wr.rdma.rkey = into->rkey;
  return ibv_post_send(qp, &wr, &bad);
}

static int send_one(struct ibv_qp* qp, enum ibv_wr_opcode opcode, size_t bytes, int id) {
  struct ibv_sge sge = piece(from, 0, bytes);
  return send_of(qp, opcode, &sge, 1, IBV_SEND_SIGNALED, id);
}

static int receive_one(struct ibv_qp* qp, struct ibv_srq* srq, struct ibv_sge* list, int count,
                       int id) {
  struct ibv_recv_wr wr = {.wr_id = (uint64_t)id, .sg_list = list, .num_sge = count};
  struct ibv_recv_wr* bad = NULL;
  return srq != NULL ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);
}

static void receive_bytes(struct ibv_qp* qp, struct ibv_srq* srq, size_t bytes, int id) {
  struct ibv_sge sge = piece(into, 0, bytes);
  NEED(receive_one(qp, srq, &sge, 1, id) == 0);
}

static struct ibv_wc success(struct ibv_cq* cq) {
  const struct ibv_wc wc = next_completion(cq);
  if (wc.status != IBV_WC_SUCCESS) die("completed with %s", ibv_wc_status_str(wc.status));
  return wc;
}

static void expect_event(struct ibv_context* device, enum ibv_event_type type) {
  struct ibv_async_event event;
  NEED(ibv_get_async_event(device, &event) == 0);
  if (event.event_type != type) die("%s", ibv_event_type_str(event.event_type));
  ibv_ack_async_event(&event);
}

/* Completions that wait fill the queue to its last place; nothing is lost. */
static void full_completion_queue(void) {
  struct link l = make_link((struct wanted){.completions = kQueue});
  if (l.cap.max_send_wr != kQueue || l.cq[0]->cqe != kQueue) {
    die("%u sends, %d completions", l.cap.max_send_wr, l.cq[0]->cqe);
  }
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < kQueue; ++i) NEED(send_one(l.qp[0], IBV_WR_RDMA_WRITE, 8, i) == 0);
    if (round % 20 == 0) { /* all of them wait at once */
      const double until = seconds() + 0.02;
      while (seconds() < until) {
      }
    }
    for (int i = 0; i < kQueue; ++i) NEED(success(l.cq[0]).wr_id == (uint64_t)i);
  }
  unmake_link(&l);
}

/* One more than fits: the queue is in error and the program is told. */
static void overrun(void) {
  struct link l = make_link((struct wanted){.requests = 2 * kQueue, .completions = kQueue});
  for (int i = 0; i <= kQueue; ++i) NEED(send_one(l.qp[0], IBV_WR_RDMA_WRITE, 8, i) == 0);
  expect_event(ends[0].device, IBV_EVENT_CQ_ERR);
  expect_event(ends[0].device, IBV_EVENT_QP_FATAL);
  for (int i = 0; i < kQueue; ++i) NEED(success(l.cq[0]).wr_id == (uint64_t)i);
  unmake_link(&l);
}

/* What waits is kept, larger and smaller; too small for it is refused and changes nothing. */
static void resize(void) {
  struct link l = make_link((struct wanted){.requests = 2 * kQueue, .completions = kQueue});
  for (int i = 0; i < kQueue; ++i) NEED(send_one(l.qp[0], IBV_WR_RDMA_WRITE, 8, i) == 0);
  const double until = seconds() + 0.05;
  while (seconds() < until) {
  }
  NEED(ibv_resize_cq(l.cq[0], kQueue / 2) != 0);
  NEED(l.cq[0]->cqe == kQueue);
  NEED(ibv_resize_cq(l.cq[0], 2 * kQueue) == 0);
  NEED(l.cq[0]->cqe == 2 * kQueue);
  for (int i = kQueue; i < 2 * kQueue; ++i) NEED(send_one(l.qp[0], IBV_WR_RDMA_WRITE, 8, i) == 0);
  for (int i = 0; i < kQueue; ++i) NEED(success(l.cq[0]).wr_id == (uint64_t)i);
  const double later = seconds() + 0.05;
  while (seconds() < later) {
  }
  NEED(ibv_resize_cq(l.cq[0], kQueue) == 0);
  for (int i = kQueue; i < 2 * kQueue; ++i) NEED(success(l.cq[0]).wr_id == (uint64_t)i);
  for (int round = 0; round < 100; ++round) { /* while completions come */
    for (int i = 0; i < kQueue; ++i) NEED(send_one(l.qp[0], IBV_WR_RDMA_WRITE, 8, i) == 0);
    NEED(ibv_resize_cq(l.cq[0], round % 2 == 0 ? 4 * kQueue : kQueue) == 0);
    for (int i = 0; i < kQueue; ++i) NEED(success(l.cq[0]).wr_id == (uint64_t)i);
  }
  unmake_link(&l);
}

/* As many pieces as the device says, at both ends; one more is refused. */
static void pieces(void) {
  struct ibv_device_attr device;
  NEED(ibv_query_device(ends[0].device, &device) == 0);
  const int most = device.max_sge;
  struct link l = make_link((struct wanted){.pieces = (uint32_t)most});
  struct ibv_sge out[64], in[64];
  NEED(most < 64);
  unsigned char* const bytes = from->addr;
  for (int i = 0; i < kBytes; ++i) bytes[i] = (unsigned char)(i * 7 + (i >> 8));
  size_t total = 0;
  for (int i = 0; i <= most; ++i) { /* a piece may be empty */
    const size_t length = (size_t)(i % 3) * 37;
    out[i] = piece(from, (size_t)i * 200, length);
    total += length;
  }
  NEED(send_of(l.qp[0], IBV_WR_SEND, out, most + 1, IBV_SEND_SIGNALED, 0) == EINVAL);
  total -= out[most].length;
  size_t given = 0;
  for (int i = 0; i < most; ++i) {
    const size_t rest = total - given;
    const size_t length = i + 1 == most ? rest : rest < 41 ? rest : 41;
    in[i] = piece(into, (size_t)i * 500, length);
    given += length;
  }
  NEED(receive_one(l.qp[1], NULL, in, most, 1) == 0);
  NEED(send_of(l.qp[0], IBV_WR_SEND, out, most, IBV_SEND_SIGNALED, 2) == 0);
  NEED(success(l.cq[0]).wr_id == 2);
  const struct ibv_wc wc = success(l.cq[1]);
  if (wc.byte_len != total) die("%u bytes of %zu", wc.byte_len, total);
  int at = 0, within = 0;
  for (int i = 0; i < most; ++i) {
    for (uint32_t b = 0; b < in[i].length; ++b, ++within) {
      while (within == (int)out[at].length) ++at, within = 0;
      const unsigned char* const sent = (const unsigned char*)(uintptr_t)out[at].addr + within;
      if (((const unsigned char*)(uintptr_t)in[i].addr)[b] != *sent) die("piece %d differs", i);
    }
  }
  struct ibv_sge sge[65];
  for (int i = 0; i < 65; ++i) sge[i] = piece(into, 0, 1);
  NEED(receive_one(l.qp[1], NULL, sge, most + 1, 1) == EINVAL);
  unmake_link(&l);
}

/* Messages without a byte, with and without a list; a WRITE needs no key then. */
static void empty_messages(void) {
  struct link l = make_link((struct wanted){0});
  struct ibv_sge nothing = piece(from, 0, 0);
  for (int i = 0; i < 4; ++i) NEED(receive_one(l.qp[1], NULL, NULL, 0, i) == 0);
  NEED(send_of(l.qp[0], IBV_WR_SEND, NULL, 0, IBV_SEND_SIGNALED, 0) == 0);
  NEED(send_of(l.qp[0], IBV_WR_SEND, &nothing, 1, IBV_SEND_SIGNALED, 1) == 0);
  NEED(send_of(l.qp[0], IBV_WR_SEND_WITH_IMM, NULL, 0, IBV_SEND_SIGNALED | IBV_SEND_INLINE, 2) ==
       0);
  NEED(send_of(l.qp[0], IBV_WR_RDMA_WRITE_WITH_IMM, NULL, 0, IBV_SEND_SIGNALED, 3) == 0);
  NEED(send_of(l.qp[0], IBV_WR_RDMA_WRITE, NULL, 0, IBV_SEND_SIGNALED, 4) == 0);
  NEED(send_of(l.qp[0], IBV_WR_RDMA_READ, NULL, 0, IBV_SEND_SIGNALED, 5) == 0);
  for (int i = 0; i < 6; ++i) NEED(success(l.cq[0]).wr_id == (uint64_t)i);
  for (int i = 0; i < 4; ++i) {
    const struct ibv_wc wc = success(l.cq[1]);
    NEED(wc.wr_id == (uint64_t)i && wc.byte_len == 0);
    NEED(((wc.wc_flags & IBV_WC_WITH_IMM) != 0) == (i >= 2));
    NEED(wc.opcode == (i == 3 ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV));
  }
  unmake_link(&l);
}

/* As many bytes as were agreed, and not one more; the memory may change at once. */
static void inline_bytes(void) {
  struct link l = make_link((struct wanted){.inline_bytes = 100, .pieces = 2});
  const size_t most = l.cap.max_inline_data;
  NEED(most >= 100 && most < 4096);
  unsigned char bytes[4096];
  struct ibv_sge list[2] = {{(uint64_t)(uintptr_t)bytes, 40, 0},
                            {(uint64_t)(uintptr_t)bytes + 40, (uint32_t)most - 39, 0}};
  NEED(send_of(l.qp[0], IBV_WR_SEND, list, 2, IBV_SEND_SIGNALED | IBV_SEND_INLINE, 0) == EINVAL);
  list[1].length -= 1;
  for (int round = 0; round < 500; ++round) {
    receive_bytes(l.qp[1], NULL, most, 1);
    memset(bytes, round, sizeof(bytes));
    NEED(send_of(l.qp[0], IBV_WR_SEND, list, 2, IBV_SEND_SIGNALED | IBV_SEND_INLINE, 0) == 0);
    memset(bytes, ~round, sizeof(bytes));
    NEED(success(l.cq[1]).byte_len == most);
    success(l.cq[0]);
    const unsigned char* const got = into->addr;
    for (size_t i = 0; i < most; ++i) {
      if (got[i] != (unsigned char)round) die("round %d: byte %zu", round, i);
    }
  }
  unmake_link(&l);
}

/* Once, when fewer than the limit are left, and then the limit is 0. */
static void limit_event(void) {
  struct ibv_srq_init_attr init = {.attr = {.max_wr = kQueue, .max_sge = 1}};
  struct ibv_srq* srq = ibv_create_srq(ends[1].pd, &init);
  NEED(srq != NULL);
  struct link l = make_link((struct wanted){.srq = srq});
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kQueue; ++i) receive_bytes(NULL, srq, 8, i);
    struct ibv_srq_attr attr = {.srq_limit = 4};
    NEED(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == 0);
    NEED(ibv_query_srq(srq, &attr) == 0 && attr.srq_limit == 4);
    for (int i = 0; i < kQueue - 4; ++i) NEED(send_one(l.qp[0], IBV_WR_SEND, 8, i) == 0);
    for (int i = 0; i < kQueue - 4; ++i) success(l.cq[1]), success(l.cq[0]);
    NEED(ibv_query_srq(srq, &attr) == 0 && attr.srq_limit == 4); /* 4 are left */
    NEED(send_one(l.qp[0], IBV_WR_SEND, 8, 0) == 0);
    success(l.cq[1]), success(l.cq[0]);
    expect_event(ends[1].device, IBV_EVENT_SRQ_LIMIT_REACHED);
    NEED(ibv_query_srq(srq, &attr) == 0 && attr.srq_limit == 0);
    for (int i = 0; i < 3; ++i) NEED(send_one(l.qp[0], IBV_WR_SEND, 8, i) == 0);
    for (int i = 0; i < 3; ++i) success(l.cq[1]), success(l.cq[0]);
  }
  NEED(ibv_destroy_srq(srq) == EBUSY);
  unmake_link(&l);
  NEED(ibv_destroy_srq(srq) == 0);
}

static struct link handled;
static atomic_long handled_messages;
enum { kHandled = 3000 };

/* Waits, then takes what is there and posts as much back, from the handler's thread. */
static void* handler(void* of) {
  struct ibv_comp_channel* const channel = of;
  while (atomic_load(&handled_messages) < kHandled) {
    struct ibv_cq* cq;
    void* context;
    NEED(ibv_get_cq_event(channel, &cq, &context) == 0);
    ibv_ack_cq_events(cq, 1);
    NEED(ibv_req_notify_cq(cq, 0) == 0);
    struct ibv_wc wc[5];
    int n;
    while ((n = ibv_poll_cq(cq, 5, wc)) > 0) {
      for (int i = 0; i < n; ++i) {
        if (wc[i].status != IBV_WC_SUCCESS) die("%s", ibv_wc_status_str(wc[i].status));
        receive_bytes(handled.qp[1], NULL, 8, 0);
      }
      atomic_fetch_add(&handled_messages, n);
    }
  }
  return NULL;
}

static void handlers(void) {
  struct ibv_comp_channel* channel = ibv_create_comp_channel(ends[1].device);
  NEED(channel != NULL);
  handled = make_link((struct wanted){.channel = channel});
  for (int i = 0; i < kQueue; ++i) receive_bytes(handled.qp[1], NULL, 8, 0);
  NEED(ibv_req_notify_cq(handled.cq[1], 0) == 0);
  pthread_t thread;
  NEED(pthread_create(&thread, NULL, handler, channel) == 0);
  long posted = 0;
  for (long done = 0; done < kHandled; ++done) {
    for (; posted < kHandled && posted - done < kQueue; ++posted) {
      NEED(send_one(handled.qp[0], IBV_WR_SEND, 8, 0) == 0);
    }
    success(handled.cq[0]);
  }
  pthread_join(thread, NULL);
  unmake_link(&handled);
  NEED(ibv_destroy_comp_channel(channel) == 0);
}

/* With requests outstanding: nothing of it is heard of later, also not in a queue that goes on. */
static void destroy(void) {
  for (int round = 0; round < 100; ++round) {
    struct link l = make_link((struct wanted){0});
    struct ibv_qp_init_attr attr = {.send_cq = l.cq[0], .recv_cq = l.cq[0], .qp_type = IBV_QPT_RC};
    attr.cap.max_send_wr = attr.cap.max_recv_wr = kQueue;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    struct ibv_qp* other[2];
    NEED((other[0] = ibv_create_qp(ends[0].pd, &attr)) != NULL);
    attr.send_cq = attr.recv_cq = l.cq[1];
    NEED((other[1] = ibv_create_qp(ends[1].pd, &attr)) != NULL);
    connect_both(ends, other[0], other[1]);
    for (int i = 0; i < kQueue; ++i) {
      receive_bytes(l.qp[0], NULL, 8, 1);
      NEED(send_one(l.qp[0], IBV_WR_RDMA_WRITE, (size_t)(round % 8) * 8000, 1) == 0);
    }
    if (round % 3 == 1) NEED(to_state(l.qp[0], IBV_QPS_ERR) == 0);
    NEED(ibv_destroy_qp(l.qp[0]) == 0);
    for (int i = 0; i < kQueue; ++i) NEED(send_one(other[0], IBV_WR_RDMA_WRITE, 8, 2) == 0);
    for (int i = 0; i < kQueue; ++i) {
      const struct ibv_wc wc = success(l.cq[0]);
      if (wc.wr_id != 2 || wc.qp_num != other[0]->qp_num) die("a completion of what is gone");
    }
    struct ibv_wc wc;
    NEED(ibv_poll_cq(l.cq[0], 1, &wc) == 0);
    NEED(ibv_destroy_qp(other[0]) == 0 && ibv_destroy_qp(other[1]) == 0);
    NEED(ibv_destroy_qp(l.qp[1]) == 0);
    NEED(ibv_destroy_cq(l.cq[0]) == 0 && ibv_destroy_cq(l.cq[1]) == 0);
  }
}

/* What is in use is not destroyed. */
static void busy(void) {
  struct link l = make_link((struct wanted){0});
  struct ibv_pd* pd = ibv_alloc_pd(ends[0].device);
  char memory[64];
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof(memory), 0);
  NEED(pd != NULL && mr != NULL);
  NEED(ibv_destroy_cq(l.cq[0]) == EBUSY);
  NEED(ibv_dealloc_pd(ends[0].pd) == EBUSY);
  NEED(ibv_dealloc_pd(pd) == EBUSY);
  NEED(ibv_dereg_mr(mr) == 0);
  NEED(ibv_dealloc_pd(pd) == 0);
  unmake_link(&l);
}

/* Through RESET everything posted is gone, the queues are empty and as large as before. */
static void reset(void) {
  struct link l = make_link((struct wanted){0});
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < kQueue; ++i) receive_bytes(l.qp[1], NULL, 8, 100 + i);
    for (int i = 0; i < kQueue; ++i) {
      NEED(send_one(l.qp[0], i % 2 == 0 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, 8, 200 + i) == 0);
    }
    if (round % 2 == 0) {
      for (int i = 0; i < kQueue; ++i) success(l.cq[0]);
    }
    for (int i = 0; i < 2; ++i) NEED(to_state(l.qp[i], IBV_QPS_RESET) == 0);
    struct ibv_wc wc;
    NEED(ibv_poll_cq(l.cq[0], 1, &wc) == 0 && ibv_poll_cq(l.cq[1], 1, &wc) == 0);
    connect_both(ends, l.qp[0], l.qp[1]);
    for (int i = 0; i < kQueue; ++i) receive_bytes(l.qp[1], NULL, 8, i);
    for (int i = 0; i < kQueue; ++i) NEED(send_one(l.qp[0], IBV_WR_SEND, 8, i) == 0);
    for (int i = 0; i < kQueue; ++i) {
      NEED(success(l.cq[0]).wr_id == (uint64_t)i && success(l.cq[1]).wr_id == (uint64_t)i);
    }
  }
  unmake_link(&l);
}

int main(int argc, char** argv) {
  const struct {
    const char* name;
    void (*run)(void);
  } cases[] = {{"full-completion-queue", full_completion_queue},
               {"overrun", overrun},
               {"resize", resize},
               {"pieces", pieces},
               {"empty-messages", empty_messages},
               {"inline", inline_bytes},
               {"limit-event", limit_event},
               {"handlers", handlers},
               {"destroy", destroy},
               {"busy", busy},
               {"reset", reset}};
  open_ends(ends);
  from = memory_of(&ends[0], kBytes);
  into = memory_of(&ends[1], kBytes);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    if (argc != 2 || strcmp(argv[1], cases[i].name) != 0) continue;
    cases[i].run();
    printf("%s passed\n", argv[1]);
    return 0;
  }
  die("boundaries CASE");
}
