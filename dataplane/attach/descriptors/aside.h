// Work that nobody must wait for, because a stranger decides how long it takes. Closing is such
// work if the descriptor came from a stranger, or if one may lie unread in a socket: the last close
// of a TCP socket lingers as long as its owner wishes, and the last close of a file in user space
// waits for the owner's server.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "dataplane/attach/descriptors/descriptor.h"

namespace paceline::attach {

// Starts a thread that takes no signals: they are for the process's other threads. Throws
// std::system_error if no thread can be started.
template <class Work>
std::thread quiet_thread(Work work) {
  struct AllBlocked {
    AllBlocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    AllBlocked(const AllBlocked&) = delete;
    AllBlocked& operator=(const AllBlocked&) = delete;
    ~AllBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  } const blocked;
  return std::thread(std::move(work));
}

// The error text of a service that cannot start more threads.
std::string no_threads(const std::system_error& error);

class Aside {
 public:
  // The most threads at a time; further work waits for one of them.
  explicit Aside(std::size_t most_threads = 4096);
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  // Does not wait: work that was given is still done, as long as the process lives.
  ~Aside();

  // Starts a thread that stays, so that work is done even if no further thread can be started. The
  // thread has the rights of the calling thread. Throws std::system_error.
  void begin();

  // Runs `work` on a thread that does nothing else meanwhile, or at once if there is no memory to
  // hand it over. `work` does not throw, and owns what it uses.
  void run(std::function<void()> work);
  // The same, but returns false and does nothing if there is no memory to hand it over.
  bool try_run(std::function<void()>& work);
  // The other end of a socket sees at once that it is closed. `held` is released after the close.
  void close(Descriptor descriptor, std::shared_ptr<const void> held = {});
  // For a socket that other processes may have open, too: a listening one.
  void close_here(Descriptor descriptor, std::shared_ptr<const void> held = {});

 private:
  struct State;
  void start();  // with the mutex held
  static void serve(State& state);
  std::shared_ptr<State> state_;
};

}  // namespace paceline::attach
