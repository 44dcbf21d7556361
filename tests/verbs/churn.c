/* Connects and disconnects over and over (churn_test.py).
 *
 *   churn_peer serve PORT                        accepts whoever comes, until it is killed
 *   churn_peer connect ADDRESS PORT CYCLES WIDE  as many connections, WIDE of them under way at a time
 *
 * Each connection has a queue pair at both ends and carries nothing. One that fails, for the other end was
 * killed, is counted, and another takes its place. Prints "cycles N failed M" now and then, and "done" at
 * the end. */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEED(condition)                                                        \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                  \
      perror("errno");                                                         \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

enum { kResolveMs = 5000, kTellEvery = 32 };

struct client {
  struct rdma_event_channel* channel;
  struct sockaddr_in to;
  long left, open, cycles, failed;
};

static int make_pair(struct rdma_cm_id* id) {
  struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1};
  attr.cap.max_send_wr = attr.cap.max_recv_wr = 2;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  return rdma_create_qp(id, NULL, &attr);
}

static void destroy(struct rdma_cm_id* id) {
  if (id->qp != NULL) rdma_destroy_qp(id);
  rdma_destroy_id(id);
}

static void begin(struct client* c) {
  struct rdma_cm_id* id;
  NEED(rdma_create_id(c->channel, &id, c, RDMA_PS_TCP) == 0);
  NEED(rdma_resolve_addr(id, NULL, (struct sockaddr*)&c->to, kResolveMs) == 0);
  --c->left;
  ++c->open;
}

static void finish(struct client* c, struct rdma_cm_id* id, int good) {
  destroy(id);
  --c->open;
  if (good) {
    ++c->cycles;
    if (c->cycles % kTellEvery == 0) printf("cycles %ld failed %ld\n", c->cycles, c->failed);
  } else {
    ++c->failed;
    ++c->left;  /* once more */
    usleep(200);
  }
  if (c->left > 0) begin(c);
}

static void on_client_event(struct client* c, struct rdma_cm_id* id, enum rdma_cm_event_type type) {
  struct rdma_conn_param param = {.retry_count = 3, .rnr_retry_count = 3};
  switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(id, kResolveMs) != 0) finish(c, id, 0);
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      NEED(make_pair(id) == 0);
      if (rdma_connect(id, &param) != 0) finish(c, id, 0);
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
      rdma_disconnect(id);
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      finish(c, id, 1);
      break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      break;
    default:
      finish(c, id, 0);
      break;
  }
}

static void on_server_event(struct rdma_cm_id* id, enum rdma_cm_event_type type) {
  struct rdma_conn_param param = {.retry_count = 3, .rnr_retry_count = 3};
  switch (type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      /* Refused when the other end is gone already. */
      if (make_pair(id) != 0 || rdma_accept(id, &param) != 0) destroy(id);
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      rdma_disconnect(id);
      destroy(id);
      break;
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
      destroy(id);
      break;
    default:
      break;
  }
}

int main(int argc, char** argv) {
  struct client c = {.to = {.sin_family = AF_INET}};
  setvbuf(stdout, NULL, _IOLBF, 0);
  const int serves = argc == 3 && strcmp(argv[1], "serve") == 0;
  NEED(serves || (argc == 6 && strcmp(argv[1], "connect") == 0));
  NEED((c.channel = rdma_create_event_channel()) != NULL);
  if (serves) {
    struct rdma_cm_id* listener;
    c.to.sin_port = htons((unsigned short)atoi(argv[2]));
    NEED(rdma_create_id(c.channel, &listener, NULL, RDMA_PS_TCP) == 0);
    NEED(rdma_bind_addr(listener, (struct sockaddr*)&c.to) == 0);
    NEED(rdma_listen(listener, 256) == 0);
    printf("listens\n");
  } else {
    NEED(inet_pton(AF_INET, argv[2], &c.to.sin_addr) == 1);
    c.to.sin_port = htons((unsigned short)atoi(argv[3]));
    c.left = atol(argv[4]);
    for (long wide = atol(argv[5]); wide > 0 && c.left > 0; --wide) begin(&c);
  }
  while (serves || c.open > 0) {
    struct rdma_cm_event* event;
    NEED(rdma_get_cm_event(c.channel, &event) == 0);
    struct rdma_cm_id* const id = event->id;
    const enum rdma_cm_event_type type = event->event;
    rdma_ack_cm_event(event);
    if (serves) {
      on_server_event(id, type);
    } else {
      on_client_event(&c, id, type);
    }
  }
  printf("cycles %ld failed %ld\ndone\n", c.cycles, c.failed);
  return 0;
}
