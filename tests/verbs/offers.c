/* What the device offers beside the everyday calls, and how it refuses the rest.
 *
 *   offers CASE [SEED]    prints "CASE passed"
 *
 * `newer` and `probes` look functions up by name: they are of a newer libibverbs than the header here
 * may be of, or of libraries that may not be installed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>

#include "two_ends.h"

enum { kBytes = 1 << 16, kEntries = 1024 };

static struct end ends[2];
static struct ibv_mr* from;
static struct ibv_mr* into;

struct pair {
  struct ibv_cq* cq[2];
  struct ibv_qp* qp[2];
};

static struct pair make_pair(struct ibv_srq* srq) {
  struct pair p;
  for (int i = 0; i < 2; ++i) {
    NEED((p.cq[i] = ibv_create_cq(ends[i].device, kEntries, NULL, NULL, 0)) != NULL);
    struct ibv_qp_init_attr attr = {.send_cq = p.cq[i], .recv_cq = p.cq[i], .qp_type = IBV_QPT_RC};
    attr.cap.max_send_wr = attr.cap.max_recv_wr = 256;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    if (i == 1) attr.srq = srq;
    NEED((p.qp[i] = ibv_create_qp(ends[i].pd, &attr)) != NULL);
  }
  connect_both(ends, p.qp[0], p.qp[1]);
  return p;
}

static void unmake_pair(struct pair* p) {
  for (int i = 0; i < 2; ++i) NEED(ibv_destroy_qp(p->qp[i]) == 0);
  for (int i = 0; i < 2; ++i) NEED(ibv_destroy_cq(p->cq[i]) == 0);
}

static void success(struct ibv_cq* cq) {
  const struct ibv_wc wc = next_completion(cq);
  if (wc.status != IBV_WC_SUCCESS) die("%s", ibv_wc_status_str(wc.status));
}

static void send_from(struct ibv_qp* qp, enum ibv_wr_opcode opcode, const struct ibv_mr* mr,
                      size_t bytes, const struct ibv_mr* to) {
  struct ibv_sge sge = piece(mr, 0, bytes);
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode};
  struct ibv_send_wr* bad = NULL;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (to != NULL) {
    wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)to->addr;
    wr.wr.rdma.rkey = to->rkey;
  }
  NEED(ibv_post_send(qp, &wr, &bad) == 0);
}

/* --- libibverbs of rdma-core 59 to 65 --- */

struct newer_region { /* struct ibv_mr_init_attr */
  size_t length;
  int access;
  uint64_t comp_mask; /* IOVA 1, ADDR 2, FD 4, FD_OFFSET 8, DMAH 16, BUF 32 */
  uint64_t iova;
  void* addr;
  int fd;
  uint64_t fd_offset;
  void* dmah;
  void* buf;
};

/* The function, as pointers to functions are had from dlsym(). */
#define NEWER(pointer, name) \
  NEED((*(void**)(&(pointer)) = dlsym(RTLD_DEFAULT, name)) != NULL)

