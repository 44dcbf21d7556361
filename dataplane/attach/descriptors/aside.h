// Work that others do not wait for, because a stranger decides how long it takes. Closing is such
// work where the descriptor came from a stranger, or where one may lie unread in a socket: the last
// close of a TCP socket lingers as long as its owner wishes, that of a file in user space waits for
// the owner's server.
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
// std::system_error where no more threads can be had.
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

// The error of a service that gets no more threads.
std::string no_threads(const std::system_error& error);

class Aside {
 public:
  // The most threads at a time; further work waits for one of them.
  explicit Aside(std::size_t most_threads = 4096);
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  // Waits for nothing: work that was given is still done, as long as the process lives.
  ~Aside();

  // Starts a thread that stays, so that work is done even while no more threads can be had. It has
  // the rights of the thread that calls. Throws std::system_error.
  void begin();

  // On a thread that does nothing else meanwhile, or, where there is no memory to hand it over, at
  // once. `work` does not throw, and owns what it uses.
  void run(std::function<void()> work);
  // The same, but false, and nothing is done, where there is no memory to hand it over.
  bool try_run(std::function<void()>& work);
  // The other end of a socket sees at once that it is over. `held` is let go after the close.
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
