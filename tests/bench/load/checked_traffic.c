/* Traffic between emulated NICs whose every byte is checked, for daemon_load and sampling_cost.
 *
 *   checked_traffic RECEIVER PING [IDLE]
 *
 * Every NIC but these two SENDs 64 KiB to RECEIVER, four at a time, without a pause; PING sends 64
 * bytes every 10 ms. IDLE more connections of each sender carry nothing. It says "ready", then
 * answers each line on stdin with its figures since the line before, as JSON, and ends with stdin.
 * The time of a ping counts from when it was due. One thread, which sleeps while nothing completes:
 * it leaves the processors to what is measured. */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  kMostNics = 256,
  kMostPings = 1 << 20,
  kBulk = 1 << 16,
  kPing = 64,
  kWindow = 4,
  kReceives = 2 * kWindow,
  kQueue = 2 * kReceives,
};
static const int64_t kPingEvery_ns = 10000000;

struct nic {
  struct ibv_context* device;
  struct ibv_pd* pd;
  struct ibv_comp_channel* channel;
  struct ibv_cq* cq;
  union ibv_gid gid;
};

struct flow {
  struct nic* from;
  struct ibv_qp* near;
  struct ibv_qp* far;
  char* out; /* kWindow messages */
  char* in;  /* kReceives of them */
  struct ibv_mr* out_mr;
  struct ibv_mr* in_mr;
  uint32_t bytes;
  uint64_t sent;
  uint64_t seen;
};

static struct nic nics[kMostNics];
static struct flow flows[kMostNics];
static int nic_count;
static int flow_count;
static struct flow* ping;
static int64_t ping_due;
static int ping_under_way;
static int64_t ping_ns[kMostPings];
static int pings;
static uint64_t bulk_bytes;
static uint64_t checked;
static uint64_t wrong;

static void die(const char* what) {
  fprintf(stderr, "checked_traffic: %s: %s\n", what, strerror(errno));
  exit(1);
}

static int64_t now_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Word i of message `number` of a flow: no two alike, so that nothing can be in another's place. */
static uint64_t word_of(uint64_t flow, uint64_t number, uint64_t i) {
  return (number * 0x9E3779B97F4A7C15u + flow) * 0xBF58476D1CE4E5B9u + i * 0x94D049BB133111EBu;
}

static void make_nic(struct nic* n, struct ibv_device* device) {
  n->device = ibv_open_device(device);
  if (n->device == NULL) die("ibv_open_device");
  n->pd = ibv_alloc_pd(n->device);
  n->channel = ibv_create_comp_channel(n->device);
  if (n->pd == NULL || n->channel == NULL) die("protection domain or channel");
  n->cq = ibv_create_cq(n->device, kMostNics * kQueue, NULL, n->channel, 0);
  if (n->cq == NULL || ibv_req_notify_cq(n->cq, 0) != 0) die("ibv_create_cq");
  if (ibv_query_gid(n->device, 1, 0, &n->gid) != 0) die("ibv_query_gid");
  if (fcntl(n->channel->fd, F_SETFL, fcntl(n->channel->fd, F_GETFL) | O_NONBLOCK) != 0) die("fcntl");
}

static struct ibv_qp* make_pair(struct nic* n) {
  struct ibv_qp_init_attr attr = {.send_cq = n->cq, .recv_cq = n->cq, .qp_type = IBV_QPT_RC};
  attr.cap.max_send_wr = attr.cap.max_recv_wr = kQueue;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  struct ibv_qp* qp = ibv_create_qp(n->pd, &attr);
  if (qp == NULL) die("ibv_create_qp");
  return qp;
}

