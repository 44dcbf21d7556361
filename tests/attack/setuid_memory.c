/* A tenant that tries to reach a set-user-id program's memory through the service:
 *
 *   setuid_memory MODE TARGET GO
 *
 * A process opens a device and a queue pair and, but for `honest`, becomes TARGET, which has its
 * secret at an address that both know. Its children keep the socket. When the file GO is there, a
 * second process reads from that address through another device, and writes to it. MODE: honest the
 * memory is the process's own, by copy, and nothing is tried inherited  a child registers the
 * address, by the socket that it inherited, after the exec before     the process has registered
 * the address, in its own memory, before the exec shared     the same, and a child shares the
 * address space, which so outlives the exec
 *
 * stderr tells what came of it: "register ERRNO", "read STATUS BYTES", "write STATUS", where BYTES
 * are those of the secret. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "setuid_memory.h"

enum { kAccess = 15, kOther = 64 };

struct Meeting { /* of all processes */
  volatile uint32_t qp[2];
  volatile uint32_t lid[2];
  volatile int ready[2];
  volatile uint32_t key;
  volatile int registered; /* 1, or -errno */
};

struct End {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
};

static void fail(const char* what) {
  fprintf(stderr, "failed: %s: %s\n", what, strerror(errno));
  exit(1);
}

/* Bounded: 20 s. */
static void wait_for(const volatile int* flag) {
  for (int i = 0; i < 20000 && *flag == 0; ++i) usleep(1000);
  if (*flag == 0) fail("the other process");
}

