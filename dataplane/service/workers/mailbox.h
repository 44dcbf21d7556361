// How the control thread has something done on a worker's thread: it posts a command and waits
// until it was run, between two turns. Bounded, without locks; a worker that sleeps is woken.
#pragma once

#include <atomic>
#include <cstddef>
#include <semaphore>
#include <type_traits>
#include <utility>

#include "dataplane/base/spsc_ring.h"
#include "dataplane/base/units.h"

namespace paceline::service {

class Mailbox {
 public:
  static constexpr std::size_t kCapacity = 64;

  // The control thread's side. Returns when `work(now)` has run on the worker's thread, or,
  // where no worker runs, at once: false, and it has not run and never will. `wake` is called when
  // the worker may sleep.
  template <class Work, class Wake>
  bool run(Work&& work, Wake&& wake) {
    using Function = std::remove_reference_t<Work>;
    Letter letter;
    letter.object = &work;
    letter.call = [](void* object, Picos now) { (*static_cast<Function*>(object))(now); };
    Letter* const pointer = &letter;
    if (closed_ || !letters_.push(pointer)) return false;
    wake();
    letter.done.acquire();
    return letter.ran;
  }
  // Between the two there is a worker that takes letters.
  void open() { closed_ = false; }
  void close() { closed_ = true; }

  // The worker's side: runs what is there; true when there was something.
  bool take(Picos now) {
    Letter* letter = nullptr;
    bool any = false;
    while (letters_.pop(letter)) {
      letter->call(letter->object, now);
      letter->ran = true;
      letter->done.release();
      any = true;
    }
    return any;
  }
  // As above, at its end: tells those who wait that nothing was run.
  void refuse() {
    Letter* letter = nullptr;
    while (letters_.pop(letter)) letter->done.release();
  }
  bool empty() const { return letters_.size() == 0; }

 private:
  struct Letter {
    void* object = nullptr;
    void (*call)(void*, Picos) = nullptr;
    bool ran = false;
    std::binary_semaphore done{0};
  };

  SpscRing<Letter*> letters_{kCapacity};
  bool closed_ = true;  // the control thread's
};

}  // namespace paceline::service
