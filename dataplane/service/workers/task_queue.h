// How the control thread has something done on a worker's thread: it posts a command and waits
// until it was run, between two turns. Bounded, without locks; a worker that sleeps is woken.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <semaphore>
#include <type_traits>
#include <utility>

#include "dataplane/base/containers/spsc_ring.h"
#include "dataplane/base/units.h"

namespace paceline::service {

class TaskQueue {
 public:
  static constexpr std::size_t kCapacity = 64;

  // The control thread's side. Returns when `work(now)` has run on the worker's thread. If no
  // worker runs, it returns false at once: the work has not run and never will. `wake` is called
  // when the worker may sleep. Throws what `work` throws, such as std::bad_alloc; the worker
  // continues.
  template <class Work, class Wake>
  bool run(Work&& work, Wake&& wake) {
    using Function = std::remove_reference_t<Work>;
    Task task;
    task.object = &work;
    task.call = [](void* object, Picos now) { (*static_cast<Function*>(object))(now); };
    Task* const pointer = &task;
    if (closed_ || !tasks_.push(pointer)) return false;
    wake();
    task.done.acquire();
    if (task.thrown) std::rethrow_exception(task.thrown);
    return task.ran;
  }
  // Between the two there is a worker that takes tasks.
  void open() { closed_ = false; }
  void close() { closed_ = true; }

  // The worker's side: runs waiting tasks; true if there were any.
  bool take(Picos now) {
    Task* task = nullptr;
    bool any = false;
    while (tasks_.pop(task)) {
      try {
        task->call(task->object, now);
        task->ran = true;
      } catch (...) {
        task->thrown = std::current_exception();
      }
      task->done.release();
      any = true;
    }
    return any;
  }
  // At its end: tells waiting callers that nothing was run.
  void refuse() {
    Task* task = nullptr;
    while (tasks_.pop(task)) task->done.release();
  }
  bool empty() const { return tasks_.size() == 0; }

 private:
  struct Task {
    void* object = nullptr;
    void (*call)(void*, Picos) = nullptr;
    bool ran = false;
    std::exception_ptr thrown;
    std::binary_semaphore done{0};
  };

  SpscRing<Task*> tasks_{kCapacity};
  bool closed_ = true;  // the control thread's
};

}  // namespace paceline::service
