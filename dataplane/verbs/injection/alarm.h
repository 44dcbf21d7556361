// Runs functions after a time, on a thread of its own that starts with the first of them.
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
  // Pending functions are not run.
  ~Alarm();

  // `what` must neither wait for a caller of this nor throw. It returns after how many us to run it
  // once more, 0: not again. May throw std::system_error.
  void after(std::uint64_t micros, const void* owner, std::function<std::uint64_t()> what);
  // After this call, no function of that owner runs or will run.
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