static struct End open_end(int which, struct Meeting* meeting) {
  struct End end;
  int devices = 0;
  struct ibv_device** const list = ibv_get_device_list(&devices);
  if (list == NULL || devices < 2) fail("two devices");
  end.context = ibv_open_device(list[which]);
  if (end.context == NULL) fail("ibv_open_device");
  end.pd = ibv_alloc_pd(end.context);
  end.cq = ibv_create_cq(end.context, 16, NULL, NULL, 0);
  if (end.pd == NULL || end.cq == NULL) fail("pd, cq");
  struct ibv_qp_init_attr wish = {.send_cq = end.cq, .recv_cq = end.cq, .qp_type = IBV_QPT_RC};
  wish.cap.max_send_wr = wish.cap.max_recv_wr = wish.cap.max_send_sge = wish.cap.max_recv_sge = 4;
  end.qp = ibv_create_qp(end.pd, &wish);
  struct ibv_port_attr port;
  if (end.qp == NULL || ibv_query_port(end.context, 1, &port) != 0) fail("qp");
  meeting->qp[which] = end.qp->qp_num;
  meeting->lid[which] = port.lid;
  meeting->ready[which] = 1;
  wait_for(&meeting->ready[1 - which]);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = kAccess};
  int wrong = ibv_modify_qp(end.qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = meeting->qp[1 - which];
  attr.max_dest_rd_atomic = attr.max_rd_atomic = 4;
  attr.min_rnr_timer = 12;
  attr.ah_attr.dlid = (uint16_t)meeting->lid[1 - which];
  attr.ah_attr.port_num = 1;
  wrong |= ibv_modify_qp(end.qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  wrong |= ibv_modify_qp(end.qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (wrong != 0) fail("ibv_modify_qp");
  return end;
}

/* The status of one operation on the other end's memory; -1: no completion in 20 s. */
static int reach(struct End* end, enum ibv_wr_opcode opcode, struct ibv_mr* mr, uint32_t bytes,
                 uint32_t key) {
  struct ibv_sge piece = {.addr = (uintptr_t)mr->addr, .length = bytes, .lkey = mr->lkey};
  struct ibv_send_wr request = {
      .sg_list = &piece, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
  request.wr.rdma.remote_addr = kSecretAt;
  request.wr.rdma.rkey = key;
  struct ibv_send_wr* bad = NULL;
  if (ibv_post_send(end->qp, &request, &bad) != 0) fail("ibv_post_send");
  struct ibv_wc wc;
  for (int i = 0; i < 20000; ++i) {
    if (ibv_poll_cq(end->cq, 1, &wc) == 1) return (int)wc.status;
    usleep(1000);
  }
  return -1;
}

static void read_and_write(struct Meeting* meeting, const char* go) {
  struct End end = open_end(1, meeting);
  unsigned char* const room =
      mmap(NULL, kSecretBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct ibv_mr* const mr = ibv_reg_mr(end.pd, room, kSecretBytes, kAccess);
  if (mr == NULL) fail("ibv_reg_mr");
  for (int i = 0; i < 20000 && access(go, F_OK) != 0; ++i) usleep(1000);
  wait_for(&meeting->registered);
  fprintf(stderr, "register %d\n", meeting->registered == 1 ? 0 : -meeting->registered);
  if (meeting->registered != 1) return;
  const int status = reach(&end, IBV_WR_RDMA_READ, mr, kSecretBytes, meeting->key);
  unsigned secret = 0;
  for (unsigned i = 0; i < kSecretBytes; ++i) secret += room[i] == kSecretByte;
  fprintf(stderr, "read %d %u\n", status, secret);
  if (status != IBV_WC_SUCCESS) { /* the queue pair is over, and so it is for a write */
    fprintf(stderr, "write -1\n");
    return;
  }
  memset(room, 1, 8);
  fprintf(stderr, "write %d\n", reach(&end, IBV_WR_RDMA_WRITE, mr, 8, meeting->key));
}

/* The library refuses to speak for a parent. The protocol by hand (dataplane/attach/protocol.h). */
static void register_by_hand(struct Meeting* meeting, uint32_t pd) {
  struct {
    uint32_t magic;
    uint16_t operation, major;
    uint32_t sequence, error;
    uint64_t address, length, iova;
    uint32_t access, pd, extents, handle, change, reserved;
    uint64_t extent_length, extent_offset;
    uint32_t kind, extent_reserved;
  } request = {0x4C434150,   13,      1,  1000000, 0, kSecretAt, kSecretBytes,
               kSecretAt,    kAccess, pd, 1,       0, 0,         0,
               kSecretBytes, 0,       0,  0};
  int answer[256] = {0};
  for (int fd = 3; fd < 1024; ++fd) {
    int type = 0;
    socklen_t length = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_SEQPACKET)
      continue;
    if (send(fd, &request, sizeof request, 0) < 0 || recv(fd, answer, sizeof answer, 0) < 16) {
      meeting->registered = -EIO;
      return;
    }
    meeting->key = (uint32_t)answer[6]; /* handle, local key, remote key behind the header */
    meeting->registered = answer[3] == 0 ? 1 : -answer[3];
    return;
  }
  meeting->registered = -ENOTSOCK;
}

static int linger(void* unused) {
  sleep(30);
  return unused != NULL;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const char* const mode = argv[1];
  const char* const go = argv[3];
  struct Meeting* const meeting =
      mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (meeting == MAP_FAILED) fail("mmap");
  const pid_t reader = fork();
  if (reader == 0) {
    read_and_write(meeting, go);
    _exit(0);
  }
  struct End end = open_end(0, meeting);
  const int honest = strcmp(mode, "honest") == 0;
  const int inherited = strcmp(mode, "inherited") == 0;
  if (!inherited) {
    void* const own = mmap((void*)kSecretAt, kSecretBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (own != (void*)kSecretAt) fail("mmap");
    memset(own, honest ? kSecretByte : 0, kSecretBytes);
    struct ibv_mr* const mr = ibv_reg_mr(end.pd, own, kSecretBytes, kAccess);
    if (mr == NULL) fail("ibv_reg_mr");
    meeting->key = mr->rkey;
    meeting->registered = 1;
  }
  if (honest) {
    waitpid(reader, NULL, 0);
    size_t changed = 0;
    for (size_t i = 0; i < kSecretBytes; ++i) {
      changed += ((unsigned char*)kSecretAt)[i] != kSecretByte;
    }
    printf("changed %zu\n", changed);
    return 0;
  }
  if (fork() == 0) {
    for (int i = 0; i < 20000 && access(go, F_OK) != 0; ++i) usleep(1000);
    if (inherited) register_by_hand(meeting, end.pd->handle);
    sleep(20);
    _exit(0);
  }
  if (strcmp(mode, "shared") == 0) {
    static char stack[65536];
    if (clone(linger, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL) < 0) fail("clone");
  }
  execl(argv[2], argv[2], (char*)NULL);
  fail("execl");
}
