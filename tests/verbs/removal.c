/* A NIC is taken away while a program uses it and another: who is told, and what goes on.
 *
 *   removal KEPT GONE      names of the NICs; "ready" when GONE may go, then "removal passed"
 *
 * rdma_cm ids: one listens at an address of GONE, one at all addresses, one has resolved an address
 * from GONE, one from KEPT. */
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include "two_ends.h"

static struct rdma_event_channel* channel;
static int port = 7000;

static struct sockaddr_in address_of(const struct end* end, int number) {
  struct sockaddr_in out = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number)};
  memcpy(&out.sin_addr, end->gid.raw + 12, 4);
  return out;
}

static struct rdma_cm_id* fresh_id(void* context) {
  struct rdma_cm_id* id = NULL;
  NEED(rdma_create_id(channel, &id, context, RDMA_PS_TCP) == 0);
  return id;
}

static enum rdma_cm_event_type next_event(struct rdma_cm_id** id) {
  struct pollfd entry = {channel->fd, POLLIN, 0};
  if (poll(&entry, 1, kPatienceSeconds * 1000) != 1) die("no event of rdma_cm");
  struct rdma_cm_event* event = NULL;
  NEED(rdma_get_cm_event(channel, &event) == 0);
  *id = event->id;
  const enum rdma_cm_event_type type = event->event;
  rdma_ack_cm_event(event);
  return type;
}

static struct rdma_cm_id* resolved(const struct end* at, const struct end* to) {
  struct sockaddr_in own = address_of(at, 0), other = address_of(to, port);
  struct rdma_cm_id* const id = fresh_id(NULL);
  NEED(rdma_resolve_addr(id, (struct sockaddr*)&own, (struct sockaddr*)&other, 1000) == 0);
  struct rdma_cm_id* of = NULL;
  NEED(next_event(&of) == RDMA_CM_EVENT_ADDR_RESOLVED && of == id);
  return id;
}

static struct rdma_cm_id* listener(struct sockaddr_in at) {
  struct rdma_cm_id* const id = fresh_id(NULL);
  NEED(rdma_bind_addr(id, (struct sockaddr*)&at) == 0);
  NEED(rdma_listen(id, 4) == 0);
  return id;
}

static struct ibv_qp* queue_pair(const struct end* end, struct ibv_cq* cq) {
  struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
  attr.cap.max_send_wr = attr.cap.max_recv_wr = 16;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  struct ibv_qp* const qp = ibv_create_qp(end->pd, &attr);
  NEED(qp != NULL);
  return qp;
}

static void device_is_lost(struct ibv_context* device) {
  struct pollfd entry = {device->async_fd, POLLIN, 0};
  for (;;) {
    if (poll(&entry, 1, kPatienceSeconds * 1000) != 1) die("no asynchronous event");
    struct ibv_async_event event;
    NEED(ibv_get_async_event(device, &event) == 0);
    ibv_ack_async_event(&event);
    printf("async %s\n", ibv_event_type_str(event.event_type));
    if (event.event_type == IBV_EVENT_DEVICE_FATAL) return;
    if (event.event_type != IBV_EVENT_PORT_ERR) die("unexpected");
  }
}

