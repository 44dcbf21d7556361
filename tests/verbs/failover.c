/* Verified traffic between two devices, both ways, while their ports fail and return.
 *
 *   failover DEVICE DEVICE SECONDS SEED     SIGTERM ends it sooner, as the time does
 *
 * Requests of every kind and of 0 to 300 kB go over several reliable connections. Checked are: each
 * byte of each message, and that all memory around messages and all memory at rest is unchanged;
 * that each message arrives once and in order, and what was written before it has arrived then;
 * that each atomic operation is done once. Any completion in error, any asynchronous event and a
 * connection without progress for kHangs seconds end the program with status 1 and "failed: ...".
 * Else its last line is JSON with what was done. */
#include "two_ends.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>

#include "areas.h"

enum {
  kPairs = 4,
  kFlows = 2 * kPairs, /* one each way */
  kWindow = 16,        /* requests of a flow under way, each with an area of its own at both ends */
  kLargeEvery = 4,     /* of these areas, one is large */
  kLarge = 304 << 10,
  kSmall = 12 << 10,
  kMargin = 512, /* at least so many bytes of an area are no message's */
  kFlowBytes = kWindow / kLargeEvery * kLarge + (kWindow - kWindow / kLargeEvery) * kSmall,
  kInline = 64,
  kPieces = 3,
  kMostAdds = 1 << 22,
  kHangs = 20
};

enum kind { kSend, kSendImm, kWrite, kWriteImm, kRead, kAdd, kSwap, kKinds };

