#include "dataplane/verbs/injection/alarm.h"

#include "dataplane/attach/descriptors/aside.h"

namespace paceline::verbs {

Alarm::~Alarm() {
  {
    const std::lock_guard hold(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Alarm::after(std::uint64_t micros, const void* owner, std::function<std::uint64_t()> what) {
  const std::lock_guard hold(mutex_);
  wishes_.emplace(Clock::now() + std::chrono::microseconds(micros), Wish{owner, std::move(what)});
  if (!thread_.joinable()) thread_ = attach::quiet_thread([this] { run(); });
  changed_.notify_one();
}

void Alarm::cancel(const void* owner) {
  const std::lock_guard hold(mutex_);
  std::erase_if(wishes_, [&](const auto& wish) { return wish.second.owner == owner; });
}

void Alarm::run() {
  std::unique_lock hold(mutex_);
  while (!stop_) {
    if (wishes_.empty()) {
      changed_.wait(hold);
    } else if (wishes_.begin()->first > Clock::now()) {
      changed_.wait_until(hold, wishes_.begin()->first);
    } else {
      auto wish = wishes_.extract(wishes_.begin());
      const std::uint64_t again = wish.mapped().what();  // locked, so that cancel() waits for it
      if (again == 0) continue;
      wish.key() = Clock::now() + std::chrono::microseconds(again);
      wishes_.insert(std::move(wish));
    }
  }
}

}  // namespace paceline::verbs