int main(int argc, char** argv) {
  struct end ends[2];
  if (argc != 3) die("two names are needed");
  struct end* const kept = &ends[0];
  struct end* const gone = &ends[1];
  open_named(kept, argv[1]);
  open_named(gone, argv[2]);
  int count = 0;
  struct ibv_device** const before = ibv_get_device_list(&count);
  NEED(before != NULL && count == 2);
  NEED((channel = rdma_create_event_channel()) != NULL);
  struct rdma_cm_id* const bound = listener(address_of(gone, port));
  struct sockaddr_in everywhere = {.sin_family = AF_INET, .sin_port = htons(7001)};
  struct rdma_cm_id* const any = listener(everywhere);
  struct rdma_cm_id* const lost = resolved(gone, kept);
  struct rdma_cm_id* const stays = resolved(kept, gone);

  struct ibv_cq* cq[2];
  struct ibv_qp* qp[2];
  struct ibv_mr* mr[2];
  for (int i = 0; i < 2; ++i) {
    NEED((cq[i] = ibv_create_cq(ends[i].device, 64, NULL, NULL, 0)) != NULL);
    qp[i] = queue_pair(&ends[i], cq[i]);
    mr[i] = memory_of(&ends[i], 4096);
  }
  connect_both(ends, qp[0], qp[1]);
  struct ibv_sge sge = piece(mr[1], 0, 8);
  struct ibv_recv_wr receive = {.wr_id = 5, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad_receive = NULL;
  NEED(ibv_post_recv(qp[1], &receive, &bad_receive) == 0);
  printf("ready\n");
  fflush(stdout);

  device_is_lost(gone->device);
  NEED(next_completion(cq[1]).status == IBV_WC_WR_FLUSH_ERR);
  NEED(ibv_post_recv(qp[1], &receive, &bad_receive) == EIO);
  NEED(ibv_alloc_pd(gone->device) == NULL && errno == EIO);

  struct rdma_cm_id* told[2];
  for (int i = 0; i < 2; ++i) NEED(next_event(&told[i]) == RDMA_CM_EVENT_DEVICE_REMOVAL);
  NEED((told[0] == bound && told[1] == lost) || (told[0] == lost && told[1] == bound));
  NEED(rdma_resolve_route(lost, 1000) == -1 && errno == EINVAL);
  NEED(rdma_destroy_id(bound) == 0 && rdma_destroy_id(lost) == 0);
  struct rdma_cm_id* const late = fresh_id(NULL);
  struct sockaddr_in own = address_of(gone, port);
  NEED(rdma_bind_addr(late, (struct sockaddr*)&own) == -1 && errno == ENODEV);
  NEED(rdma_destroy_id(late) == 0);

  /* It is not listed, and what was listed before cannot be opened. */
  struct ibv_device** const after = ibv_get_device_list(&count);
  NEED(after != NULL && count == 1 && strcmp(ibv_get_device_name(after[0]), argv[1]) == 0);
  NEED(after[0] == before[0]);
  NEED(ibv_open_device(before[1]) == NULL && errno == ENODEV);

  /* The other goes on: with a queue pair of its own, with its id and the listener of all. */
  struct ibv_port_attr state;
  NEED(ibv_query_port(kept->device, 1, &state) == 0 && state.state == IBV_PORT_ACTIVE);
  struct ibv_qp* const loop = queue_pair(kept, cq[0]);
  connect_one(loop, loop, &kept->gid);
  sge = piece(mr[0], 0, 8);
  struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
  struct ibv_send_wr* bad_send = NULL;
  send.send_flags = IBV_SEND_SIGNALED;
  send.wr.rdma.remote_addr = (uint64_t)(uintptr_t)mr[0]->addr + 64;
  send.wr.rdma.rkey = mr[0]->rkey;
  NEED(ibv_post_send(loop, &send, &bad_send) == 0);
  NEED(next_completion(cq[0]).status == IBV_WC_SUCCESS);
  struct rdma_cm_id* of = NULL;
  NEED(rdma_resolve_route(stays, 1000) == 0);
  NEED(next_event(&of) == RDMA_CM_EVENT_ROUTE_RESOLVED && of == stays);
  port = 7001;
  struct rdma_cm_id* const caller = resolved(kept, kept);
  NEED(rdma_resolve_route(caller, 1000) == 0);
  NEED(next_event(&of) == RDMA_CM_EVENT_ROUTE_RESOLVED && of == caller);
  struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};
  attr.cap.max_send_wr = attr.cap.max_recv_wr = attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  NEED(rdma_create_qp(caller, NULL, &attr) == 0);
  struct rdma_conn_param parameters = {.retry_count = 7};
  NEED(rdma_connect(caller, &parameters) == 0);
  NEED(next_event(&of) == RDMA_CM_EVENT_CONNECT_REQUEST);
  NEED(rdma_reject(of, NULL, 0) == 0);
  NEED(rdma_destroy_id(of) == 0);
  NEED(next_event(&of) == RDMA_CM_EVENT_REJECTED && of == caller);

  /* The peer's messages to it end as to a machine that is off. */
  send.wr.rdma.rkey = mr[1]->rkey;
  NEED(ibv_post_send(qp[0], &send, &bad_send) == 0);
  NEED(next_completion(cq[0]).status == IBV_WC_RETRY_EXC_ERR);

  /* What is left of it is given back as ever. */
  rdma_destroy_qp(caller);
  NEED(rdma_destroy_id(caller) == 0 && rdma_destroy_id(stays) == 0 && rdma_destroy_id(any) == 0);
  rdma_destroy_event_channel(channel);
  NEED(ibv_destroy_qp(loop) == 0);
  for (int i = 0; i < 2; ++i) {
    NEED(ibv_destroy_qp(qp[i]) == 0 && ibv_destroy_cq(cq[i]) == 0);
    NEED(ibv_dereg_mr(mr[i]) == 0 && ibv_dealloc_pd(ends[i].pd) == 0);
    NEED(ibv_close_device(ends[i].device) == 0);
  }
  ibv_free_device_list(before);
  ibv_free_device_list(after);
  printf("removal passed\n");
  return 0;
}
