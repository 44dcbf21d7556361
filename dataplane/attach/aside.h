// Work that others do not wait for, because a stranger decides how long it takes. Closing is such
// work where the descriptor came from a stranger, or where one may lie unread in a socket: the last
// close of a TCP socket lingers as long as its owner wishes, that of a file in user space waits for
// the owner's server.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "dataplane/attach/descriptor.h"

namespace paceline::attach {

class Aside {
 public:
  // The most threads at a time; further work waits for one of them.
  explicit Aside(std::size_t most_threads = 4096);
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  // Waits for nothing: work that was given is still done, as long as the process lives.
  ~Aside() = default;

  // On a thread that does nothing else meanwhile. `work` does not throw, and owns what it uses.
  void run(std::function<void()> work);
  // The other end of a socket sees at once that it is over. `held` is let go after the close.
  void close(Descriptor descriptor, std::shared_ptr<const void> held = {});
  // For a socket that other processes may have open, too: a listening one.
  void close_here(Descriptor descriptor, std::shared_ptr<const void> held = {});

 private:
  struct State;
  static void serve(State& state);
  std::shared_ptr<State> state_;
};

}  // namespace paceline::attach
