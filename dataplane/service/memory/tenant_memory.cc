#include "dataplane/service/memory/tenant_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>

#include "dataplane/service/memory/copy_scheduler.h"
#include "dataplane/service/memory/copy_thread.h"
#include "dataplane/service/memory/region_view.h"

namespace paceline::service {

namespace {

using transport::AtomicOperation;
using transport::MemoryCaller;
using transport::MemoryResult;

// Copies for one tenant's regions: the thread and the worker's side of it.
struct Copying {
  Copying(std::shared_ptr<ProgramMemory> program, std::function<void()> wake)
      : thread(std::move(program), std::move(wake)), scheduler(thread) {}
  CopyThread thread;
  CopyScheduler scheduler;
};

class TenantRegion final : public RegionMemory, private transport::MemoryProvider {
 public:
  TenantRegion(std::uint64_t number, std::uint64_t address) : number_(number), address_(address) {}

  RegionView view;
  Copying* copying = nullptr;  // unless it is wholly shared
  std::shared_ptr<CopyLedger> ledger = std::make_shared<CopyLedger>();
  OrderTarget order;  // of all its queue pairs

  std::span<std::byte> plain() override {
    if (!view.wholly_shared()) return {};
    return {view.at(0, view.length()), view.length()};
  }
  bool holds(std::uintptr_t address) const override { return view.holds(address); }
  transport::MemoryProvider& provider() override { return *this; }

 private:
  MemoryResult read(const MemoryCaller& caller, std::uint64_t offset,
                    std::span<std::byte> out) override {
    if (!covers(offset, out.size())) return MemoryResult::fault;
    if (const std::byte* const here = view.at(offset, out.size())) {
      std::memcpy(out.data(), here, out.size());
      return MemoryResult::done;
    }
    return call(CopyKind::read, caller, offset, out.size(), out.data(), nullptr, {});
  }

  MemoryResult write(const MemoryCaller& caller, std::uint64_t offset,
                     std::span<const std::byte> in) override {
    if (!covers(offset, in.size())) return MemoryResult::fault;
    if (std::byte* const here = view.at(offset, in.size())) {
      std::memmove(here, in.data(), in.size());  // lent bytes may overlap
      return MemoryResult::done;
    }
    return call(CopyKind::write, caller, offset, in.size(), nullptr, in.data(), {});
  }

  const std::byte* at(std::uint64_t offset, std::uint64_t bytes) const override {
    return covers(offset, bytes) ? view.at(offset, bytes) : nullptr;
  }

  MemoryResult atomic(const MemoryCaller& caller, std::uint64_t offset,
                      const AtomicOperation& operation, std::uint64_t& original) override {
    if (!covers(offset, sizeof original)) return MemoryResult::fault;
    std::byte* const here = view.at(offset, sizeof original);
    if (here == nullptr) {
      return call(CopyKind::atomic, caller, offset, sizeof original,
                  reinterpret_cast<std::byte*>(&original), nullptr, operation);
    }
    if (reinterpret_cast<std::uintptr_t>(here) % alignof(std::uint64_t) != 0) {
      // The peer's address is aligned, the program's is not: other programs cannot share this word
      // anyway.
      std::memcpy(&original, here, sizeof original);
      const std::uint64_t result = operation.result(original);
      std::memcpy(here, &result, sizeof result);
      return MemoryResult::done;
    }
    std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(here));
    original = word.load(std::memory_order_relaxed);
    while (!word.compare_exchange_weak(original, operation.result(original))) {
    }
    return MemoryResult::done;
  }

  bool covers(std::uint64_t offset, std::uint64_t bytes) const {
    return bytes <= view.length() && offset <= view.length() - bytes;
  }
  MemoryResult call(CopyKind kind, const MemoryCaller& caller, std::uint64_t offset,
                    std::size_t bytes, std::byte* out, const std::byte* in,
                    const AtomicOperation& operation) {
    if (bytes == 0) return MemoryResult::done;
    const CopyCall call{kind, caller.at, static_cast<std::uint32_t>(bytes), number_, offset};
    OrderTarget target = order;
    target.qp_number = caller.qp_number;
    target.from_peer = caller.responder;
    return copying->scheduler.call(caller, call, address_ + offset, out, in, operation, *ledger,
                                   target);
  }

  const std::uint64_t number_;
  const std::uint64_t address_;  // in the program
};

class Tenant final : public TenantMemory {
 public:
  Tenant(std::shared_ptr<ProgramMemory> program, std::function<void()> wake)
      : program_(std::move(program)), wake_(std::move(wake)) {}

