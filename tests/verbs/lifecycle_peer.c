/* An ordinary verbs program for lifecycle_test.py, which tells it what to do, one command a line:
 *
 *   connect QPN GID RKEY ADDRESS   to RTS with that peer; "connected"
 *   receive N                      posts N receives
 *   write N                        N WRITEs, each when the one before has completed; 0: for ever
 *   count                          "count N": completions so far
 *   port                           "port STATE"
 *   fork exit | close              a child that does nothing, or closes the device, then exits;
 *                                  "forked"
 *   leave                          exits at once and cleans nothing up
 *
 * It says "ready QPN GID RKEY ADDRESS" first, then whatever comes: "async NAME" for an asynchronous
 * event, "failed STATUS" for a completion in error, "channel closed" when the channel ends. The
 * channel and the events are each waited for by a thread, as programs do.
 *
 * A lost acknowledgement counts after 4 s (timeout 20; the argument, if any, is another), seven
 * times: what fails sooner was told. */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBytes = 1 << 16, kWrite = 4096, kQueue = 64 };

static struct ibv_context* device;
static struct ibv_comp_channel* channel;
static struct ibv_cq* cq;
static struct ibv_qp* qp;
static struct ibv_mr* mr;
static char* memory;
static atomic_long completions;
static atomic_long writes_left; /* negative: for ever */
static uint64_t remote_address;
static uint32_t remote_key;
static uint8_t timeout = 20; /* 4.096 us * 2^20 */

static void die(const char* what) {
  printf("error %s\n", what);
  exit(1);
}

static void print_gid(const union ibv_gid* gid) {
  for (int i = 0; i < 16; ++i) printf("%02x", gid->raw[i]);
}

static void read_gid(const char* text, union ibv_gid* gid) {
  for (int i = 0; i < 16; ++i) {
    unsigned byte = 0;
    sscanf(text + 2 * i, "%2x", &byte);
    gid->raw[i] = (uint8_t)byte;
  }
}

static void post_write(void) {
  struct ibv_sge sge = {(uint64_t)(uintptr_t)memory, kWrite, mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
  struct ibv_send_wr* bad = NULL;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = remote_address;
  wr.wr.rdma.rkey = remote_key;
  if (ibv_post_send(qp, &wr, &bad) != 0) printf("post refused\n");
}

static void drain(void) {
  struct ibv_wc wc;
  while (ibv_poll_cq(cq, 1, &wc) > 0) {
    if (wc.status != IBV_WC_SUCCESS) {
      printf("failed %s\n", ibv_wc_status_str(wc.status));
      atomic_store(&writes_left, 0);
      continue;
    }
    atomic_fetch_add(&completions, 1);
    long left = atomic_load(&writes_left);
    if (left > 0) atomic_store(&writes_left, --left);
    if (left != 0) post_write();
  }
}

static void* wait_for_completions(void* unused) {
  (void)unused;
  for (;;) {
    struct ibv_cq* from = NULL;
    void* context = NULL;
    if (ibv_req_notify_cq(cq, 0) != 0) break;
    drain();
    if (ibv_get_cq_event(channel, &from, &context) != 0) break;
    ibv_ack_cq_events(from, 1);
    drain();
  }
  drain();
  printf("channel closed\n");
  return NULL;
}

static void* wait_for_events(void* unused) {
  struct ibv_async_event event;
  (void)unused;
  while (ibv_get_async_event(device, &event) == 0) {
    printf("async %s\n", ibv_event_type_str(event.event_type));
    const int last = event.event_type == IBV_EVENT_DEVICE_FATAL;
    ibv_ack_async_event(&event);
    if (last) break;
  }
  return NULL;
}

static void make(void) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  if (list == NULL || count == 0) die("no device");
  device = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (device == NULL) die("ibv_open_device");
  struct ibv_pd* pd = ibv_alloc_pd(device);
  channel = ibv_create_comp_channel(device);
  if (pd == NULL || channel == NULL) die("protection domain or channel");
  cq = ibv_create_cq(device, 2 * kQueue, NULL, channel, 0);
  if (cq == NULL || posix_memalign((void**)&memory, 4096, kBytes) != 0) die("ibv_create_cq");
  memset(memory, 1, kBytes);
  mr = ibv_reg_mr(pd, memory, kBytes,
                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
  attr.cap.max_send_wr = attr.cap.max_recv_wr = kQueue;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  qp = ibv_create_qp(pd, &attr);
  union ibv_gid gid;
  if (mr == NULL || qp == NULL || ibv_query_gid(device, 1, 0, &gid) != 0) die("ibv_create_qp");
  printf("ready %u ", qp->qp_num);
  print_gid(&gid);
  printf(" %u %" PRIu64 "\n", mr->rkey, (uint64_t)(uintptr_t)memory);
}

static void connect_to(uint32_t number, const union ibv_gid* gid) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
    die("INIT");
  }
  memset(&attr, 0, sizeof(attr));
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = number;
  attr.rq_psn = 1000;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = *gid;
  attr.ah_attr.grh.hop_limit = 8;
  attr.ah_attr.port_num = 1;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0) {
    die("RTR");
  }
  memset(&attr, 0, sizeof(attr));
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = timeout;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.sq_psn = 1000;
  attr.max_rd_atomic = 1;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                        IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0) {
    die("RTS");
  }
}

static void post_receives(int count) {
  struct ibv_sge sge = {(uint64_t)(uintptr_t)memory, kBytes, mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  for (; count > 0; --count) {
    if (ibv_post_recv(qp, &wr, &bad) != 0) printf("post refused\n");
  }
}

static void fork_child(int closes) {
  const pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) {
    if (closes) ibv_close_device(device);
    exit(0); /* with every handler of the library */
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("forked %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void print_port(void) {
  struct ibv_port_attr attr;
  if (ibv_query_port(device, 1, &attr) != 0) die("ibv_query_port");
  printf("port %s\n", ibv_port_state_str(attr.state));
}

int main(int argc, char** argv) {
  if (argc > 1) timeout = (uint8_t)strtoul(argv[1], NULL, 0);
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (ibv_fork_init() != 0) die("ibv_fork_init");
  make();
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, wait_for_completions, NULL);
  pthread_create(&threads[1], NULL, wait_for_events, NULL);
  char line[256];
  while (fgets(line, sizeof(line), stdin) != NULL) {
    char text[64];
    uint32_t number = 0;
    long count = 0;
    if (sscanf(line, "connect %u %63s %u %" SCNu64, &number, text, &remote_key, &remote_address) ==
        4) {
      union ibv_gid gid;
      read_gid(text, &gid);
      connect_to(number, &gid);
      printf("connected\n");
    } else if (sscanf(line, "receive %ld", &count) == 1) {
      post_receives((int)count);
    } else if (sscanf(line, "write %ld", &count) == 1) {
      atomic_store(&writes_left, count == 0 ? -1 : count);
      post_write();
    } else if (strncmp(line, "count", 5) == 0) {
      printf("count %ld\n", atomic_load(&completions));
    } else if (strncmp(line, "port", 4) == 0) {
      print_port();
    } else if (sscanf(line, "fork %63s", text) == 1) {
      fork_child(strcmp(text, "close") == 0);
    } else if (strncmp(line, "leave", 5) == 0) {
      _exit(0);
    }
  }
  return 0;
}
