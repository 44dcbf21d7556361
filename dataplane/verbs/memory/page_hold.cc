#include "dataplane/verbs/memory/page_hold.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include <cerrno>

#include "dataplane/verbs/memory/raw_syscall.h"

#ifndef USERFAULTFD_IOC_NEW  // Linux 6.1
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

namespace paceline::verbs {

namespace {

constexpr std::uint64_t kFaultsOfWriters = std::uint64_t{1} << 0U;
constexpr std::uint64_t kSharedMemory = std::uint64_t{1} << 12U;    // Linux 5.19
constexpr std::uint64_t kUntouchedPages = std::uint64_t{1} << 13U;  // Linux 6.4

attach::Descriptor new_descriptor(const attach::Descriptor& device) {
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK;
  if (device) return attach::Descriptor(::ioctl(device.get(), USERFAULTFD_IOC_NEW, kFlags));
  return attach::Descriptor(static_cast<int>(::syscall(SYS_userfaultfd, kFlags)));
}

bool enable(const attach::Descriptor& file, std::uint64_t features) {
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = features;
  return ::ioctl(file.get(), UFFDIO_API, &api) == 0 && (api.features & features) == features;
}

long control(int file, unsigned long request, void* argument) {
  for (;;) {
    const long result = raw_syscall(SYS_ioctl, file, static_cast<long>(request),
                                    static_cast<long>(reinterpret_cast<std::uintptr_t>(argument)));
    if (result != -EAGAIN && result != -EINTR) return result;
  }
}

}  // namespace

int PageHold::open(const attach::Descriptor& device) {
  for (const std::uint64_t untouched : {kUntouchedPages, std::uint64_t{0}}) {
    // A descriptor that has refused is useless.
    attach::Descriptor file = new_descriptor(device);
    if (!file) return errno;
    if (!enable(file, kFaultsOfWriters | kSharedMemory | untouched)) continue;
    file_ = std::move(file);
    holds_untouched_ = untouched != 0;
    return 0;
  }
  return ENOTSUP;
}

long PageHold::hold(std::uint64_t begin, std::uint64_t bytes) const {
  uffdio_register watch{};
  watch.range = {begin, bytes};
  watch.mode = UFFDIO_REGISTER_MODE_WP;
  if (const long error = control(file_.number(), UFFDIO_REGISTER, &watch); error < 0) return error;
  uffdio_writeprotect protect{};
  protect.range = {begin, bytes};
  protect.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  const long error = control(file_.number(), UFFDIO_WRITEPROTECT, &protect);
  if (error < 0) undo(begin, bytes);
  return error;
}

void PageHold::wake(std::uint64_t begin, std::uint64_t bytes) const {
  uffdio_range range{begin, bytes};
  control(file_.number(), UFFDIO_WAKE, &range);
}

void PageHold::undo(std::uint64_t begin, std::uint64_t bytes) const {
  uffdio_range range{begin, bytes};
  control(file_.number(), UFFDIO_UNREGISTER, &range);
}

}  // namespace paceline::verbs
