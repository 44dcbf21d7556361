// Does things after a time, on a thread of its own that begins with the first of them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace paceline::verbs {

class Alarm {
 public:
  Alarm() = default;
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  // What is still to be done is not done.
  ~Alarm();

  // `what` must neither wait for a caller of this nor throw; it returns after how many us it is to
  // be done once more, 0: not again. May throw std::system_error.
  void after(std::uint64_t micros, const void* owner, std::function<std::uint64_t()> what);
  // Nothing of that owner is done any more, nor under way.
  void cancel(const void* owner);

 private:
  using Clock = std::chrono::steady_clock;
  struct Wish {
    const void* owner = nullptr;
    std::function<std::uint64_t()> what;
  };
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, Wish> wishes_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace paceline::verbs
