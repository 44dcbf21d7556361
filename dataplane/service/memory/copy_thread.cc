#include "dataplane/service/memory/copy_thread.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "dataplane/attach/descriptors/aside.h"
#include "dataplane/base/containers/spsc_ring.h"

namespace paceline::service {

namespace {

// The thread looks at the ring this many times before it sleeps, for some microseconds. On two
// cores a longer spin would take from the program what it saves the worker.
constexpr int kSpins = 200;

// The thread checks the program closely once in so many batches, and after a pause of kPause.
constexpr std::uint32_t kLookEvery = 64;
constexpr timespec kPause{0, 10'000'000};

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

// False: `most` has passed (nullptr: no limit).
bool futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t while_equal, const timespec* most) {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE,
                   while_equal, most, nullptr, 0) == 0 ||
         errno != ETIMEDOUT;
}
void futex_wake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, 1, nullptr,
            nullptr, 0);
}
void spin_once() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

// Owned by the CopyThread and by its thread, whichever lives longer.
struct CopyThread::State {
  State(std::shared_ptr<ProgramMemory> memory, std::function<void()> on_done)
      : program(std::move(memory)),
        jobs(kJobs),
        buffers(std::make_unique<std::byte[]>(std::size_t{kJobs} * kJobBytes)),
        wake(std::move(on_done)) {}

  void serve();
  void execute(std::span<const std::uint32_t> batch);
  void execute_run(std::span<const std::uint32_t> batch);
  void run_atomic(CopyJob& job);
  bool shuffled(const CopyJob& job) const {
    return job.kind == CopyKind::write && job.order.seed != 0;
  }
  void give_back(std::span<const std::uint32_t> batch);
  void sleep();

  const std::shared_ptr<ProgramMemory> program;
  std::uint32_t batches = 0;  // since a pause
  OrderShuffler shuffler;
  std::vector<CopyJob> jobs;
  const std::unique_ptr<std::byte[]> buffers;
  SpscRing<std::uint32_t> todo{kJobs};
  SpscRing<std::uint32_t> done{kJobs};
  alignas(64) std::atomic<std::uint32_t> asleep{0};
  std::atomic<bool> stop{false};
  std::atomic<bool> ended{false};
  TenantProcess process;
  CopyCounters counters;
  const std::function<void()> wake;
  std::atomic<bool> left{false};         // `wake` is not called any more
  std::atomic<std::uint32_t> waking{0};  // `wake` is being called
  std::mutex mutex;  // of what follows; the copy thread, which may be killed, never takes it
  std::vector<std::shared_ptr<const void>> kept;
};

CopyThread::CopyThread(std::shared_ptr<ProgramMemory> program, std::function<void()> wake)
    : state_(std::make_shared<State>(std::move(program), std::move(wake))) {
  std::thread thread = attach::quiet_thread([state = state_] {
    pthread_setname_np(pthread_self(), "paceline-copy");
    const bool ran = run_as(state->program->credentials(), run, state.get(), state->process);
    // The thread has no credentials of the tenant, or the tenant killed it. Jobs still get an
    // answer, except for the batch that it was handling.
    if (!state->stop.load(std::memory_order_acquire)) {
      state->program->deny(ran ? ESRCH : EPERM);
      state->serve();
    }
    state->ended.store(true, std::memory_order_release);
  });
  thread.detach();  // it may never end: ~CopyThread waits for `ended`, and not for ever
}

