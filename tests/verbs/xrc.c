/* XRC: an initiator on the first device, targets and shared receive queues on the second.
 *
 *   xrc one          all of it in one program
 *   xrc shared FILE  a target that one process makes and another opens, in the domain of a file
 *
 * Prints "CASE passed". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "two_ends.h"

enum { kBytes = 1 << 16, kMessage = 10000 };

/* Where a process receives: a queue of the domain, with a completion queue and memory. */
struct place {
  struct ibv_cq* cq;
  struct ibv_srq* srq;
  struct ibv_mr* memory;
  uint32_t number;
};

static struct ibv_xrcd* open_domain(struct ibv_context* device, int fd, int flags) {
  struct ibv_xrcd_init_attr attr = {.fd = fd, .oflags = flags};
  attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  return ibv_open_xrcd(device, &attr);
}

static struct place make_place(struct end* end, struct ibv_xrcd* domain) {
  struct place p;
  NEED((p.cq = ibv_create_cq(end->device, 64, NULL, NULL, 0)) != NULL);
  struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 16, .max_sge = 2}};
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                   IBV_SRQ_INIT_ATTR_CQ;
  attr.srq_type = IBV_SRQT_XRC;
  attr.pd = end->pd;
  attr.xrcd = domain;
  attr.cq = p.cq;
  NEED((p.srq = ibv_create_srq_ex(end->device, &attr)) != NULL);
  NEED(ibv_get_srq_num(p.srq, &p.number) == 0 && p.number != 0);
  p.memory = memory_of(end, kBytes);
  return p;
}

static void unmake_place(struct place* p) {
  NEED(ibv_destroy_cq(p->cq) == EBUSY);
  NEED(ibv_destroy_srq(p->srq) == 0);
  NEED(ibv_destroy_cq(p->cq) == 0);
  NEED(ibv_dereg_mr(p->memory) == 0);
}

static void receive_at(struct place* p, uint64_t id) {
  struct ibv_sge sge = piece(p->memory, 0, kMessage);
  struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  NEED(ibv_post_srq_recv(p->srq, &wr, &bad) == 0);
}

static struct ibv_qp* make_target(struct end* end, struct ibv_xrcd* domain) {
  struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV, .xrcd = domain};
  attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  struct ibv_qp* const qp = ibv_create_qp_ex(end->device, &attr);
  NEED(qp != NULL && qp->qp_num != 0 && qp->pd == NULL && qp->send_cq == NULL);
  return qp;
}

static struct ibv_qp* open_target(struct end* end, struct ibv_xrcd* domain, uint32_t number) {
  struct ibv_qp_open_attr attr = {.qp_num = number, .xrcd = domain, .qp_type = IBV_QPT_XRC_RECV};
  attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  return ibv_open_qp(end->device, &attr);
}

static struct ibv_qp* make_initiator(struct end* end, struct ibv_cq* cq) {
  struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_SEND, .send_cq = cq, .pd = end->pd};
  attr.cap.max_send_wr = 16;
  attr.cap.max_send_sge = 1;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ;
  struct ibv_qp* const qp = ibv_create_qp_ex(end->device, &attr);
  NEED(qp != NULL);
  return qp;
}

static void must_move(struct ibv_qp* qp, struct ibv_qp_attr* attr, int mask) {
  NEED(ibv_modify_qp(qp, attr, mask) == 0);
}

/* As the kernel's table of states has it: each end names what concerns it. */
static void connect_target(struct ibv_qp* qp, uint32_t to, const union ibv_gid* gid, int target) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  if (target)
    attr.qp_access_flags =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  must_move(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  memset(&attr, 0, sizeof(attr));
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = to;
  attr.rq_psn = 1000;
  attr.max_dest_rd_atomic = kReads;
  attr.min_rnr_timer = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = *gid;
  attr.ah_attr.grh.hop_limit = 8;
  attr.ah_attr.port_num = 1;
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (target) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  must_move(qp, &attr, mask);
  memset(&attr, 0, sizeof(attr));
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.sq_psn = 1000;
  attr.max_rd_atomic = kReads;
  mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;
  if (!target) mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  must_move(qp, &attr, mask);
}

static void post(struct ibv_qp* qp, enum ibv_wr_opcode opcode, const struct ibv_mr* from,
                 size_t bytes, const struct place* to) {
  struct ibv_sge sge = piece(from, 0, bytes);
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .imm_data = 77};
  struct ibv_send_wr* bad = NULL;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic.remote_addr = (uint64_t)(uintptr_t)to->memory->addr;
    wr.wr.atomic.rkey = to->memory->rkey;
    wr.wr.atomic.compare_add = 1;
  } else if (opcode != IBV_WR_SEND) {
    wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)to->memory->addr;
    wr.wr.rdma.rkey = to->memory->rkey;
  }
  wr.qp_type.xrc.remote_srqn = to->number;
  NEED(ibv_post_send(qp, &wr, &bad) == 0);
}

