/* Devices of two ports: what a program sees of them, and what happens when one of the ports fails.
 *
 *   multiport
 *
 * Prints "ready" before it waits for port 2 of the first device to fail, "down" before it waits for
 * that port to come back, and "passed" at the end. */
#include <arpa/inet.h>

#include "two_ends.h"

enum { kPorts = 2, kBytes = 4096, kGrh = 40, kKey = 0x11111111 };

struct device {
  struct end end;
  struct ibv_cq* cq;   /* of all queue pairs, whatever their port */
  struct ibv_srq* srq; /* likewise */
  struct ibv_mr* memory;
  union ibv_gid gids[kPorts + 1]; /* by port */
  struct ibv_qp* pairs[kPorts + 1];
  struct ibv_qp* datagrams;
};

static void open_device(struct device* d, const char* name) {
  open_named(&d->end, name);
  struct ibv_context* const context = d->end.device;
  struct ibv_device_attr attr;
  NEED(ibv_query_device(context, &attr) == 0 && attr.phys_port_cnt == kPorts);
  uint16_t lids[kPorts + 1];
  for (uint8_t port = 1; port <= kPorts; ++port) {
    struct ibv_port_attr p;
    NEED(ibv_query_port(context, port, &p) == 0 && p.state == IBV_PORT_ACTIVE);
    lids[port] = p.lid;
    NEED(ibv_query_gid(context, port, 0, &d->gids[port]) == 0);
    struct ibv_gid_entry entry;
    NEED(ibv_query_gid_ex(context, port, 0, &entry, 0) == 0 && entry.port_num == port);
    NEED(memcmp(&entry.gid, &d->gids[port], sizeof(entry.gid)) == 0);
    __be16 key;
    NEED(ibv_query_pkey(context, port, 0, &key) == 0 && key == 0xFFFF);
  }
  NEED(lids[1] != lids[2] && memcmp(&d->gids[1], &d->gids[2], sizeof(d->gids[1])) != 0);
  struct ibv_gid_entry all[16];
  NEED(ibv_query_gid_table(context, all, 16, 0) == 2 * kPorts && all[3].port_num == 2);
  const uint8_t none[] = {0, kPorts + 1};
  for (int i = 0; i < 2; ++i) {
    struct ibv_port_attr p;
    NEED(ibv_query_port(context, none[i], &p) == EINVAL);
    union ibv_gid gid;
    NEED(ibv_query_gid(context, none[i], 0, &gid) == -1);
  }
  NEED((d->cq = ibv_create_cq(context, 64, NULL, NULL, 0)) != NULL);
  struct ibv_srq_init_attr srq = {.attr = {.max_wr = 16, .max_sge = 1}};
  NEED((d->srq = ibv_create_srq(d->end.pd, &srq)) != NULL);
  d->memory = memory_of(&d->end, 4 * kBytes);
}

static struct ibv_qp* make_pair(struct device* d, enum ibv_qp_type type) {
  struct ibv_qp_init_attr attr = {.send_cq = d->cq, .recv_cq = d->cq, .qp_type = type};
  attr.cap.max_send_wr = attr.cap.max_recv_wr = 8;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  if (type == IBV_QPT_RC) attr.srq = d->srq;
  struct ibv_qp* const qp = ibv_create_qp(d->end.pd, &attr);
  NEED(qp != NULL);
  return qp;
}