static const struct {
  const char* name;
  enum ibv_wr_opcode posted;
  enum ibv_wc_opcode completed;
} kinds[kKinds] = {{"SEND", IBV_WR_SEND, IBV_WC_SEND},
                   {"SEND with immediate", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND},
                   {"WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
                   {"WRITE with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE},
                   {"READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
                   {"fetch and add", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD},
                   {"compare and swap", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP}};

struct request {
  enum kind kind;
  size_t bytes;
  size_t at[2];  /* offset of the message within its area, at the requester and at its peer */
  int inlined;   /* its source was reset when it was posted */
  int arrived;   /* checked where it goes to */
  int completed; /* at the requester */
};

/* The requests of one end of a connection. */
struct flow {
  int index, end;
  struct ibv_qp* qp;
  struct ibv_qp* peer;
  struct request requests[kWindow];
  uint64_t posted, completed, retired; /* requests: their numbers go up from 0 */
  uint64_t receives[kWindow];          /* numbers of the requests that take a receive */
  uint64_t receives_wanted, receives_posted, received;
  uint64_t swaps_posted, swaps_completed;
  int64_t last_added; /* what its last fetch and add has returned */
  int drains;         /* posts nothing until all is complete, and then checked at rest */
  double rests_until, progressed;
};

static struct end ends[2];
static struct ibv_mr* memory[2]; /* an area a flow and request, then the cells of atomics */
static struct ibv_cq* cq[2];
static struct flow flows[kFlows];
static uint64_t seed, state;
static volatile sig_atomic_t stopped;
static char added[2][kMostAdds]; /* whether a value was returned, of the cell at this end */
static uint64_t adds[2];
static uint64_t count_of[kKinds], bytes_done;

static uint64_t below(uint64_t bound) {
  state += 0x9e3779b97f4a7c15ULL;
  return (mixed(state) >> 16) % bound;
}

static int large(uint64_t number) { return number % kLargeEvery == 0; }

static size_t capacity_of(uint64_t number) { return large(number) ? kLarge : kSmall; }

static size_t area_offset(const struct flow* f, uint64_t number) {
  const size_t slot = number % kWindow;
  const size_t larges = (slot + kLargeEvery - 1) / kLargeEvery;
  return (size_t)f->index * kFlowBytes + larges * kLarge + (slot - larges) * kSmall;
}

/* The end of the message's area: 0 the requester's, 1 its peer's. */
static size_t message_offset(const struct flow* f, uint64_t number, int far) {
  return area_offset(f, number) + f->requests[number % kWindow].at[far];
}

static unsigned char background_of(int end) { return end == 0 ? 0xee : 0x1d; }

static unsigned char* byte_of(int end, size_t offset) {
  return (unsigned char*)memory[end]->addr + offset;
}

static size_t add_cell(void) { return (size_t)kFlows * kFlowBytes; }

static size_t swap_cell(const struct flow* f) { return add_cell() + 64 * (size_t)(1 + f->index); }

static uint64_t cell_value(int end, size_t offset) {
  uint64_t value;
  memcpy(&value, byte_of(end, offset), 8);
  return value;
}

static uint64_t key_of(const struct flow* f, uint64_t number) {
  return mixed(mixed(seed + (uint64_t)f->index) + number);
}

static uint32_t immediate_of(const struct flow* f, uint64_t number) {
  return (uint32_t)key_of(f, number + 1);
}

static int takes_receive(enum kind kind) {
  return kind == kSend || kind == kSendImm || kind == kWriteImm;
}

static int is_atomic(enum kind kind) { return kind == kAdd || kind == kSwap; }

static void wrong(const struct flow* f, uint64_t number, const char* what, const char* detail) {
  const struct request* r = &f->requests[number % kWindow];
  die("seed %" PRIu64 ", queue pair %u of %s, request %" PRIu64 " (%s of %zu bytes): %s %s", seed,
      f->qp->qp_num, ibv_get_device_name(ends[f->end].device->device), number, kinds[r->kind].name,
      r->bytes, what, detail);
}

static void reset_message(const struct flow* f, uint64_t number, int far) {
  const int end = far ? 1 - f->end : f->end;
  memset(byte_of(end, message_offset(f, number, far)), background_of(end),
         f->requests[number % kWindow].bytes);
}

/* All of a request's area at one end: with its message, or with background alone. */
static void check_area(const struct flow* f, uint64_t number, int far, size_t bytes,
                       const char* what) {
  const int end = far ? 1 - f->end : f->end;
  const char* text = area_differs(byte_of(end, area_offset(f, number)), capacity_of(number),
                                  f->requests[number % kWindow].at[far], bytes, key_of(f, number),
                                  background_of(end));
  if (text != NULL) wrong(f, number, what, text);
}

static void check_at_rest(const struct flow* f) {
  for (uint64_t number = f->retired - (f->retired < kWindow ? f->retired : kWindow);
       number < f->retired; ++number) {
    for (int far = 0; far < 2; ++far) {
      check_area(f, number, far, 0, far ? "changed later at the peer:" : "changed later:");
    }
  }
}

static void choose(struct flow* f, struct request* r) {
  const uint64_t number = f->posted;
  memset(r, 0, sizeof(*r));
  r->kind = (enum kind)below(large(number) ? kAdd : kKinds);
  if (r->kind == kAdd && adds[1 - f->end] == kMostAdds) r->kind = kSwap;
  if (is_atomic(r->kind)) {
    r->bytes = 8;
  } else {
    const size_t bounds[] = {1, 2, kInline + 1, kSmall - 2 * kMargin};
    r->bytes = below(large(number) ? kLarge - 2 * kMargin : bounds[below(4)]);
  }
  for (int far = 0; far < 2; ++far) r->at[far] = (size_t)below(kMargin);
}

/* The bytes in up to kPieces pieces, some perhaps empty. */
static int pieces_of(struct ibv_sge* list, const struct ibv_mr* mr, size_t offset, size_t bytes) {
  const int most = 1 + (int)below(kPieces);
  int count = 0;
  while (count < most) {
    const size_t length = count + 1 == most ? bytes : (size_t)below(bytes + 1);
    list[count++] = piece(mr, offset, length);
    offset += length;
    bytes -= length;
  }
  return count;
}

static void post_receives(struct flow* f) {
  for (; f->receives_posted < f->receives_wanted; ++f->receives_posted) {
    const uint64_t number = f->receives[f->receives_posted % kWindow];
    const struct request* r = &f->requests[number % kWindow];
    struct ibv_sge list[kPieces];
    struct ibv_recv_wr wr = {.wr_id = f->receives_posted, .sg_list = list};
    struct ibv_recv_wr* bad = NULL;
    if (r->kind != kWriteImm) { /* sometimes with more room than is needed */
      const size_t room = capacity_of(number) - r->at[1];
      const size_t bytes = below(2) == 0 ? r->bytes : r->bytes + below(room - r->bytes + 1);
      wr.num_sge = pieces_of(list, memory[1 - f->end], message_offset(f, number, 1), bytes);
    }
    NEED(ibv_post_recv(f->peer, &wr, &bad) == 0);
  }
}

static void address(struct flow* f, const struct request* r, struct ibv_send_wr* wr) {
  const struct ibv_mr* to = memory[1 - f->end];
  const uint64_t start = (uint64_t)(uintptr_t)to->addr;
  if (is_atomic(r->kind)) {
    wr->wr.atomic.rkey = to->rkey;
    wr->wr.atomic.remote_addr = start + (r->kind == kAdd ? add_cell() : swap_cell(f));
    wr->wr.atomic.compare_add = r->kind == kAdd ? 1 : f->swaps_posted;
    wr->wr.atomic.swap = r->kind == kAdd ? 0 : f->swaps_posted + 1;
    if (r->kind == kAdd) ++adds[1 - f->end];
    if (r->kind == kSwap) ++f->swaps_posted;
  } else {
    wr->wr.rdma.rkey = to->rkey;
    wr->wr.rdma.remote_addr = start + message_offset(f, f->posted, 1);
  }
}

static void post_next(struct flow* f) {
  const uint64_t number = f->posted;
  struct request* r = &f->requests[number % kWindow];
  choose(f, r);
  if (!is_atomic(r->kind)) {
    const int from = r->kind == kRead ? 1 - f->end : f->end;
    write_pattern(byte_of(from, message_offset(f, number, r->kind == kRead)), r->bytes,
                  key_of(f, number));
  }
  if (takes_receive(r->kind)) f->receives[f->receives_wanted++ % kWindow] = number;
  if (below(64) != 0) post_receives(f); /* else later: the peer says that it is not ready */
  struct ibv_sge list[kPieces];
  struct ibv_send_wr wr = {.wr_id = number, .sg_list = list, .opcode = kinds[r->kind].posted};
  struct ibv_send_wr* bad = NULL;
  const size_t offset = message_offset(f, number, 0);
  if (is_atomic(r->kind)) {
    list[0] = piece(memory[f->end], offset, 8);
    wr.num_sge = 1;
  } else {
    wr.num_sge = pieces_of(list, memory[f->end], offset, r->bytes);
  }
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.imm_data = immediate_of(f, number);
  address(f, r, &wr);
  r->inlined = r->kind <= kWriteImm && r->bytes <= kInline && below(2) == 0;
  if (r->inlined) wr.send_flags |= IBV_SEND_INLINE;
  const int error = ibv_post_send(f->qp, &wr, &bad);
  if (error != 0) wrong(f, number, "was not taken:", strerror(error));
  if (r->inlined) reset_message(f, number, 0);
  if (f->posted == f->completed) f->progressed = seconds();
  ++f->posted;
  if (below(64) == 0) f->drains = 1;
}

static void arrived(struct flow* f, uint64_t number) {
  struct request* r = &f->requests[number % kWindow];
  check_area(f, number, 1, r->bytes, "arrived:");
  reset_message(f, number, 1);
  r->arrived = 1;
}

static void check_atomic(struct flow* f, uint64_t number, enum kind kind) {
  const uint64_t value = cell_value(f->end, message_offset(f, number, 0));
  char text[96];
  snprintf(text, sizeof(text), "%" PRIu64 ", swaps %" PRIu64 ", adds %" PRIu64, value,
           f->swaps_completed, adds[1 - f->end]);
  if (kind == kSwap) {
    if (value != f->swaps_completed) wrong(f, number, "returned", text);
    ++f->swaps_completed;
  } else {
    if (value >= adds[1 - f->end]) wrong(f, number, "returned", text);
    if (added[1 - f->end][value] != 0) wrong(f, number, "returned again", text);
    if ((int64_t)value <= f->last_added) wrong(f, number, "returned out of order", text);
    added[1 - f->end][value] = 1;
    f->last_added = (int64_t)value;
  }
  reset_message(f, number, 0);
  check_area(f, number, 0, 0, "beside the returned value:");
}

static void retire(struct flow* f) {
  while (f->retired < f->posted) {
    const struct request* r = &f->requests[f->retired % kWindow];
    if (!r->arrived || !r->completed) break;
    ++count_of[r->kind];
    bytes_done += r->bytes;
    ++f->retired;
  }
}

static void sent(struct flow* f, const struct ibv_wc* wc) {
  const uint64_t number = f->completed;
  struct request* r = &f->requests[number % kWindow];
  if (number == f->posted || wc->wr_id != number) {
    die("seed %" PRIu64 ": request %" PRIu64 " completed, next is %" PRIu64 " of %" PRIu64, seed,
        wc->wr_id, number, f->posted);
  }
  if (wc->opcode != kinds[r->kind].completed) wrong(f, number, "completed as", "another kind");
  if (is_atomic(r->kind)) {
    check_atomic(f, number, r->kind);
    r->arrived = 1;
  } else if (r->kind == kRead) {
    check_area(f, number, 0, r->bytes, "read:");
    check_area(f, number, 1, r->bytes, "its source:");
    reset_message(f, number, 0);
    reset_message(f, number, 1);
    r->arrived = 1;
  } else {
    check_area(f, number, 0, r->inlined ? 0 : r->bytes, "its source:");
    reset_message(f, number, 0);
    if (r->kind == kWrite && !r->arrived) arrived(f, number);
  }
  r->completed = 1;
  ++f->completed;
}

static void received(struct flow* f, const struct ibv_wc* wc) {
  if (f->received == f->receives_posted || wc->wr_id != f->received) {
    die("seed %" PRIu64 ": receive %" PRIu64 " completed, next is %" PRIu64 " of %" PRIu64, seed,
        wc->wr_id, f->received, f->receives_posted);
  }
  const uint64_t number = f->receives[f->received % kWindow];
  const enum kind kind = f->requests[number % kWindow].kind;
  for (uint64_t before = f->retired; before < number; ++before) {
    const struct request* r = &f->requests[before % kWindow];
    if (r->kind == kWrite && !r->arrived) arrived(f, before);
  }
  if (number >= f->posted) wrong(f, number, "arrived", "before it was posted");
  if (wc->byte_len != f->requests[number % kWindow].bytes) {
    wrong(f, number, "arrived:", "another length");
  }
  if (wc->opcode != (kind == kWriteImm ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV)) {
    wrong(f, number, "arrived as", "another kind");
  }
  const int immediate = (wc->wc_flags & IBV_WC_WITH_IMM) != 0;
  if (immediate != (kind != kSend) || (immediate && wc->imm_data != immediate_of(f, number))) {
    wrong(f, number, "arrived:", "another immediate");
  }
  arrived(f, number);
  ++f->received;
}

static void completed(int end, const struct ibv_wc* wc) {
  struct flow* f = flows;
  while (f < flows + kFlows && (f->end != end || f->qp->qp_num != wc->qp_num)) ++f;
  if (f == flows + kFlows) die("a completion of queue pair %u, which is not ours", wc->qp_num);
  struct flow* back = &flows[f->index ^ 1];
  if (wc->status != IBV_WC_SUCCESS) {
    wrong(f, f->completed, "ended with", ibv_wc_status_str(wc->status));
  }
  const int receive = (wc->opcode & IBV_WC_RECV) != 0;
  struct flow* of = receive ? back : f;
  if (receive) {
    received(of, wc);
  } else {
    sent(of, wc);
  }
  of->progressed = seconds();
  retire(of);
}

static int poll_both(void) {
  struct ibv_wc wc[kWindow];
  int total = 0;
  for (int end = 0; end < 2; ++end) {
    const int n = ibv_poll_cq(cq[end], kWindow, wc);
    if (n < 0) die("ibv_poll_cq: %d", n);
    for (int i = 0; i < n; ++i) completed(end, &wc[i]);
    total += n;
  }
  return total;
}

static int may_post(struct flow* f, double now) {
  if (!f->drains) return f->posted - f->retired < kWindow;
  if (f->retired < f->posted) return 0;
  if (f->rests_until == 0) f->rests_until = now + (double)below(5000) / 1e6;
  if (now < f->rests_until) return 0;
  check_at_rest(f);
  f->rests_until = 0;
  f->drains = 0;
  return 1;
}

static void check_progress(double now) {
  for (struct flow* f = flows; f < flows + kFlows; ++f) {
    if (f->retired == f->posted || now - f->progressed < kHangs) continue;
    char text[160];
    snprintf(text, sizeof(text),
             "for %d s, %" PRIu64 " posted, %" PRIu64 " completed, %" PRIu64
             " receives posted, %" PRIu64 " completed",
             kHangs, f->posted, f->completed, f->receives_posted, f->received);
    wrong(f, f->retired, "hangs:", text);
  }
}

static void check_events(void) {
  for (int end = 0; end < 2; ++end) {
    struct pollfd waits = {.fd = ends[end].device->async_fd, .events = POLLIN};
    if (poll(&waits, 1, 0) == 0) continue;
    struct ibv_async_event event;
    NEED(ibv_get_async_event(ends[end].device, &event) == 0);
    die("seed %" PRIu64 ", %s: %s", seed, ibv_get_device_name(ends[end].device->device),
        ibv_event_type_str(event.event_type));
  }
}

static void run(double until) {
  double looked = 0;
  for (int busy = 1; busy;) {
    const double now = seconds();
    const int posts = now < until && !stopped;
    busy = posts;
    for (struct flow* f = flows; f < flows + kFlows; ++f) {
      if (below(4) == 0) post_receives(f);
      while (posts && may_post(f, now)) post_next(f);
      if (f->retired < f->posted) busy = 1;
    }
    poll_both();
    if (now - looked < 0.01) continue;
    check_progress(now);
    check_events();
    looked = now;
  }
}

/* Nothing comes late, every queue pair works, and each atomic operation has been done once. */
static void check_end(void) {
  const double until = seconds() + 0.3;
  while (seconds() < until) {
    if (poll_both() != 0) die("seed %" PRIu64 ": completions of nothing", seed);
  }
  check_events();
  for (struct flow* f = flows; f < flows + kFlows; ++f) {
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    NEED(ibv_query_qp(f->qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_RTS);
    check_at_rest(f);
    const uint64_t swapped = cell_value(1 - f->end, swap_cell(f));
    if (swapped != f->swaps_posted) {
      die("seed %" PRIu64 ": %" PRIu64 " swaps were done, %" PRIu64 " posted", seed, swapped,
          f->swaps_posted);
    }
  }
  for (int end = 0; end < 2; ++end) {
    const uint64_t sum = cell_value(end, add_cell());
    if (sum != adds[end]) {
      die("seed %" PRIu64 ": %" PRIu64 " additions were done, %" PRIu64 " posted", seed, sum,
          adds[end]);
    }
  }
}

static void make(char** names) {
  for (int end = 0; end < 2; ++end) {
    open_named(&ends[end], names[end]);
    memory[end] = memory_of(&ends[end], add_cell() + 64 * (1 + kFlows));
    memset(memory[end]->addr, background_of(end), add_cell());
    cq[end] = ibv_create_cq(ends[end].device, 2 * kFlows * kWindow, NULL, NULL, 0);
    NEED(cq[end] != NULL);
  }
  for (int i = 0; i < kFlows; ++i) {
    struct flow* f = &flows[i];
    f->index = i;
    f->end = i % 2;
    f->last_added = -1;
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};
    attr.send_cq = attr.recv_cq = cq[f->end];
    attr.cap.max_send_wr = attr.cap.max_recv_wr = kWindow;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = kPieces;
    attr.cap.max_inline_data = kInline;
    NEED((f->qp = ibv_create_qp(ends[f->end].pd, &attr)) != NULL);
    flows[i ^ 1].peer = f->qp;
  }
  for (int i = 0; i < kFlows; i += 2) connect_both(ends, flows[i].qp, flows[i + 1].qp);
}

static void stop(int number) {
  (void)number;
  stopped = 1;
}

int main(int argc, char** argv) {
  if (argc != 5) die("failover DEVICE DEVICE SECONDS SEED");
  const double length = strtod(argv[3], NULL);
  seed = strtoull(argv[4], NULL, 0);
  state = mixed(seed);
  signal(SIGTERM, stop);
  make(argv + 1);
  printf("begins\n");
  fflush(stdout);
  run(seconds() + length);
  check_end();
  uint64_t messages = 0;
  for (int kind = 0; kind < kKinds; ++kind) messages += count_of[kind];
  printf("{\"seed\":%" PRIu64 ",\"messages\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"sends\":%" PRIu64
         ",\"writes\":%" PRIu64 ",\"reads\":%" PRIu64 ",\"atomics\":%" PRIu64 ",\"wrong\":0}\n",
         seed, messages, bytes_done, count_of[kSend] + count_of[kSendImm],
         count_of[kWrite] + count_of[kWriteImm], count_of[kRead], count_of[kAdd] + count_of[kSwap]);
  return 0;
}
