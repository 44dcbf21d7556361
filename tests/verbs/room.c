/* Whether a polled completion has made room: each queue is filled to its size, and for each
 * completion that is polled exactly as many requests are posted at once as it stands for. Not one
 * may be refused.
 *
 *   room srq|rq|sq|sq-silent|ud|error BYTES REQUESTS MESSAGES
 *
 * srq: a shared receive queue of two queue pairs; rq: a receive queue; sq: a send queue, every
 * request signaled; sq-silent: every fourth; ud: both queues of datagrams, completion queues with
 * room for no more, and the address handle of a completed datagram can be destroyed; error: both
 * queues of a queue pair in error, where each request is flushed. Prints "room passed". */
#include "two_ends.h"

#include <poll.h>
#include <pthread.h>

enum { kPairs = 2, kSilent = 4, kMostDatagrams = 64, kHeaderBytes = 40, kQkey = 1234 };

static struct end ends[2];
static struct ibv_mr* from;
static struct ibv_mr* into;
static size_t bytes;
static long refused;

static struct ibv_qp* make_pair(struct end* end, struct ibv_cq* cq, struct ibv_srq* srq,
                                uint32_t requests, struct ibv_qp_cap* cap) {
  struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC};
  attr.cap.max_send_wr = attr.cap.max_recv_wr = requests;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  struct ibv_qp* qp = ibv_create_qp(end->pd, &attr);
  NEED(qp != NULL);
  if (cap != NULL) *cap = attr.cap;
  return qp;
}

static int post_send(struct ibv_qp* qp, enum ibv_wr_opcode opcode, uint64_t id, int signaled) {
  struct ibv_sge sge = piece(from, 0, bytes);
  struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode};
  struct ibv_send_wr* bad = NULL;
  wr.send_flags = signaled ? IBV_SEND_SIGNALED : 0;
  wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)into->addr;
  wr.wr.rdma.rkey = into->rkey;
  return ibv_post_send(qp, &wr, &bad);
}

static int post_receive(struct ibv_qp* qp, struct ibv_srq* srq, uint64_t id) {
  struct ibv_sge sge = piece(into, 0, bytes + kHeaderBytes); /* of datagrams, the GRH comes first */
  struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  return srq != NULL ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);
}

/* A refused request is posted again until it is taken, so that the run ends as the others do. */
static void must_take(int error, struct ibv_qp* qp, struct ibv_srq* srq, uint64_t id) {
  if (error == 0) return;
  if (error != ENOMEM) die("a request was refused with %d", error);
  ++refused;
  while (post_receive(qp, srq, id) != 0) {
  }
}

static void fill(struct ibv_qp* qp, struct ibv_srq* srq, uint32_t requests) {
  for (uint32_t i = 0; i < requests; ++i) NEED(post_receive(qp, srq, i) == 0);
  NEED(post_receive(qp, srq, requests) == ENOMEM); /* it is full */
}

struct sender {
  struct ibv_cq* cq;
  struct ibv_qp** qp;
  int pairs;
  long window;
  long messages;
};

static void* send_all(void* of) {
  const struct sender* s = of;
  long sent = 0;
  for (long completed = 0; completed < s->messages; ++completed) {
    for (; sent < s->messages && sent - completed < s->window; ++sent) {
      NEED(post_send(s->qp[sent % s->pairs], IBV_WR_SEND, (uint64_t)sent, 1) == 0);
    }
    const struct ibv_wc wc = next_completion(s->cq);
    if (wc.status != IBV_WC_SUCCESS) die("send: %s", ibv_wc_status_str(wc.status));
  }
  return NULL;
}

/* Asleep until it comes. */
static struct ibv_wc awaited_completion(struct ibv_cq* cq, struct ibv_comp_channel* channel) {
  struct ibv_wc wc;
  for (;;) {
    if (ibv_poll_cq(cq, 1, &wc) == 1) return wc;
    NEED(ibv_req_notify_cq(cq, 0) == 0);
    if (ibv_poll_cq(cq, 1, &wc) == 1) return wc;
    struct pollfd waits = {.fd = channel->fd, .events = POLLIN};
    if (poll(&waits, 1, kPatienceSeconds * 1000) != 1) die("no completion in time");
    void* context = NULL;
    struct ibv_cq* told = NULL;
    NEED(ibv_get_cq_event(channel, &told, &context) == 0);
    ibv_ack_cq_events(told, 1);
  }
}

/* Messages to a receive queue, shared or not. As many are under way as there are requests. The
 * sender is a thread of its own. */
