#include "dataplane/attach/descriptors/aside.h"

#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <utility>

namespace paceline::attach {

std::string no_threads(const std::system_error& error) {
  return std::string("threads of the service cannot be started: ") + error.what() +
         "; see RLIMIT_NPROC";
}

namespace {

// An idle thread waits this long for more work.
constexpr std::chrono::milliseconds kIdle{500};

}  // namespace

// Owned by the Aside and by its threads, whichever live longest.
struct Aside::State {
  explicit State(std::size_t most) : most_threads(most) {}
  const std::size_t most_threads;
  std::mutex mutex;
  std::condition_variable more;
  std::deque<std::function<void()>> waiting;
  std::size_t threads = 0;
  std::size_t idle = 0;
  std::size_t staying = 0;  // threads that do not leave though they have nothing to do
};

Aside::Aside(std::size_t most_threads) : state_(std::make_shared<State>(most_threads)) {}

Aside::~Aside() {
  const std::lock_guard lock(state_->mutex);
  state_->staying = 0;
  state_->more.notify_all();
}

void Aside::begin() {
  const std::lock_guard lock(state_->mutex);
  start();
  state_->staying = 1;
}

void Aside::start() {
  std::thread thread = quiet_thread([shared = state_] { serve(*shared); });
  pthread_setname_np(thread.native_handle(), "paceline-aside");
  thread.detach();
  ++state_->threads;
}

void Aside::run(std::function<void()> work) {
  if (!try_run(work)) work();
}

bool Aside::try_run(std::function<void()>& work) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  try {
    state.waiting.emplace_back();
  } catch (const std::bad_alloc&) {
    return false;
  }
  state.waiting.back() = std::move(work);
  if (state.idle >= state.waiting.size() || state.threads == state.most_threads) {
    state.more.notify_one();
    return true;
  }
  try {
    start();
  } catch (const std::exception&) {
    state.more.notify_one();  // no thread can be started: the work waits for an existing one
  }
  return true;
}

void Aside::serve(State& state) {
  std::unique_lock lock(state.mutex);
  for (;;) {
    ++state.idle;
    const auto due = [&] { return !state.waiting.empty(); };
    state.more.wait_for(lock, kIdle, due);
    state.more.wait(lock, [&] { return due() || state.threads > state.staying; });
    --state.idle;
    if (!due()) break;
    {
      const std::function<void()> work = std::move(state.waiting.front());
      state.waiting.pop_front();
      lock.unlock();
      work();
    }
    lock.lock();
  }
  --state.threads;
}

void Aside::close(Descriptor descriptor, std::shared_ptr<const void> held) {
  ::shutdown(descriptor.get(), SHUT_RDWR);
  close_here(std::move(descriptor), std::move(held));
}

void Aside::close_here(Descriptor descriptor, std::shared_ptr<const void> held) {
  if (!descriptor) return;
  // Copyable, as a std::function wants it.
  std::function<void()> work;
  try {
    const auto owned = std::make_shared<Descriptor>();
    work = [owned, held] { owned->reset(); };
    *owned = std::move(descriptor);
  } catch (const std::bad_alloc&) {
    descriptor.reset();
    return;
  }
  run(std::move(work));
}

}  // namespace paceline::attach
