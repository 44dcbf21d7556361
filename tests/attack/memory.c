/* A program that turns on the service through its registered memory; sees two NICs, h0 and h1.
 *
 *   memory hang N   registers N regions by copy (PACELINE_MEMORY=copy) in pages that a userfaultfd
 *                   never fills, makes the service copy from each, closes its sessions and lives on
 *   memory punch N  registers N MiB that are shared, takes the pages out of the file, and has the
 *                   service send them: prints the bytes that the file has afterwards
 *
 * Prints what it did, a word in each line, and waits to be ended. "skipped: ..." where the kernel
 * does not let it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const size_t kPage = 4096;

struct end {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_port_attr port;
};

static void fail(const char* what) {
  printf("failed: %s\n", what);
  fflush(stdout);
  exit(1);
}

static void say(const char* what) {
  printf("%s\n", what);
  fflush(stdout);
}

static void wait_to_be_ended(void) {
  for (;;) pause();
}

static struct end open_end(struct ibv_device* device) {
  struct end e;
  e.context = ibv_open_device(device);
  if (e.context == NULL) fail("ibv_open_device");
  e.pd = ibv_alloc_pd(e.context);
  e.cq = ibv_create_cq(e.context, 4096, NULL, NULL, 0);
  if (e.pd == NULL || e.cq == NULL || ibv_query_port(e.context, 1, &e.port) != 0) fail("open");
  return e;
}

static struct ibv_qp* make_pair(struct end* e) {
  struct ibv_qp_init_attr init;
  memset(&init, 0, sizeof init);
  init.send_cq = init.recv_cq = e->cq;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = 64;
  init.cap.max_recv_wr = init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  struct ibv_qp* const qp = ibv_create_qp(e->pd, &init);
  if (qp == NULL) fail("ibv_create_qp");
  return qp;
}

static void connect_pair(struct ibv_qp* qp, const struct end* to, uint32_t number) {
  struct ibv_qp_attr a;
  memset(&a, 0, sizeof a);
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  int wrong =
      ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = number;
  a.max_dest_rd_atomic = a.max_rd_atomic = 1;
  a.min_rnr_timer = 12;
  a.ah_attr.dlid = to->port.lid;
  a.ah_attr.port_num = 1;
  wrong |= ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  a.qp_state = IBV_QPS_RTS;
  a.timeout = 14;
  a.retry_cnt = a.rnr_retry = 7;
  wrong |= ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (wrong != 0) fail("ibv_modify_qp");
}

static void post(struct ibv_qp* qp, enum ibv_wr_opcode opcode, const struct ibv_mr* from,
                 uint64_t at, uint32_t bytes, const struct ibv_mr* to) {
  struct ibv_sge piece = {(uintptr_t)from->addr + at, bytes, from->lkey};
  struct ibv_send_wr wr, *bad;
  memset(&wr, 0, sizeof wr);
  wr.opcode = opcode;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (to != NULL) {
    wr.wr.rdma.remote_addr = (uintptr_t)to->addr + at;
    wr.wr.rdma.rkey = to->rkey;
  }
  if (ibv_post_send(qp, &wr, &bad) != 0) fail("ibv_post_send");
}

/* Pages of which none ever comes. */
static char* bottomless(size_t pages) {
  const int file = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  char* const at =
      mmap(NULL, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct uffdio_api api;
  struct uffdio_register watch;
  memset(&api, 0, sizeof api);
  memset(&watch, 0, sizeof watch);
  api.api = UFFD_API;
  watch.range.start = (uintptr_t)at;
  watch.range.len = pages * kPage;
  watch.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (file < 0 || ioctl(file, UFFDIO_API, &api) != 0 || ioctl(file, UFFDIO_REGISTER, &watch) != 0) {
    say("skipped: no userfaultfd that stops the kernel");
    wait_to_be_ended();
  }
  return at;
}

/* What this program shares with the service. -1: nothing. */
static int shared_file(void) {
  char link[64], name[256];
  for (int fd = 3; fd < 1024; ++fd) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, name, sizeof name - 1);
    if (n < 0) continue;
    name[n] = '\0';
    if (strstr(name, "paceline-registered") != NULL) return fd;
  }
  return -1;
}

static void hang(struct end* from, struct end* to, size_t regions) {
  char* const memory = bottomless(regions);
  for (size_t i = 0; i < regions; ++i) {
    struct ibv_mr* const mr = ibv_reg_mr(from->pd, memory + i * kPage, 64, 0);
    if (mr == NULL) fail("ibv_reg_mr");
    struct ibv_qp* const qp = make_pair(from);
    struct ibv_qp* const peer = make_pair(to);
    connect_pair(qp, to, peer->qp_num);
    connect_pair(peer, from, qp->qp_num);
    post(qp, IBV_WR_SEND, mr, 0, 64, NULL);
  }
  say("hanging");
  usleep(500000);
  /* Its sessions end, and it does not. */
  for (int fd = 3; fd < 4096; ++fd) {
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) close(fd);
  }
  say("closed");
}

static void punch(struct end* from, struct end* to, size_t mib) {
  const size_t bytes = mib << 20;
  char* const memory =
      mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(memory, 1, 2 * bytes);
  struct ibv_mr* const source = ibv_reg_mr(from->pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_mr* const target =
      ibv_reg_mr(to->pd, memory + bytes, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (source == NULL || target == NULL) fail("ibv_reg_mr");
  struct stat status;
  const int file = shared_file();
  if (file < 0 || fstat(file, &status) != 0 || (size_t)status.st_blocks * 512 < bytes) {
    say("skipped: memory is not shared here");
    wait_to_be_ended();
  }
  struct ibv_qp* const qp = make_pair(from);
  struct ibv_qp* const peer = make_pair(to);
  connect_pair(qp, to, peer->qp_num);
  connect_pair(peer, from, qp->qp_num);
  if (fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, status.st_size) != 0)
    fail("fallocate");
  say("punched");
  for (size_t at = 0; at < bytes && at >> 20 < 64; at += 1 << 20) {
    post(qp, IBV_WR_RDMA_WRITE, source, at, 1 << 20, target);
  }
  struct ibv_wc wc;
  for (int i = 0; i < 2000 && ibv_poll_cq(from->cq, 1, &wc) == 0; ++i) usleep(1000);
  usleep(1000000);
  fstat(file, &status);
  printf("file %llu\n", (unsigned long long)status.st_blocks * 512);
  say("done");
}

int main(int argc, char** argv) {
  int count = 0;
  struct ibv_device** const devices = ibv_get_device_list(&count);
  if (argc != 3 || devices == NULL || count < 2) fail("usage, or fewer than two NICs");
  struct end from = open_end(devices[0]);
  struct end to = open_end(devices[1]);
  const size_t amount = strtoul(argv[2], NULL, 10);
  if (strcmp(argv[1], "hang") == 0) {
    hang(&from, &to, amount);
  } else {
    punch(&from, &to, amount);
  }
  wait_to_be_ended();
}