static void receives(int shared, uint32_t requests, long messages) {
  struct ibv_cq* cq[2];
  struct ibv_qp* qp[2][kPairs];
  struct ibv_srq* srq = NULL;
  const int pairs = shared ? kPairs : 1;
  struct ibv_qp_cap cap = {0};
  struct ibv_comp_channel* const channel = ibv_create_comp_channel(ends[1].device);
  NEED(channel != NULL);
  NEED((cq[0] = ibv_create_cq(ends[0].device, 4096, NULL, NULL, 0)) != NULL);
  NEED((cq[1] = ibv_create_cq(ends[1].device, 4096, NULL, channel, 0)) != NULL);
  if (shared) {
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = requests, .max_sge = 1}};
    NEED((srq = ibv_create_srq(ends[1].pd, &attr)) != NULL);
    requests = attr.attr.max_wr;
  }
  for (int p = 0; p < pairs; ++p) {
    qp[0][p] = make_pair(&ends[0], cq[0], NULL, requests, NULL);
    qp[1][p] = make_pair(&ends[1], cq[1], srq, requests, &cap);
    connect_both(ends, qp[0][p], qp[1][p]);
  }
  if (!shared) requests = cap.max_recv_wr;
  fill(qp[1][0], srq, requests);
  struct sender sender = {
      .cq = cq[0], .qp = qp[0], .pairs = pairs, .window = requests, .messages = messages};
  pthread_t thread;
  NEED(pthread_create(&thread, NULL, send_all, &sender) == 0);
  for (long received = 0; received < messages; ++received) {
    const struct ibv_wc wc = awaited_completion(cq[1], channel);
    const uint64_t id = requests + (uint64_t)received;
    must_take(post_receive(qp[1][0], srq, id), qp[1][0], srq, id);
    if (wc.status != IBV_WC_SUCCESS) die("receive: %s", ibv_wc_status_str(wc.status));
    if (!shared && wc.wr_id != (uint64_t)received) die("receive %ld is out of order", received);
  }
  pthread_join(thread, NULL);
}

/* WRITEs: the send queue is full all the time. */
static void sends(int silent, uint32_t requests, long messages) {
  struct ibv_cq* cq[2];
  struct ibv_qp* qp[2];
  struct ibv_qp_cap cap;
  for (int i = 0; i < 2; ++i) {
    NEED((cq[i] = ibv_create_cq(ends[i].device, 4096, NULL, NULL, 0)) != NULL);
  }
  qp[0] = make_pair(&ends[0], cq[0], NULL, requests, &cap);
  qp[1] = make_pair(&ends[1], cq[1], NULL, 1, NULL);
  connect_both(ends, qp[0], qp[1]);
  requests = cap.max_send_wr;
  const int every = silent ? kSilent : 1;
  if (requests % (uint32_t)every != 0) die("%u requests are not a multiple of %d", requests, every);
  long posted = 0;
  for (uint32_t i = 0; i < requests; ++i, ++posted) {
    NEED(post_send(qp[0], IBV_WR_RDMA_WRITE, (uint64_t)posted, (posted + 1) % every == 0) == 0);
  }
  NEED(post_send(qp[0], IBV_WR_RDMA_WRITE, 0, 1) == ENOMEM);
  for (long completed = 0; completed < messages; completed += every) {
    const struct ibv_wc wc = next_completion(cq[0]);
    for (int i = 0; i < every; ++i, ++posted) {
      int error;
      const double limit = seconds() + kPatienceSeconds;
      while ((error = post_send(qp[0], IBV_WR_RDMA_WRITE, (uint64_t)posted,
                                (posted + 1) % every == 0)) == ENOMEM) {
        ++refused;
        if (seconds() > limit) die("no room after %ld", completed);
      }
      NEED(error == 0);
    }
    if (wc.status != IBV_WC_SUCCESS) die("write: %s", ibv_wc_status_str(wc.status));
    if (wc.wr_id != (uint64_t)(completed + every - 1)) die("write %ld is out of order", completed);
  }
}

static struct ibv_qp* make_datagrams(struct end* end, struct ibv_cq* cq, uint32_t requests,
                                     uint32_t inline_bytes) {
  struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD};
  attr.cap.max_send_wr = attr.cap.max_recv_wr = requests;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  attr.cap.max_inline_data = inline_bytes;
  struct ibv_qp* qp = ibv_create_qp(end->pd, &attr);
  NEED(qp != NULL && attr.cap.max_send_wr == requests && attr.cap.max_recv_wr == requests);
  struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = kQkey};
  NEED(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0);
  NEED(to_state(qp, IBV_QPS_RTR) == 0);
  to.qp_state = IBV_QPS_RTS;
  NEED(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
  return qp;
}

static struct ibv_ah* make_handle(void) {
  struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
  attr.grh.dgid = ends[1].gid;
  attr.grh.hop_limit = 8;
  struct ibv_ah* handle = ibv_create_ah(ends[0].pd, &attr);
  NEED(handle != NULL);
  return handle;
}