static void newer(void) {
  struct ibv_mr* (*reg_mr_ex)(struct ibv_pd*, struct newer_region*);
  void* (*alloc_buf)(struct ibv_pd*, size_t, void**);
  struct ibv_mr* (*reg_buf_mr)(struct ibv_pd*, void*, void*, size_t, int);
  void (*free_buf)(void*);
  int (*export_buf)(void*);
  int (*port_speed)(struct ibv_context*, uint32_t, uint64_t*);
  NEWER(reg_mr_ex, "ibv_reg_mr_ex");
  NEWER(alloc_buf, "ibv_alloc_buf");
  NEWER(reg_buf_mr, "ibv_reg_buf_mr");
  NEWER(free_buf, "ibv_free_buf");
  NEWER(export_buf, "ibv_export_buf_dmabuf_fd");
  NEWER(port_speed, "ibv_query_port_speed");
  uint64_t speed = 0;
  NEED(port_speed(ends[0].device, 1, &speed) == 0 && speed == 250); /* pair.toml: 25 Gb/s */
  NEED(port_speed(ends[0].device, 2, &speed) == EINVAL);

  /* Bytes go from a region by reg_mr_ex into one by reg_buf_mr. */
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  struct newer_region asked = {
      .length = 4096, .access = access, .comp_mask = 1 | 2, .iova = 4096, .addr = from->addr};
  struct ibv_mr* source = reg_mr_ex(ends[0].pd, &asked);
  NEED(source != NULL && source->length == 4096 && source->addr == from->addr);
  void* buffer = NULL;
  char* const bytes = alloc_buf(ends[1].pd, 8192, &buffer);
  NEED(bytes != NULL && buffer != NULL && (uintptr_t)bytes % 4096 == 0);
  struct ibv_mr* target = reg_buf_mr(ends[1].pd, buffer, bytes + 4096, 4096, access);
  NEED(target != NULL);
  NEED(export_buf(buffer) == -1 && errno == ENODATA);
  struct pair p = make_pair(NULL);
  memset(from->addr, 'x', 4096);
  struct ibv_sge sge = {4096, 4096, source->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
  struct ibv_send_wr* bad = NULL;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)(bytes + 4096);
  wr.wr.rdma.rkey = target->rkey;
  NEED(ibv_post_send(p.qp[0], &wr, &bad) == 0);
  success(p.cq[0]);
  NEED(bytes[4096] == 'x' && bytes[8191] == 'x');
  unmake_pair(&p);

  /* What goes wrong, as with a driver that has no calls of its own for it. */
  NEED(reg_buf_mr(ends[1].pd, buffer, bytes + 4096, 4097, access) == NULL && errno == EINVAL);
  NEED(reg_buf_mr(ends[0].pd, buffer, bytes, 4096, access) == NULL && errno == EINVAL);
  const struct {
    uint64_t mask;
    int error;
  } wrong[] = {{0, EINVAL}, {1, EINVAL},  {2 | 8, EINVAL},         {4, EINVAL}, {2 | 4, EINVAL},
               {32, EINVAL}, {2 | 16, EOPNOTSUPP}, {1 | 4 | 8, EOPNOTSUPP}, {2 | 64, EOPNOTSUPP}};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    asked.comp_mask = wrong[i].mask;
    asked.buf = buffer;
    if (reg_mr_ex(ends[1].pd, &asked) != NULL || errno != wrong[i].error) {
      die("mask %d: errno %d", (int)wrong[i].mask, errno);
    }
  }
  NEED(ibv_dereg_mr(source) == 0 && ibv_dereg_mr(target) == 0);
  free_buf(buffer);

  /* Completion counters, handles for direct access and dma-bufs: none. */
  static const char* const null_is_no[] = {"ibv_create_comp_cntr", "ibv_alloc_dmah"};
  static const char* const errno_is_no[] = {"_ibv_query_comp_cntr_caps"};
  for (size_t i = 0; i < sizeof(null_is_no) / sizeof(null_is_no[0]); ++i) {
    void* (*make)(struct ibv_context*, void*);
    NEWER(make, null_is_no[i]);
    NEED(make(ends[0].device, NULL) == NULL && errno == EOPNOTSUPP);
  }
  int (*ask)(struct ibv_context*, void*, size_t);
  NEWER(ask, errno_is_no[0]);
  NEED(ask(ends[0].device, NULL, 0) == EOPNOTSUPP);
}

/* Nothing is promised of the order within a message, whatever is asked. */
static void order(void) {
  struct pair p = make_pair(NULL);
  static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                               IBV_WR_RDMA_WRITE_WITH_IMM};
  for (int i = 0; i < 4; ++i) {
    for (uint32_t flags = 0; flags < 4; ++flags) {
      NEED(ibv_query_qp_data_in_order(p.qp[0], opcodes[i], flags) == 0);
    }
  }
  unmake_pair(&p);
}

/* --- shared receive queues of another size --- */

static uint64_t next_id, expected_id;

/* Each request has a place of its own, in two pieces. */
static size_t place_of(uint64_t id) { return id % 256 * 64; }