static void connect_to(struct ibv_qp* qp, const struct nic* far, uint32_t number) {
  struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096};
  struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7};
  if (ibv_modify_qp(qp, &init,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
    die("INIT");
  }
  rtr.dest_qp_num = number;
  rtr.min_rnr_timer = 12;
  rtr.ah_attr.is_global = 1;
  rtr.ah_attr.grh.dgid = far->gid;
  rtr.ah_attr.grh.hop_limit = 8;
  rtr.ah_attr.port_num = 1;
  if (ibv_modify_qp(qp, &rtr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0) {
    die("RTR");
  }
  rts.rnr_retry = 7;
  if (ibv_modify_qp(qp, &rts,
                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                        IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0) {
    die("RTS");
  }
}

static char* memory_of(struct nic* n, size_t bytes, struct ibv_mr** mr) {
  void* at = NULL;
  if (posix_memalign(&at, 4096, bytes) != 0) die("memory");
  memset(at, 0, bytes);
  *mr = ibv_reg_mr(n->pd, at, bytes, IBV_ACCESS_LOCAL_WRITE);
  if (*mr == NULL) die("ibv_reg_mr");
  return at;
}

/* wr_id: the flow above, the place below. */
static void post_receive(struct flow* f, uint64_t place) {
  struct ibv_sge sge = {(uint64_t)(uintptr_t)(f->in + place * f->bytes), f->bytes, f->in_mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = (uint64_t)(f - flows) << 16 | place, .sg_list = &sge};
  struct ibv_recv_wr* bad = NULL;
  wr.num_sge = 1;
  if (ibv_post_recv(f->far, &wr, &bad) != 0) die("ibv_post_recv");
}

static void post_send(struct flow* f, uint64_t place) {
  char* at = f->out + place * f->bytes;
  const uint64_t number = f->sent++;
  for (uint64_t i = 0; i < f->bytes / 8; ++i) {
    const uint64_t word = word_of((uint64_t)(f - flows), number, i);
    memcpy(at + 8 * i, &word, 8);
  }
  struct ibv_sge sge = {(uint64_t)(uintptr_t)at, f->bytes, f->out_mr->lkey};
  struct ibv_send_wr wr = {.wr_id = (uint64_t)(f - flows) << 16 | place, .sg_list = &sge};
  struct ibv_send_wr* bad = NULL;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (ibv_post_send(f->near, &wr, &bad) != 0) die("ibv_post_send");
}

static void make_flow(struct nic* from, struct nic* to, uint32_t bytes) {
  struct flow* f = &flows[flow_count++];
  f->from = from;
  f->bytes = bytes;
  f->near = make_pair(from);
  f->far = make_pair(to);
  connect_to(f->far, from, f->near->qp_num);
  connect_to(f->near, to, f->far->qp_num);
  f->out = memory_of(from, (size_t)kWindow * bytes, &f->out_mr);
  f->in = memory_of(to, (size_t)kReceives * bytes, &f->in_mr);
  for (uint64_t place = 0; place < kReceives; ++place) post_receive(f, place);
}

static void received(struct flow* f, uint64_t place, uint32_t bytes) {
  const uint64_t number = f->seen++;
  int good = bytes == f->bytes;
  for (uint64_t i = 0; good && i < f->bytes / 8; ++i) {
    uint64_t word = 0;
    memcpy(&word, f->in + place * f->bytes + 8 * i, 8);
    good = word == word_of((uint64_t)(f - flows), number, i);
  }
  ++checked;
  wrong += !good;
  if (f != ping) bulk_bytes += bytes;
  post_receive(f, place);
}

static void ping_if_due(int64_t now) {
  if (ping_under_way || now < ping_due) return;
  ping_under_way = 1;
  post_send(ping, 0);
}

static void completed(struct flow* f, uint64_t place) {
  if (f != ping) {
    post_send(f, place);
    return;
  }
  const int64_t now = now_ns(CLOCK_MONOTONIC);
  if (pings < kMostPings) ping_ns[pings++] = now - ping_due;
  ping_due += kPingEvery_ns;
  ping_under_way = 0;
  ping_if_due(now);
}

static void drain(struct nic* n) {
  struct ibv_wc done[16];
  int count = 0;
  while ((count = ibv_poll_cq(n->cq, 16, done)) > 0) {
    for (int i = 0; i < count; ++i) {
      if (done[i].status != IBV_WC_SUCCESS) {
        fprintf(stderr, "checked_traffic: %s\n", ibv_wc_status_str(done[i].status));
        exit(1);
      }
      struct flow* f = &flows[done[i].wr_id >> 16];
      const uint64_t place = done[i].wr_id & 0xffff;
      if (done[i].opcode & IBV_WC_RECV) {
        received(f, place, done[i].byte_len);
      } else {
        completed(f, place);
      }
    }
  }
}

static void woken(struct nic* n) {
  struct ibv_cq* cq = NULL;
  void* context = NULL;
  if (ibv_get_cq_event(n->channel, &cq, &context) != 0) return;
  ibv_ack_cq_events(cq, 1);
  if (ibv_req_notify_cq(cq, 0) != 0) die("ibv_req_notify_cq");
  drain(n);
}

static int by_time(const void* a, const void* b) {
  const int64_t x = *(const int64_t*)a;
  const int64_t y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

static double ping_us(int per_mille) {
  return pings == 0 ? 0 : (double)ping_ns[(int64_t)(pings - 1) * per_mille / 1000] / 1000;
}

static void tell(int64_t since) {
  const double seconds = (double)(now_ns(CLOCK_MONOTONIC) - since) / 1e9;
  qsort(ping_ns, (size_t)pings, sizeof(ping_ns[0]), by_time);
  printf("{\"seconds\": %.6f, \"bytes\": %" PRIu64 ", \"checked\": %" PRIu64 ", \"wrong\": %" PRIu64
         ", \"pings\": %d, \"ping_p50_us\": %.1f, \"ping_p99_us\": %.1f}\n",
         seconds, bulk_bytes, checked, wrong, pings, ping_us(500), ping_us(990));
  bulk_bytes = checked = 0;
  pings = 0; /* what is wrong stays */
}

/* Until stdin ends. */
static void run(void) {
  static struct pollfd waits[kMostNics + 1];
  for (int i = 0; i < nic_count; ++i) {
    waits[i].fd = nics[i].channel->fd;
    waits[i].events = POLLIN;
  }
  waits[nic_count].fd = STDIN_FILENO;
  waits[nic_count].events = POLLIN;
  int64_t since = now_ns(CLOCK_MONOTONIC);
  ping_due = since;
  for (;;) {
    ping_if_due(now_ns(CLOCK_MONOTONIC));
    if (poll(waits, (nfds_t)nic_count + 1, 1) < 0 && errno != EINTR) die("poll");
    for (int i = 0; i < nic_count; ++i) {
      if (waits[i].revents != 0) woken(&nics[i]);
    }
    if (waits[nic_count].revents == 0) continue;
    char line[64];
    const ssize_t got = read(STDIN_FILENO, line, sizeof(line));
    if (got <= 0) return;
    tell(since);
    since = now_ns(CLOCK_MONOTONIC);
  }
}

static struct nic* nic_named(struct ibv_device** list, const char* name) {
  for (int i = 0; i < nic_count; ++i) {
    if (strcmp(ibv_get_device_name(list[i]), name) == 0) return &nics[i];
  }
  errno = ENODEV;
  die(name);
  return NULL;
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc != 3 && argc != 4) {
    fprintf(stderr, "usage: checked_traffic RECEIVER PING [IDLE]\n");
    return 2;
  }
  const int idle = argc == 4 ? atoi(argv[3]) : 0;
  struct ibv_device** list = ibv_get_device_list(&nic_count);
  if (list == NULL || nic_count < 2 || nic_count > kMostNics) die("devices");
  for (int i = 0; i < nic_count; ++i) make_nic(&nics[i], list[i]);
  struct nic* to = nic_named(list, argv[1]);
  struct nic* from = nic_named(list, argv[2]);
  make_flow(from, to, kPing);
  ping = &flows[0];
  for (int i = 0; i < nic_count; ++i) {
    if (&nics[i] != to && &nics[i] != from) make_flow(&nics[i], to, kBulk);
    for (int k = 0; &nics[i] != to && k < idle; ++k) {
      struct ibv_qp* near = make_pair(&nics[i]);
      struct ibv_qp* far = make_pair(to);
      connect_to(far, &nics[i], near->qp_num);
      connect_to(near, to, far->qp_num);
    }
  }
  printf("ready\n");
  for (struct flow* f = &flows[1]; f < flows + flow_count; ++f) {
    for (uint64_t place = 0; place < kWindow; ++place) post_send(f, place);
  }
  run();
  return wrong == 0 ? 0 : 1;
}
