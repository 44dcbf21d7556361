#include "dataplane/port/dpdk/dpdk_gate.h"

#include <rte_interrupts.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace paceline {

namespace {

class EventGate final : public InterruptGate {
 public:
  bool start() {
    // Readable for ever: the thread comes back to us after every round.
    fd_ = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
    handle_ = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
    if (fd_ < 0 || handle_ == nullptr || rte_intr_fd_set(handle_, fd_) != 0 ||
        rte_intr_type_set(handle_, RTE_INTR_HANDLE_EXT) != 0) {
      return false;
    }
    return rte_intr_callback_register(handle_, held, this) == 0;
  }
  // For a gate that did not start.
  void discard() {
    if (handle_ != nullptr) rte_intr_instance_free(handle_);
    if (fd_ >= 0) close(fd_);
    delete this;
  }

  void close_for_good() override {
    std::unique_lock lock(mutex_);
    for_good_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return held_for_good_; });
  }

  bool add(Visitor& visitor) override {
    const std::lock_guard lock(mutex_);
    const auto free = std::find(visitors_.begin(), visitors_.end(), nullptr);
    if (free == visitors_.end()) return false;
    *free = &visitor;
    return true;
  }
  void remove(Visitor& visitor) override {
    const std::lock_guard lock(mutex_);
    std::replace(visitors_.begin(), visitors_.end(), &visitor, static_cast<Visitor*>(nullptr));
  }

 private:
  // On the interrupt thread.
  static void held(void* self) { static_cast<EventGate*>(self)->hold(); }

  void hold() {
    away_.store(false, std::memory_order_seq_cst);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(kHoldMillis), [this] { return for_good_; });
    while (for_good_) {
      held_for_good_ = true;
      changed_.notify_all();
      changed_.wait(lock);
    }
    away_.store(true, std::memory_order_seq_cst);
    // A burst takes microseconds, unless its thread has lost the processor, perhaps to this thread,
    // if this one has the higher real-time priority. Yielding would then not free the processor.
    for (const Visitor* visitor : visitors_) {
      while (visitor != nullptr && visitor->inside.load(std::memory_order_seq_cst)) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
  }

  int fd_ = -1;
  rte_intr_handle* handle_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool for_good_ = false;
  bool held_for_good_ = false;
  std::array<Visitor*, kMostVisitors> visitors_{};
};

}  // namespace

InterruptGate* InterruptGate::make() {
  auto* const gate = new EventGate;
  if (gate->start()) return gate;
  gate->discard();
  return nullptr;
}

}  // namespace paceline
