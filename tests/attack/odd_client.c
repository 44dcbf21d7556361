/* Programs that do what ordinary ones do not, with two NICs of a service: odd_client WHAT. Each ends
 * with "good" and status 0, or says what went wrong. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBytes = 1 << 16, kThreads = 1000, kSlice = 4096 };

static void die(const char* what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

/* Two NICs, each with a connected queue pair and memory. */
struct end {
  struct ibv_context* nic;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  struct ibv_mr* mr;
  union ibv_gid gid;
  char* memory;
};

static int open_nics(struct end ends[2]) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  for (int i = 0; i < 2; ++i) ends[i].nic = list && count > i ? ibv_open_device(list[i]) : NULL;
  if (list) ibv_free_device_list(list);
  return ends[0].nic && ends[1].nic;
}

static int make_memory(struct end* e, size_t bytes) {
  e->pd = ibv_alloc_pd(e->nic);
  e->memory = aligned_alloc(4096, bytes);
  if (!e->pd || !e->memory || ibv_query_gid(e->nic, 1, 0, &e->gid) != 0) return 0;
  memset(e->memory, 0, bytes);
  e->mr = ibv_reg_mr(e->pd, e->memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  return e->mr != NULL;
}

static int make_end(struct end* e) {
  struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
  e->cq = ibv_create_cq(e->nic, 64, NULL, NULL, 0);
  if (!e->cq) return 0;
  init.send_cq = init.recv_cq = e->cq;
  init.cap.max_send_wr = init.cap.max_recv_wr = 8;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  e->qp = ibv_create_qp(e->pd, &init);
  return e->qp != NULL;
}

static int ready(struct end* e, const struct end* peer) {
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
    return 0;
  memset(&a, 0, sizeof a);
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = IBV_MTU_4096;
  a.dest_qp_num = peer->qp->qp_num;
  a.max_dest_rd_atomic = 1;
  a.min_rnr_timer = 12;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  a.ah_attr.grh.dgid = peer->gid;
  a.ah_attr.grh.hop_limit = 64;
  if (ibv_modify_qp(e->qp, &a,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
    return 0;
  memset(&a, 0, sizeof a);
  a.qp_state = IBV_QPS_RTS;
  a.timeout = 18;
  a.retry_cnt = a.rnr_retry = 7;
  a.max_rd_atomic = 1;
  return ibv_modify_qp(e->qp, &a,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

static int connect_pair(struct end ends[2]) {
  return make_end(&ends[0]) && make_end(&ends[1]) && ready(&ends[0], &ends[1]) &&
         ready(&ends[1], &ends[0]);
}

static int connect_ends(struct end ends[2]) {
  return make_memory(&ends[0], kBytes) && make_memory(&ends[1], kBytes) && connect_pair(ends);
}

/* One WRITE, checked at the far end. 0: good, else the completion's status, or negative. */
static int transfer(struct end ends[2], char value, uint32_t bytes) {
  struct ibv_sge sge = {(uintptr_t)ends[0].memory, bytes, ends[0].mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
  struct ibv_send_wr* bad = NULL;
  struct ibv_wc wc;
  int got = 0;
  memset(ends[0].memory, value, bytes);
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = (uintptr_t)ends[1].memory;
  wr.wr.rdma.rkey = ends[1].mr->rkey;
  if (ibv_post_send(ends[0].qp, &wr, &bad) != 0) return -1;
  while (got == 0) got = ibv_poll_cq(ends[0].cq, 1, &wc);
  if (got < 0 || wc.status != IBV_WC_SUCCESS) return got < 0 ? -2 : (int)wc.status;
  return memcmp(ends[0].memory, ends[1].memory, bytes) == 0 ? 0 : -3;
}

static void expect_transfer(struct end ends[2], const char* when) {
  for (char turn = 1; turn < 20; ++turn) {
    const int wrong = transfer(ends, turn, kBytes);
    if (wrong == 0) continue;
    fprintf(stderr, "%s: transfer: %d\n", when, wrong);
    exit(1);
  }
}

static void connected(struct end ends[2]) {
  if (!open_nics(ends) || !connect_ends(ends)) die("no connection");
  expect_transfer(ends, "first");
}

static void children(void) {
  struct end ends[2];
  connected(ends);
  for (int i = 0; i < 10; ++i) {
    int status = 1;
    char* const words[] = {"true", NULL};
    pid_t child = vfork();
    if (child == 0) {
      execvp(words[0], words);
      _exit(1);
    }
    waitpid(child, &status, 0);
    if (status != 0) die("vfork and exec");
    if (posix_spawnp(&child, "true", NULL, NULL, words, NULL) != 0) die("posix_spawn");
    waitpid(child, &status, 0);
    child = fork();
    if (child == 0) { /* what it inherited is the parent's, and it must be told so */
      const int refused = transfer(ends, 99, 64);
      struct end own[2];
      if (refused == 0) _exit(1);
      if (!open_nics(own) || !connect_ends(own) || transfer(own, 5, kBytes) != 0) _exit(2);
      _exit(0);
    }
    waitpid(child, &status, 0);
    if (status != 0) die("fork");
    if (system("exit 0") != 0) die("system");
    expect_transfer(ends, "after children");
  }
}

static void becomes_daemon(void) {
  struct end ends[2];
  int report[2];
  char answer = 0;
  connected(ends); /* the parent's, which leaves it */
  if (pipe(report) != 0) die("pipe");
  const pid_t child = fork();
  if (child == 0) {
    if (daemon(1, 1) != 0) _exit(1);
    if (transfer(ends, 9, 64) == 0) _exit(1);
    memset(ends, 0, sizeof ends);
    if (!open_nics(ends) || !connect_ends(ends) || transfer(ends, 7, kBytes) != 0) _exit(1);
    if (write(report[1], "+", 1) != 1) _exit(1);
    _exit(0);
  }
  close(report[1]);
  waitpid(child, NULL, 0);
  if (read(report[0], &answer, 1) != 1 || answer != '+') die("the daemon does not transfer");
  expect_transfer(ends, "beside the daemon");
}

/* Closes all descriptors, then opens files and sockets in their places: nothing may be written there. */
static void closes_all(void) {
  struct end ends[2];
  char path[] = "/tmp/paceline-odd-XXXXXX";
  int files[100];
  int pairs[40][2];
  struct stat info;
  char byte;
  connected(ends);
  closefrom(3);
  for (int i = 0; i < 40; ++i) {
    if (socketpair(AF_UNIX, i % 2 == 0 ? SOCK_SEQPACKET : SOCK_STREAM, 0, pairs[i]) != 0)
      die("socketpair");
  }
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20; ++i) {
      usleep(2000); /* until the worker sleeps, and has to be woken */
      transfer(ends, (char)i, 64);
    }
    struct ibv_cq* cq = ibv_create_cq(ends[0].nic, 64, NULL, NULL, 0);
    struct ibv_mr* mr = ibv_reg_mr(ends[0].pd, ends[0].memory, 4096, IBV_ACCESS_LOCAL_WRITE);
    if (cq || mr) die("objects are made over a closed connection");
    if (round == 1) break;
    for (int i = 0; i < 40; ++i) {
      for (int k = 0; k < 2; ++k) {
        if (recv(pairs[i][k], &byte, 1, MSG_DONTWAIT) >= 0) die("written to a socket of the program");
      }
      close(pairs[i][0]);
      close(pairs[i][1]);
    }
    for (int i = 0; i < 100; ++i) {
      files[i] = i == 0 ? mkstemp(path) : open(path, O_RDWR);
      if (files[i] < 0) die(path);
    }
    unlink(path);
  }
  /* Devices that are opened now work, memory that was registered before included. */
  if (ibv_close_device(ends[0].nic) || ibv_close_device(ends[1].nic)) die("not closed");
  struct end anew[2];
  if (!open_nics(anew) || !connect_ends(anew)) die("not opened anew");
  for (int i = 0; i < 2; ++i) {
    anew[i].memory = ends[i].memory;
    anew[i].mr = ibv_reg_mr(anew[i].pd, ends[i].memory, kBytes,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!anew[i].mr) die("not registered again");
  }
  expect_transfer(anew, "opened anew");
  for (int i = 0; i < 100; ++i) {
    if (fstat(files[i], &info) != 0) die("a file of the program is closed");
    if (info.st_size != 0) die("written to a file of the program");
  }
}

/* No system call but those that a program with nothing to hide needs; the others are refused. */
static void confined(void) {
  struct end ends[2];
  connected(ends);
#define ALLOW(name)                                        \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(write), ALLOW(exit_group), ALLOW(rt_sigreturn),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  struct sock_fprog program = {sizeof code / sizeof code[0], code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    die("seccomp");
  expect_transfer(ends, "under seccomp");
  if (ibv_create_cq(ends[0].nic, 64, NULL, NULL, 0) != NULL) die("asked the service all the same");
}

static pthread_barrier_t all_there;

static struct end shared[2];
static _Atomic int next_slice;

/* A queue pair on each NIC, and a part of the memory, of its own. */
static void* one_of_many(void* unused) {
  const size_t slice = (size_t)next_slice++;
  struct end ends[2];
  memcpy(ends, shared, sizeof ends);
  for (int i = 0; i < 2; ++i) ends[i].memory += slice * kSlice;
  pthread_barrier_wait(&all_there);
  if (!connect_pair(ends)) return "no connection";
  for (char turn = 1; turn < 4; ++turn) {
    if (transfer(ends, turn, kSlice) != 0) return "no transfer";
  }
  for (int i = 0; i < 2; ++i) {
    if (ibv_destroy_qp(ends[i].qp) || ibv_destroy_cq(ends[i].cq)) return "not destroyed";
  }
  return unused;
}

static void many_threads(void) {
  pthread_t threads[kThreads];
  pthread_attr_t small;
  if (!open_nics(shared) || !make_memory(&shared[0], kThreads * kSlice) ||
      !make_memory(&shared[1], kThreads * kSlice))
    die("no NICs");
  pthread_barrier_init(&all_there, NULL, kThreads);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 << 10);
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], &small, one_of_many, NULL) != 0) die("pthread_create");
  }
  for (int i = 0; i < kThreads; ++i) {
    void* wrong = NULL;
    pthread_join(threads[i], &wrong);
    if (!wrong) continue;
    errno = 0;
    die(wrong);
  }
}