/* No more are under way than there are receive requests, so each arrives where nothing is lost. */
static void datagrams(uint32_t requests, long messages) {
  struct ibv_cq* cq[2];
  struct ibv_qp* qp[2];
  struct ibv_ah* handle[kMostDatagrams];
  const int inlined = bytes <= 64;
  NEED(requests <= kMostDatagrams);
  for (int i = 0; i < 2; ++i) {
    NEED((cq[i] = ibv_create_cq(ends[i].device, (int)requests, NULL, NULL, 0)) != NULL);
    qp[i] = make_datagrams(&ends[i], cq[i], requests, inlined ? (uint32_t)bytes : 0);
  }
  fill(qp[1], NULL, requests);
  for (uint32_t i = 0; i < requests; ++i) handle[i] = make_handle();
  struct ibv_sge sge = piece(from, 0, bytes);
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
  wr.send_flags = IBV_SEND_SIGNALED | (inlined ? IBV_SEND_INLINE : 0);
  wr.wr.ud.remote_qpn = qp[1]->qp_num;
  wr.wr.ud.remote_qkey = kQkey;
  const double limit = seconds() + kPatienceSeconds;
  long sent = 0;
  long completed = 0;
  for (long received = 0; received < messages || completed < messages;) {
    while (sent < messages && sent - completed < requests && sent - received < requests) {
      struct ibv_send_wr* bad = NULL;
      wr.wr_id = (uint64_t)sent;
      wr.wr.ud.ah = handle[sent % requests];
      const int error = ibv_post_send(qp[0], &wr, &bad);
      if (error == ENOMEM) {
        ++refused;
        break;
      }
      NEED(error == 0);
      ++sent;
    }
    struct ibv_wc wc;
    if (ibv_poll_cq(cq[0], 1, &wc) == 1) {
      if (wc.status != IBV_WC_SUCCESS) die("send: %s", ibv_wc_status_str(wc.status));
      struct ibv_ah** const used = &handle[wc.wr_id % requests];
      NEED(ibv_destroy_ah(*used) == 0);
      *used = make_handle();
      ++completed;
    }
    if (ibv_poll_cq(cq[1], 1, &wc) == 1) {
      if (wc.status != IBV_WC_SUCCESS) die("receive: %s", ibv_wc_status_str(wc.status));
      must_take(post_receive(qp[1], NULL, (uint64_t)(requests + received)), qp[1], NULL, 0);
      if (wc.wr_id != (uint64_t)received) die("receive %ld is out of order", received);
      ++received;
    }
    if (seconds() > limit) die("%ld of %ld datagrams came", received, messages);
  }
}

static void in_error(uint32_t requests, long messages) {
  struct ibv_cq* cq;
  struct ibv_qp_cap cap;
  NEED((cq = ibv_create_cq(ends[0].device, 4096, NULL, NULL, 0)) != NULL);
  struct ibv_qp* qp = make_pair(&ends[0], cq, NULL, requests, &cap);
  NEED(to_state(qp, IBV_QPS_ERR) == 0);
  for (uint32_t i = 0; i < cap.max_recv_wr; ++i) NEED(post_receive(qp, NULL, i) == 0);
  for (uint32_t i = 0; i < cap.max_send_wr; ++i) {
    NEED(post_send(qp, IBV_WR_RDMA_WRITE, 1U << 20, i % 2 == 0) == 0); /* silent ones as well */
  }
  for (long i = 0; i < messages; ++i) {
    const struct ibv_wc wc = next_completion(cq);
    int error = 0;
    if (wc.wr_id == 1U << 20) {
      error = post_send(qp, IBV_WR_RDMA_WRITE, 1U << 20, i % 2 == 0);
      if (error != 0) ++refused;
    } else {
      must_take(post_receive(qp, NULL, wc.wr_id), qp, NULL, wc.wr_id);
    }
    if (wc.status != IBV_WC_WR_FLUSH_ERR) die("in error: %s", ibv_wc_status_str(wc.status));
  }
}

int main(int argc, char** argv) {
  if (argc != 5) die("room srq|rq|sq|sq-silent|ud|error BYTES REQUESTS MESSAGES");
  bytes = strtoul(argv[2], NULL, 0);
  const uint32_t requests = (uint32_t)strtoul(argv[3], NULL, 0);
  const long messages = strtol(argv[4], NULL, 0);
  open_ends(ends);
  from = memory_of(&ends[0], bytes);
  into = memory_of(&ends[1], bytes);
  if (strcmp(argv[1], "error") == 0) {
    into = memory_of(&ends[0], bytes);
    in_error(requests, messages);
  } else if (strcmp(argv[1], "ud") == 0) {
    datagrams(requests, messages);
  } else if (strncmp(argv[1], "sq", 2) == 0) {
    sends(strcmp(argv[1], "sq-silent") == 0, requests, messages);
  } else {
    receives(strcmp(argv[1], "srq") == 0, requests, messages);
  }
  if (refused != 0) die("%ld requests of %ld were refused after a completion", refused, messages);
  printf("room passed\n");
  return 0;
}