  int share(attach::Descriptor memory) override {
    if (shared_) return EALREADY;
    struct statfs kind {};
    if (::fstatfs(memory.get(), &kind) != 0) return errno;
    // Shared memory of ordinary pages: huge ones may be missing when they are touched (SIGBUS).
    if (kind.f_type != TMPFS_MAGIC) return EPERM;
    const int seals = ::fcntl(memory.get(), F_GET_SEALS);
    constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_SEAL;
    if (seals < 0 || (seals & kNeeded) != kNeeded) return EPERM;
    const int mode = ::fcntl(memory.get(), F_GETFL);
    if (mode < 0 || (mode & O_ACCMODE) != O_RDWR) return EPERM;
    shared_ = std::move(memory);
    return 0;
  }

  std::unique_ptr<RegionMemory> add(std::uint64_t address, std::uint64_t length,
                                    std::span<const attach::Extent> extents, int& error) override {
    auto region = std::make_unique<TenantRegion>(++regions_, address);
    error = region->view.open(address, length, extents, shared_.get());
    if (error == 0 && !region->view.wholly_shared()) {
      error = start_copying();
      region->copying = copying_.get();
      const auto by_copy = std::find_if(extents.begin(), extents.end(), [](const auto& extent) {
        return extent.kind == attach::ExtentKind::by_copy;
      });
      if (by_copy != extents.end()) region->order = {by_copy->offset, by_copy->reserved, 0, false};
    }
    if (error != 0) return nullptr;
    shared_bytes_ += region->view.shared_bytes();
    by_copy_bytes_ += region->view.by_copy_bytes();
    return region;
  }

  void remove(std::unique_ptr<RegionMemory> removed) override {
    const auto& region = static_cast<TenantRegion&>(*removed);
    const timespec pause{0, 50'000};
    for (int i = 0; i < 2000 && !region.ledger->quiet(); ++i) ::nanosleep(&pause, nullptr);
    abandon(std::move(removed));
  }

  bool quick_to_remove(const RegionMemory& asked) const override {
    const auto& region = static_cast<const TenantRegion&>(asked);
    return region.ledger->quiet() && region.view.shared_bytes() <= kQuickBytes;
  }

  void leave(std::shared_ptr<const void> held) override {
    const std::lock_guard lock(starting_);
    left_ = true;
    if (copying_ == nullptr) return;
    copying_->thread.leave();
    copying_->thread.keep(std::move(held));
  }

  void abandon(std::unique_ptr<RegionMemory> removed) override {
    const auto& region = static_cast<TenantRegion&>(*removed);
    shared_bytes_ -= region.view.shared_bytes();
    by_copy_bytes_ -= region.view.by_copy_bytes();
    if (!region.ledger->quiet()) copying_->thread.keep(region.ledger);
  }

  TenantMemoryCounters counters() const override {
    TenantMemoryCounters out;
    out.shared_bytes = shared_bytes_;
    out.by_copy_bytes = by_copy_bytes_;
    const Copying* const copying = for_worker_.load(std::memory_order_acquire);
    if (copying == nullptr) return out;
    const CopyCounters& of = copying->thread.counters();
    out.copies = of.copies.load(std::memory_order_relaxed);
    out.copied_bytes = of.bytes.load(std::memory_order_relaxed);
    out.faults = of.faults.load(std::memory_order_relaxed);
    out.refused = of.refused.load(std::memory_order_relaxed);
    return out;
  }

  std::size_t take_ready(std::span<std::uint32_t> out) override {
    Copying* const copying = for_worker_.load(std::memory_order_acquire);
    return copying == nullptr ? 0 : copying->scheduler.take_ready(out);
  }

  void forget(std::uint32_t qp_number) override {
    Copying* const copying = for_worker_.load(std::memory_order_acquire);
    if (copying != nullptr) copying->scheduler.forget(qp_number);
  }

 private:
  // The thread starts with the first region that needs it. Once the program cannot be reached any
  // more, later regions are refused, too.
  int start_copying() {
    if (const int error = program_->error(); error != 0) return error;
    if (copying_ != nullptr) return 0;
    const std::lock_guard lock(starting_);
    if (left_) return ESHUTDOWN;
    try {
      copying_ = std::make_unique<Copying>(program_, wake_);
    } catch (const std::system_error&) {
      return EAGAIN;  // no more threads are allowed
    }
    for_worker_.store(copying_.get(), std::memory_order_release);
    return 0;
  }

  const std::shared_ptr<ProgramMemory> program_;
  const std::function<void()> wake_;
  attach::Descriptor shared_;
  std::mutex starting_;  // of what follows
  bool left_ = false;
  std::unique_ptr<Copying> copying_;
  std::atomic<Copying*> for_worker_{nullptr};
  std::uint64_t regions_ = 0;
  std::atomic<std::uint64_t> shared_bytes_{0};
  std::atomic<std::uint64_t> by_copy_bytes_{0};
};

}  // namespace

std::unique_ptr<TenantMemory> TenantMemory::make(std::shared_ptr<ProgramMemory> program,
                                                 std::function<void()> wake) {
  return std::make_unique<Tenant>(std::move(program), std::move(wake));
}

}  // namespace paceline::service