/* In a child each: whatever cannot be had is refused, and nothing crashes. */
static void under_limits(int resource, rlim_t from, rlim_t to, rlim_t step) {
  int refused = 0, served = 0;
  for (rlim_t most = from; most <= to; most += step) {
    const pid_t child = fork();
    int status = 0;
    if (child == 0) {
      struct end ends[2];
      const struct rlimit limit = {most, most};
      memset(ends, 0, sizeof ends);
      if (setrlimit(resource, &limit) != 0) _exit(3);
      if (!open_nics(ends) || !connect_ends(ends)) _exit(1);
      _exit(transfer(ends, 3, kBytes) == 0 ? 0 : 2);
    }
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
      fprintf(stderr, "limit %d of %llu: status %x\n", resource, (unsigned long long)most, status);
      exit(1);
    }
    *(WEXITSTATUS(status) == 0 ? &served : &refused) += 1;
  }
  printf("%d refused, %d served\n", refused, served);
  if (!refused || !served) die("the limits are not the right ones");
}

static rlim_t address_space(void) {
  unsigned long long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%llu", &pages) != 1) die("statm");
  fclose(file);
  return pages * 4096;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  alarm(100);
  if (!strcmp(what, "children")) {
    children();
  } else if (!strcmp(what, "daemon")) {
    becomes_daemon();
  } else if (!strcmp(what, "closefrom")) {
    closes_all();
  } else if (!strcmp(what, "seccomp")) {
    confined();
  } else if (!strcmp(what, "threads")) {
    many_threads();
  } else if (!strcmp(what, "descriptors")) {
    under_limits(RLIMIT_NOFILE, 3, 40, 1);
  } else if (!strcmp(what, "memory")) {
    under_limits(RLIMIT_AS, address_space(), address_space() + (6 << 20), 128 << 10);
  } else {
    die("children, daemon, closefrom, seccomp, threads, descriptors or memory");
  }
  puts("good");
  return 0;
}