static void make_datagrams(struct device* d, uint8_t port) {
  d->datagrams = make_pair(d, IBV_QPT_UD);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = port, .qkey = kKey};
  NEED(ibv_modify_qp(d->datagrams, &attr,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0);
  NEED(to_state(d->datagrams, IBV_QPS_RTR) == 0);
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = 7;
  NEED(ibv_modify_qp(d->datagrams, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
}

static void post(struct device* d, struct ibv_qp* qp, struct ibv_ah* to, uint32_t number) {
  struct ibv_sge sge = piece(d->memory, 0, to != NULL ? 1000 : kBytes);
  struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
  wr.send_flags = IBV_SEND_SIGNALED;
  if (to != NULL) {
    wr.wr.ud.ah = to;
    wr.wr.ud.remote_qpn = number;
    wr.wr.ud.remote_qkey = kKey;
  }
  struct ibv_send_wr* bad = NULL;
  NEED(ibv_post_send(qp, &wr, &bad) == 0);
}

/* A receive for datagrams, or of the shared queue. */
static void receive(struct device* d, int datagram) {
  struct ibv_sge sge = piece(d->memory, kBytes, kBytes + kGrh);
  struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  NEED((datagram ? ibv_post_recv(d->datagrams, &wr, &bad)
                 : ibv_post_srq_recv(d->srq, &wr, &bad)) == 0);
}

static struct ibv_wc success(struct ibv_cq* cq) {
  const struct ibv_wc wc = next_completion(cq);
  if (wc.status != IBV_WC_SUCCESS) die("completion: %s", ibv_wc_status_str(wc.status));
  return wc;
}

static void send_from(struct device* a, struct device* b, uint8_t port) {
  memset(a->memory->addr, port, kBytes);
  receive(b, 0);
  post(a, a->pairs[port], NULL, 0);
  success(a->cq);
  NEED(success(b->cq).qp_num == b->pairs[port]->qp_num);
  NEED(memcmp(a->memory->addr, (char*)b->memory->addr + kBytes, kBytes) == 0);
}

/* A datagram there, and its answer, by port 2. */
static void datagrams_go(struct device* a, struct device* b) {
  struct ibv_ah_attr attr = {.is_global = 1, .port_num = 2};
  attr.grh.dgid = b->gids[2];
  attr.grh.hop_limit = 8;
  struct ibv_ah* const to = ibv_create_ah(a->end.pd, &attr);
  NEED(to != NULL);
  receive(b, 1);
  post(a, a->datagrams, to, b->datagrams->qp_num);
  success(a->cq);
  struct ibv_wc wc = success(b->cq);
  struct ibv_grh* const header = (struct ibv_grh*)((char*)b->memory->addr + kBytes);
  NEED(ibv_init_ah_from_wc(b->end.device, 1, &wc, header, &attr) == -1 && errno == EINVAL);
  struct ibv_ah* const back = ibv_create_ah_from_wc(b->end.pd, &wc, header, 2);
  NEED(back != NULL);
  receive(a, 1);
  post(b, b->datagrams, back, wc.src_qp);
  success(b->cq);
  NEED(success(a->cq).src_qp == b->datagrams->qp_num);
  NEED(ibv_destroy_ah(to) == 0 && ibv_destroy_ah(back) == 0);
}

/* What makes no sense is refused. */
static void refusals(struct device* a, struct device* b) {
  struct ibv_qp* const qp = make_pair(a, IBV_QPT_RC);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = kPorts + 1};
  const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  NEED(ibv_modify_qp(qp, &attr, init) == EINVAL);
  attr.port_num = 2;
  NEED(ibv_modify_qp(qp, &attr, init) == 0);
  struct ibv_ah_attr to = {.is_global = 1, .port_num = kPorts + 1};
  to.grh.dgid = b->gids[2];
  NEED(ibv_create_ah(a->end.pd, &to) == NULL && errno == EINVAL);
  to.port_num = 1; /* it is not of that port's subnet */
  NEED(ibv_create_ah(a->end.pd, &to) == NULL && errno == EHOSTUNREACH);
  memset(&attr, 0, sizeof(attr)); /* nor is its queue pair at that port */
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = b->pairs[1]->qp_num;
  attr.ah_attr = to;
  attr.ah_attr.grh.dgid = b->gids[1];
  NEED(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == EINVAL);
  NEED(ibv_destroy_qp(qp) == 0);
}

/* The next event of port 2; queue pairs that use the shared receive queue and fail have theirs. */
static void await_event(struct ibv_context* device, enum ibv_event_type type) {
  struct ibv_async_event event;
  NEED(ibv_get_async_event(device, &event) == 0);
  while (event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED) {
    ibv_ack_async_event(&event);
    NEED(ibv_get_async_event(device, &event) == 0);
  }
  if (event.event_type != type || event.element.port_num != 2) {
    die("event %s of port %d, expected %s of port 2", ibv_event_type_str(event.event_type),
        event.element.port_num, ibv_event_type_str(type));
  }
  ibv_ack_async_event(&event);
  for (uint8_t port = 1; port <= kPorts; ++port) {
    struct ibv_port_attr p;
    NEED(ibv_query_port(device, port, &p) == 0);
    const int down = port == 2 && type == IBV_EVENT_PORT_ERR;
    NEED(p.state == (down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE));
  }
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  struct device a;
  struct device b;
  open_device(&a, "h0");
  open_device(&b, "h1");
  for (uint8_t port = 1; port <= kPorts; ++port) {
    a.pairs[port] = make_pair(&a, IBV_QPT_RC);
    b.pairs[port] = make_pair(&b, IBV_QPT_RC);
    connect_at(a.pairs[port], port, b.pairs[port], &b.gids[port]);
    connect_at(b.pairs[port], port, a.pairs[port], &a.gids[port]);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    NEED(ibv_query_qp(a.pairs[port], &attr, IBV_QP_AV | IBV_QP_PORT, &init) == 0);
    NEED(attr.port_num == port && attr.ah_attr.port_num == port);
  }
  make_datagrams(&a, 2);
  make_datagrams(&b, 2);
  for (uint8_t port = 1; port <= kPorts; ++port) send_from(&a, &b, port);
  datagrams_go(&a, &b);
  refusals(&a, &b);

  printf("ready\n");
  await_event(a.end.device, IBV_EVENT_PORT_ERR);
  send_from(&a, &b, 1);
  post(&a, a.pairs[2], NULL, 0);
  NEED(next_completion(a.cq).status == IBV_WC_RETRY_EXC_ERR);
  printf("down\n");
  await_event(a.end.device, IBV_EVENT_PORT_ACTIVE);
  await_event(a.end.device, IBV_EVENT_GID_CHANGE);
  datagrams_go(&a, &b);
  printf("passed\n");
  return 0;
}
