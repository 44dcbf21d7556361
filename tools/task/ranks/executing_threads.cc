#include "tools/task/ranks/executing_threads.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "tools/cli/cli.h"

namespace paceline::tools {

ExecutingThreads::ExecutingThreads(const TaskList& tasks, unsigned threads)
    : tasks_(tasks), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) {
    throw std::runtime_error(fmt::format("no eventfd: {}", std::strerror(errno)));
  }
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

ExecutingThreads::~ExecutingThreads() { stop(); }

void ExecutingThreads::add(std::span<const std::uint64_t> tasks) {
  {
    const std::lock_guard lock(mutex_);
    queue_.insert(queue_.end(), tasks.begin(), tasks.end());
  }
  tasks.size() == 1 ? added_.notify_one() : added_.notify_all();
}

std::vector<DoneTask> ExecutingThreads::take() {
  std::uint64_t ignored = 0;
  [[maybe_unused]] const ssize_t got = ::read(event_.get(), &ignored, sizeof ignored);
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

void ExecutingThreads::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_.store(true);
    queue_.clear();
  }
  added_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void ExecutingThreads::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    added_.wait(lock, [this] { return stop_.load() || !queue_.empty(); });
    if (stop_.load()) return;
    const std::uint64_t task = queue_.front();
    queue_.pop_front();
    lock.unlock();
    DoneTask done = execute(task);
    lock.lock();
    if (done.text.empty()) continue;
    done_.push_back(std::move(done));
    if (done_.size() != 1) continue;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = ::write(event_.get(), &one, sizeof one);
  }
}

DoneTask ExecutingThreads::execute(std::uint64_t task) const {
  DoneTask done;
  done.task = task;
  const double cpu = thread_cpu_seconds();
  const double begin = wall_seconds();
  try {
    TaskRecord record = tasks_.execute(task, stop_);
    done.hops = record.hops;
    done.text = std::move(record.text);
    if (done.text.size() > kMostRecord) {
      throw std::length_error(
          fmt::format("its record has {} bytes; {} are allowed", done.text.size(), kMostRecord));
    }
    if (done.text.empty() && !stop_.load()) throw std::logic_error("it has no record");
  } catch (const std::invalid_argument& error) {
    done.end = TaskEnd::refused;
    done.text = error.what();
  } catch (const std::exception& error) {  // also std::bad_alloc: another machine may have more
    done.end = TaskEnd::broken;
    done.text = error.what();
  }
  if (done.end != TaskEnd::record && done.text.empty()) done.text = "no reason given";
  done.cpu_seconds = thread_cpu_seconds() - cpu;
  done.seconds = wall_seconds() - begin;
  return done;
}

}  // namespace paceline::tools