// Waits for a call of `wake` in progress, but not for one that the tenant has stopped or killed.
void CopyThread::leave() {
  state_->left.store(true, std::memory_order_seq_cst);
  const timespec pause{0, 20'000};
  for (int i = 0; i < 100 && state_->waking.load(std::memory_order_seq_cst) != 0; ++i) {
    ::nanosleep(&pause, nullptr);
  }
}

CopyThread::~CopyThread() {
  leave();
  state_->stop.store(true, std::memory_order_seq_cst);
  state_->asleep.store(0, std::memory_order_seq_cst);
  futex_wake(state_->asleep);
  const timespec pause{0, 100'000};
  for (int i = 0; i < 1000 && !state_->ended.load(std::memory_order_acquire); ++i) {
    ::nanosleep(&pause, nullptr);
  }
  state_->process.kill();
}

CopyJob& CopyThread::job(std::uint32_t index) { return state_->jobs[index]; }

std::byte* CopyThread::buffer(std::uint32_t index) {
  return state_->buffers.get() + std::size_t{index} * kJobBytes;
}

void CopyThread::submit(std::uint32_t index) {
  State& state = *state_;
  CopyLedger& ledger = *state.jobs[index].ledger;
  ledger.begun.store(ledger.begun.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  const bool pushed = state.todo.push(index);  // there are no more jobs than places
  assert(pushed);
  static_cast<void>(pushed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (state.asleep.load(std::memory_order_relaxed) != 0) {
    state.asleep.store(0, std::memory_order_relaxed);
    futex_wake(state.asleep);
  }
}

std::size_t CopyThread::take_done(std::span<std::uint32_t> out) { return state_->done.pop(out); }

void CopyThread::keep(std::shared_ptr<const void> what) {
  const std::lock_guard lock(state_->mutex);
  state_->kept.push_back(std::move(what));
}

const CopyCounters& CopyThread::counters() const { return state_->counters; }

void CopyThread::run(void* of) {
  State& state = *static_cast<State*>(of);
  state.program->open();
  state.serve();
}

void CopyThread::State::serve() {
  std::array<std::uint32_t, ProgramMemory::kBatch> batch{};
  int spins = 0;
  while (!stop.load(std::memory_order_acquire)) {
    const std::size_t n = todo.pop(std::span(batch));
    if (n != 0) {
      spins = 0;
      execute(std::span(batch).first(n));
    } else if (++spins < kSpins) {
      spin_once();
    } else {
      spins = 0;
      sleep();
    }
  }
}

void CopyThread::State::sleep() {
  asleep.store(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Both sides write before they look: one of them sees the other.
  if (todo.empty() && !stop.load(std::memory_order_seq_cst) && !futex_wait(asleep, 1, &kPause)) {
    batches = 0;
    futex_wait(asleep, 1, nullptr);
  }
  asleep.store(0, std::memory_order_relaxed);
}

void CopyThread::State::execute(std::span<const std::uint32_t> batch) {
  const CopyResult before = program->reachable(batches++ % kLookEvery == 0);
  if (before != CopyResult::done) {
    for (const std::uint32_t index : batch) jobs[index].result = before;
    give_back(batch);
    return;
  }
  // Jobs of the same kind that follow one another need one system call; the order stays.
  while (!batch.empty()) {
    const CopyKind kind = jobs[batch.front()].kind;
    std::size_t n = 1;
    const bool alone = kind == CopyKind::atomic || shuffled(jobs[batch.front()]);
    while (!alone && n < batch.size() && jobs[batch[n]].kind == kind && !shuffled(jobs[batch[n]]))
      ++n;
    execute_run(batch.first(n));
    give_back(batch.first(n));
    batch = batch.subspan(n);
  }
}

void CopyThread::State::execute_run(std::span<const std::uint32_t> batch) {
  const CopyKind kind = jobs[batch.front()].kind;
  if (kind == CopyKind::atomic) return run_atomic(jobs[batch.front()]);
  if (CopyJob& first = jobs[batch.front()]; shuffled(first)) [[unlikely]] {
    first.result = shuffler.place(*program, {first.address, first.data, first.bytes}, first.order);
    return;
  }
  std::array<ProgramPiece, ProgramMemory::kBatch> pieces{};
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const CopyJob& job = jobs[batch[i]];
    pieces[i] = {job.address, job.data, job.bytes};
  }
  const std::span<const ProgramPiece> all(pieces.data(), batch.size());
  const bool read = kind == CopyKind::read;
  // One bad job fails the common call, but not the other jobs: then each goes alone.
  const bool together =
      batch.size() > 1 && (read ? program->read_all(all) : program->write_all(all));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    CopyJob& job = jobs[batch[i]];
    job.result = together ? CopyResult::done
                 : read   ? program->read(all[i])
                          : program->write(all[i]);
  }
}

// Atomic with respect to all atomics that this thread carries out, as between the queue pairs of an
// adapter (IBV_ATOMIC_HCA), but not to atomics of the program itself.
void CopyThread::State::run_atomic(CopyJob& job) {
  std::uint64_t value = 0;
  const ProgramPiece piece{job.address, reinterpret_cast<std::byte*>(&value), sizeof value};
  job.result = program->read(piece);
  if (job.result != CopyResult::done) return;
  std::memcpy(job.data, &value, sizeof value);
  value = job.operation.result(value);
  job.result = program->write(piece);
}

void CopyThread::State::give_back(std::span<const std::uint32_t> batch) {
  for (const std::uint32_t index : batch) {
    const CopyJob& job = jobs[index];
    const bool good = job.result == CopyResult::done;
    counters.copies.fetch_add(1, std::memory_order_relaxed);
    if (good) counters.bytes.fetch_add(job.bytes, std::memory_order_relaxed);
    if (!good) counters.faults.fetch_add(1, std::memory_order_relaxed);
    if (job.result == CopyResult::refused) counters.refused.fetch_add(1, std::memory_order_relaxed);
    job.ledger->ended.fetch_add(1, std::memory_order_release);
  }
  done.push(batch);  // as many places as jobs
  waking.store(1, std::memory_order_seq_cst);
  if (!left.load(std::memory_order_seq_cst)) wake();
  waking.store(0, std::memory_order_release);
}

}  // namespace paceline::service