static int post(struct ibv_srq* srq) {
  struct ibv_sge list[2] = {piece(into, place_of(next_id), 4),
                            piece(into, place_of(next_id) + 32, 4)};
  struct ibv_recv_wr wr = {.wr_id = next_id, .sg_list = list, .num_sge = 2};
  struct ibv_recv_wr* bad = NULL;
  const int error = ibv_post_srq_recv(srq, &wr, &bad);
  if (error == 0) ++next_id;
  return error;
}

static void one_message(struct pair* p) {
  memcpy(from->addr, &expected_id, 8);
  send_from(p->qp[0], IBV_WR_SEND, from, 8, NULL);
  success(p->cq[0]);
  const struct ibv_wc wc = next_completion(p->cq[1]);
  if (wc.status != IBV_WC_SUCCESS || wc.wr_id != expected_id) {
    die("request %d is %s, expected was %d", (int)wc.wr_id, ibv_wc_status_str(wc.status),
        (int)expected_id);
  }
  uint64_t got = 0;
  memcpy(&got, (char*)into->addr + place_of(expected_id), 4);
  memcpy((char*)&got + 4, (char*)into->addr + place_of(expected_id) + 32, 4);
  if (got != expected_id) die("message %d is in the place of %d", (int)got, (int)expected_id);
  ++expected_id;
}

static struct ibv_srq_attr attributes(struct ibv_srq* srq) {
  struct ibv_srq_attr attr;
  NEED(ibv_query_srq(srq, &attr) == 0);
  return attr;
}

/* Posts, messages and sizes in any order: no request is lost, or taken out of turn, and as many can
 * be out as the queue says. */
static void srq_resize(unsigned seed) {
  printf("seed %u\n", seed);
  srand(seed);
  struct ibv_device_attr device;
  NEED(ibv_query_device(ends[1].device, &device) == 0);
  NEED((device.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) != 0);
  struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 2}};
  struct ibv_srq* const srq = ibv_create_srq(ends[1].pd, &init);
  NEED(srq != NULL);
  struct pair p = make_pair(srq);
  int grown = 0, shrunk = 0, refused = 0;
  for (int step = 0; step < 400; ++step) {
    const uint32_t out = (uint32_t)(next_id - expected_id);
    const uint32_t size = attributes(srq).max_wr;
    switch (rand() % 8) {
      case 0: {
        const uint32_t wanted = 1 + (uint32_t)rand() % 150;
        struct ibv_srq_attr attr = {.max_wr = wanted};
        const int error = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
        const uint32_t now = attributes(srq).max_wr;
        if (error == 0) {
          NEED(now >= wanted && now >= out);
          grown += now > size, shrunk += now < size;
        } else {
          NEED(error == EINVAL && now == size && out > wanted);
          ++refused;
        }
        break;
      }
      case 1: /* to the brim, and not beyond */
        while ((uint32_t)(next_id - expected_id) < size) NEED(post(srq) == 0);
        NEED(post(srq) == ENOMEM);
        break;
      case 2:
      case 3:
      case 4:
        if (out < size) NEED(post(srq) == 0);
        break;
      default:
        for (int i = out != 0 ? rand() % (int)(out + 1) : 0; i > 0; --i) one_message(&p);
    }
  }
  printf("%d times larger, %d smaller, %d refused\n", grown, shrunk, refused);
  NEED(grown > 0 && shrunk > 0);

  /* As many as there is room for, and one fewer than that. */
  struct ibv_srq_attr attr = {.max_wr = 64};
  while (next_id != expected_id) one_message(&p);
  NEED(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == 0);
  for (int i = 0; i < 64; ++i) NEED(post(srq) == 0);
  attr.max_wr = 32;
  NEED(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EINVAL && attributes(srq).max_wr == 64);
  for (int i = 0; i < 32; ++i) one_message(&p);
  NEED(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == 0 && attributes(srq).max_wr == 32);
  NEED(post(srq) == ENOMEM);

  /* The limit: kept, or of the new size; more than that is refused, and changes nothing. */
  while (next_id != expected_id) one_message(&p);
  for (int i = 0; i < 8; ++i) NEED(post(srq) == 0);
  attr.max_wr = 64;
  attr.srq_limit = 6;
  NEED(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) == 0);
  attr.max_wr = 32;
  NEED(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == 0);
  NEED(attributes(srq).srq_limit == 6 && attributes(srq).max_wr == 32);
  attr.srq_limit = 33;
  NEED(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) == EINVAL);
  NEED(attributes(srq).srq_limit == 6 && attributes(srq).max_wr == 32);
  attr.max_wr = (uint32_t)device.max_srq_wr + 1;
  NEED(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EINVAL);
  attr.max_wr = 0;
  NEED(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EINVAL);
  for (int i = 0; i < 3; ++i) one_message(&p);
  struct ibv_async_event event;
  NEED(ibv_get_async_event(ends[1].device, &event) == 0);
  NEED(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq);
  ibv_ack_async_event(&event);
  NEED(attributes(srq).srq_limit == 0);
  unmake_pair(&p);
  NEED(ibv_destroy_srq(srq) == 0);
}