static void completes(struct ibv_cq* cq, enum ibv_wc_status status) {
  const struct ibv_wc wc = next_completion(cq);
  if (wc.status != status) die("%s, not %s", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
}

static struct ibv_wc received(struct place* p, uint64_t id, uint32_t qp) {
  const struct ibv_wc wc = next_completion(p->cq);
  NEED(wc.status == IBV_WC_SUCCESS && wc.wr_id == id && wc.qp_num == qp);
  return wc;
}

static void one(void) {
  struct end ends[2];
  open_ends(ends);
  struct ibv_device_attr device;
  NEED(ibv_query_device(ends[0].device, &device) == 0);
  NEED((device.device_cap_flags & IBV_DEVICE_XRC) != 0);
  struct ibv_xrcd* const domain = open_domain(ends[1].device, -1, O_CREAT);
  struct ibv_xrcd* const other = open_domain(ends[1].device, -1, O_CREAT);
  NEED(domain != NULL && other != NULL);
  NEED(open_domain(ends[1].device, -1, O_TRUNC) == NULL && errno == EINVAL);
  NEED(open_domain(ends[1].device, 1000, O_CREAT) == NULL && errno == EBADF);
  struct place places[2] = {make_place(&ends[1], domain), make_place(&ends[1], domain)};
  struct place elsewhere = make_place(&ends[1], other);
  NEED(places[0].number != places[1].number);
  struct ibv_cq* const cq = ibv_create_cq(ends[0].device, 64, NULL, NULL, 0);
  NEED(cq != NULL);
  struct ibv_mr* const from = memory_of(&ends[0], kBytes);
  struct ibv_qp* const sender = make_initiator(&ends[0], cq);
  struct ibv_qp* const target = make_target(&ends[1], domain);
  NEED(ibv_close_xrcd(domain) == EBUSY);
  connect_target(sender, target->qp_num, &ends[1].gid, 0);
  connect_target(target, sender->qp_num, &ends[0].gid, 1);

  /* Each message into the queue that it names, and nowhere else. */
  char* const bytes = from->addr;
  for (int i = 0; i < kMessage; ++i) bytes[i] = (char)i;
  for (unsigned i = 0; i < 8; ++i) {
    struct place* const to = &places[i % 2];
    receive_at(to, i);
    post(sender, i % 4 < 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE_WITH_IMM, from, kMessage, to);
    completes(cq, IBV_WC_SUCCESS);
    const struct ibv_wc wc = received(to, i, target->qp_num);
    NEED(wc.byte_len == kMessage && (i % 4 < 2 || wc.imm_data == 77));
    NEED(memcmp(to->memory->addr, bytes, kMessage) == 0);
    memset(to->memory->addr, 0, kMessage);
  }
  *(uint64_t*)places[1].memory->addr = 41;
  post(sender, IBV_WR_ATOMIC_FETCH_AND_ADD, from, 8, &places[1]);
  completes(cq, IBV_WC_SUCCESS);
  NEED(*(uint64_t*)from->addr == 41 && *(uint64_t*)places[1].memory->addr == 42);
  struct ibv_qp_ex* const builder = ibv_qp_to_qp_ex(sender);
  NEED(builder != NULL);
  ibv_wr_start(builder);
  builder->wr_id = 5;
  builder->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_read(builder, places[1].memory->rkey, (uint64_t)(uintptr_t)places[1].memory->addr);
  ibv_wr_set_xrc_srqn(builder, places[1].number);
  ibv_wr_set_sge(builder, from->lkey, (uint64_t)(uintptr_t)from->addr, 8);
  NEED(ibv_wr_complete(builder) == 0);
  completes(cq, IBV_WC_SUCCESS);
  NEED(*(uint64_t*)from->addr == 42);

  /* A target takes no posts; it is opened by number, in its domain alone. */
  struct ibv_send_wr none = {.opcode = IBV_WR_SEND};
  struct ibv_send_wr* bad = NULL;
  NEED(ibv_post_send(target, &none, &bad) == EINVAL);
  NEED(open_target(&ends[1], other, target->qp_num) == NULL && errno == EINVAL);
  NEED(open_target(&ends[1], domain, target->qp_num + 1) == NULL && errno == EINVAL);
  struct ibv_qp* const again = open_target(&ends[1], domain, target->qp_num);
  NEED(again != NULL && again->qp_num == target->qp_num);
  NEED(ibv_destroy_qp(target) == 0);
  receive_at(&places[0], 9);
  post(sender, IBV_WR_SEND, from, 100, &places[0]);
  completes(cq, IBV_WC_SUCCESS);
  received(&places[0], 9, again->qp_num);

  /* A queue of another domain is refused, and the opener hears of it. */
  post(sender, IBV_WR_SEND, from, 100, &elsewhere);
  completes(cq, IBV_WC_REM_INV_REQ_ERR);
  struct ibv_async_event event;
  do {
    NEED(ibv_get_async_event(ends[1].device, &event) == 0);
    NEED(event.event_type != IBV_EVENT_DEVICE_FATAL && event.element.qp == again);
    ibv_ack_async_event(&event);
  } while (event.event_type != IBV_EVENT_QP_REQ_ERR);

  NEED(ibv_destroy_qp(again) == 0 && ibv_destroy_qp(sender) == 0);
  for (int i = 0; i < 2; ++i) unmake_place(&places[i]);
  NEED(ibv_close_xrcd(domain) == 0);
  unmake_place(&elsewhere);
  NEED(ibv_close_xrcd(other) == 0);
  NEED(ibv_destroy_cq(cq) == 0 && ibv_dereg_mr(from) == 0);
  for (int i = 0; i < 2; ++i) NEED(ibv_dealloc_pd(ends[i].pd) == 0);
  for (int i = 0; i < 2; ++i) NEED(ibv_close_device(ends[i].device) == 0);
  printf("one passed\n");
}

/* --- two processes --- */

static uint32_t hear(int pipe) {
  uint32_t value = 0;
  NEED(read(pipe, &value, sizeof(value)) == sizeof(value));
  return value;
}

static void tell(int pipe, uint32_t value) {
  NEED(write(pipe, &value, sizeof(value)) == sizeof(value));
}

/* Makes the target, connects it, and goes. */
static void maker(int file, int in, int out) {
  struct end ends[2];
  open_ends(ends);
  struct ibv_xrcd* const domain = open_domain(ends[1].device, file, O_CREAT);
  NEED(domain != NULL);
  NEED(open_domain(ends[1].device, file, O_CREAT | O_EXCL) == NULL && errno == EINVAL);
  struct ibv_qp* const target = make_target(&ends[1], domain);
  tell(out, target->qp_num);
  connect_target(target, hear(in), &ends[0].gid, 1);
  tell(out, 0);
  hear(in); /* the other has opened it */
}

static void shared(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  int to[2];
  int back[2];
  NEED(file >= 0 && pipe(to) == 0 && pipe(back) == 0);
  const pid_t child = fork();
  NEED(child >= 0);
  if (child == 0) {
    close(to[1]);
    close(back[0]);
    maker(file, to[0], back[1]);
    _exit(0);
  }
  close(to[0]);
  close(back[1]);
  struct end ends[2];
  open_ends(ends);
  const uint32_t number = hear(back[0]);
  struct ibv_xrcd* const domain = open_domain(ends[1].device, file, 0);
  NEED(domain != NULL);
  struct place place = make_place(&ends[1], domain);
  struct ibv_cq* const cq = ibv_create_cq(ends[0].device, 64, NULL, NULL, 0);
  struct ibv_mr* const from = memory_of(&ends[0], kBytes);
  struct ibv_qp* const sender = make_initiator(&ends[0], cq);
  connect_target(sender, number, &ends[1].gid, 0);
  tell(to[1], sender->qp_num);
  hear(back[0]);
  /* Into this process by the other's queue pair; then by its own, when the other is gone. */
  struct ibv_qp* opened = NULL;
  for (uint64_t i = 0; i < 4; ++i) {
    if (i == 2) {
      NEED((opened = open_target(&ends[1], domain, number)) != NULL);
      tell(to[1], 0);
      int status = 0;
      NEED(waitpid(child, &status, 0) == child && status == 0);
    }
    receive_at(&place, i);
    post(sender, IBV_WR_SEND, from, kMessage, &place);
    completes(cq, IBV_WC_SUCCESS);
    received(&place, i, number);
  }
  /* Gone with the last who has it. */
  const double limit = seconds() + kPatienceSeconds;
  while (opened != NULL) { /* the other's session may take its time to end */
    NEED(seconds() < limit && ibv_destroy_qp(opened) == 0);
    opened = open_target(&ends[1], domain, number);
  }
  NEED(errno == EINVAL);
  NEED(ibv_destroy_qp(sender) == 0 && ibv_destroy_cq(cq) == 0);
  unmake_place(&place);
  NEED(ibv_close_xrcd(domain) == 0);
  NEED(open_domain(ends[1].device, file, 0) == NULL && errno == EAGAIN);
  unlink(path);
  printf("shared passed\n");
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "one") == 0) {
    one();
  } else if (argc == 3 && strcmp(argv[1], "shared") == 0) {
    shared(argv[2]);
  } else {
    die("usage: xrc one | xrc shared FILE");
  }
  return 0;
}