/* --- what is refused --- */

#define REFUSED(call, error_number)                                                       \
  do {                                                                                    \
    errno = 0;                                                                            \
    if ((call) != NULL || errno != (error_number)) die("%s: errno %d", #call, errno);     \
  } while (0)

static void refused(void) {
  struct ibv_context* const device = ends[0].device;
  struct ibv_device_attr_ex all;
  NEED(ibv_query_device_ex(device, NULL, &all) == 0);
  const struct ibv_device_attr* const plain = &all.orig_attr;

  /* Regions of all addresses. */
  NEED((all.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0);
  NEED((all.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT) == 0);
  const int on_demand = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND;
  REFUSED(ibv_reg_mr(ends[0].pd, NULL, SIZE_MAX, on_demand), EINVAL);
  struct ibv_mr* const usual = ibv_reg_mr(ends[0].pd, from->addr, 4096, on_demand);
  NEED(usual != NULL && ibv_dereg_mr(usual) == 0);

  /* Raw packets and flow steering. */
  NEED(all.raw_packet_caps == 0 && plain->max_raw_ethy_qp == 0 && plain->max_raw_ipv6_qp == 0);
  struct ibv_cq* const cq = ibv_create_cq(device, 16, NULL, NULL, 0);
  NEED(cq != NULL);
  struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RAW_PACKET};
  attr.cap.max_send_wr = attr.cap.max_recv_wr = attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  REFUSED(ibv_create_qp(ends[0].pd, &attr), EOPNOTSUPP);
  attr.qp_type = IBV_QPT_RC;
  struct ibv_qp* const qp = ibv_create_qp(ends[0].pd, &attr);
  NEED(qp != NULL);
  NEED((all.device_cap_flags_ex & IBV_DEVICE_MANAGED_FLOW_STEERING) == 0);
  struct ibv_flow_attr flow = {.type = IBV_FLOW_ATTR_SNIFFER, .size = sizeof(flow), .port = 1};
  REFUSED(ibv_create_flow(qp, &flow), EOPNOTSUPP);
  struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = ends[0].pd,
                                .cq = cq};
  REFUSED(ibv_create_wq(device, &wq), EOPNOTSUPP);
  struct ibv_counters_init_attr counters = {0};
  REFUSED(ibv_create_counters(device, &counters), EOPNOTSUPP);

  /* A second port, multicast, more of a queue pair. */
  struct ibv_port_attr port;
  NEED(plain->phys_port_cnt == 1 && ibv_query_port(device, 2, &port) == EINVAL);
  NEED(plain->max_mcast_grp == 0);
  struct ibv_ece ece;
  NEED(ibv_query_ece(qp, &ece) == EOPNOTSUPP);
  /* Rights of regions that programs give queue pairs (DAPL does) are no reason to refuse them. */
  struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  init.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                         IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_RELAXED_ORDERING;
  NEED(ibv_modify_qp(qp, &init,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  NEED(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0);
}

/* --- libraries that ask whose device it is --- */

static void* library(const char* name) {
  void* const found = dlopen(name, RTLD_NOW);
  printf("%s %s\n", name, found != NULL ? "asked" : "is not installed");
  return found;
}

static void probes(void) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  NEED(list != NULL && count == 2);
  void* const mlx5 = library("libmlx5.so.1");
  if (mlx5 != NULL) {
    bool (*is)(struct ibv_device*);
    int (*query)(struct ibv_context*, void*);
    void* (*open)(struct ibv_device*, void*);
    int (*init)(void*, uint64_t);
    int (*clock)(struct ibv_context*, void*);
    NEED((*(void**)(&is) = dlsym(mlx5, "mlx5dv_is_supported")) != NULL);
    NEED((*(void**)(&query) = dlsym(mlx5, "mlx5dv_query_device")) != NULL);
    NEED((*(void**)(&open) = dlsym(mlx5, "mlx5dv_open_device")) != NULL);
    NEED((*(void**)(&init) = dlsym(mlx5, "mlx5dv_init_obj")) != NULL);
    NEED((*(void**)(&clock) = dlsym(mlx5, "mlx5dv_get_clock_info")) != NULL);
    uint64_t room[64] = {0};
    for (int i = 0; i < count; ++i) {
      NEED(!is(list[i]));
      NEED(open(list[i], room) == NULL && errno == EOPNOTSUPP);
    }
    NEED(query(ends[0].device, room) == EOPNOTSUPP);
    NEED(clock(ends[0].device, room) != 0);
    /* mlx5dv_obj: qp, cq, srq, rwq, dm, ah, pd, each {in, out} */
    struct pair p = make_pair(NULL);
    void* object[14] = {p.qp[0], room};
    NEED(init(object, 1 /* MLX5DV_OBJ_QP */) == EOPNOTSUPP);
    unmake_pair(&p);
  }
  void* const mlx4 = library("libmlx4.so.1");
  if (mlx4 != NULL) NEED(dlsym(mlx4, "mlx4dv_query_device") != NULL);
  void* const efa = library("libefa.so.1");
  if (efa != NULL) {
    int (*query)(struct ibv_context*, void*, uint32_t);
    int (*ah)(struct ibv_ah*, void*, uint32_t);
    void* (*queue_pair)(struct ibv_context*, void*, void*, uint32_t);
    NEED((*(void**)(&query) = dlsym(efa, "efadv_query_device")) != NULL);
    NEED((*(void**)(&ah) = dlsym(efa, "efadv_query_ah")) != NULL);
    NEED((*(void**)(&queue_pair) = dlsym(efa, "efadv_create_qp_ex")) != NULL);
    uint64_t room[64] = {0};
    NEED(query(ends[0].device, room, sizeof(room)) == EOPNOTSUPP);
    REFUSED(queue_pair(ends[0].device, room, room, sizeof(room)), EOPNOTSUPP);
    struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
    to.grh.dgid = ends[1].gid;
    struct ibv_ah* const handle = ibv_create_ah(ends[0].pd, &to);
    NEED(handle != NULL && ah(handle, room, sizeof(room)) == EOPNOTSUPP);
    NEED(ibv_destroy_ah(handle) == 0);
  }
  ibv_free_device_list(list);

  /* A locally administered identifier: no vendor's OUI, and no PCI number of one. */
  struct ibv_device_attr attr;
  NEED(ibv_query_device(ends[0].device, &attr) == 0);
  NEED((attr.vendor_id & 0x020000) != 0 && attr.vendor_id > 0xffff);
}

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  open_ends(ends);
  from = memory_of(&ends[0], kBytes);
  into = memory_of(&ends[1], kBytes);
  if (strcmp(name, "newer") == 0) {
    newer();
  } else if (strcmp(name, "order") == 0) {
    order();
  } else if (strcmp(name, "srq-resize") == 0) {
    srq_resize(argc > 2 ? (unsigned)atoi(argv[2]) : (unsigned)time(NULL));
  } else if (strcmp(name, "refused") == 0) {
    refused();
  } else if (strcmp(name, "probes") == 0) {
    probes();
  } else {
    die("no case \"%s\"", name);
  }
  for (int i = 0; i < 2; ++i) NEED(ibv_dereg_mr(i == 0 ? from : into) == 0);
  for (int i = 0; i < 2; ++i) NEED(ibv_dealloc_pd(ends[i].pd) == 0);
  for (int i = 0; i < 2; ++i) NEED(ibv_close_device(ends[i].device) == 0);
  printf("%s passed\n", name);
  return 0;
}
