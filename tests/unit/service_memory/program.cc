#include "tests/unit/service_memory/program.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <stdexcept>
#include <string>

#include "dataplane/attach/message_socket.h"

namespace paceline::service::test {

namespace {

// Pages of the file in another order than in memory, so that a mix-up shows.
std::uint64_t file_offset(std::size_t page) { return (page ^ 1U) * kPage; }

}  // namespace

Program::Program(std::size_t pages, const std::function<bool(std::size_t)>& shared,
                 const std::function<void(std::byte*)>& begin)
    : pages_(pages), file_(::memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  for (std::size_t page = 0; page < pages; ++page) shared_.push_back(shared(page));
  if (::ftruncate(file_.get(), static_cast<off_t>((pages + 1) * kPage)) != 0 ||
      ::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    throw std::runtime_error("memfd");
  }
  memory_ = static_cast<std::byte*>(
      ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::array<int, 2> ready{};
  if (::pipe2(ready.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  const attach::Descriptor reading(ready[0]);
  attach::Descriptor writing(ready[1]);
  connection_ = connected_child(pid_, ::geteuid(), [&] {
    for (std::size_t page = 0; page < pages_; ++page) {
      std::byte* const at = memory_ + page * kPage;
      if (shared_[page] && ::mmap(at, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                  file_.get(), static_cast<off_t>(file_offset(page))) != at) {
        ::_exit(1);
      }
      *at = std::byte{0};
    }
    if (begin) begin(memory_);
    if (::write(writing.get(), "r", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  });
  writing.reset();
  char byte = 0;
  if (::read(reading.get(), &byte, 1) != 1) throw std::runtime_error("the program did not begin");
}

std::shared_ptr<ProgramMemory> Program::pinned() const {
  return std::make_shared<ProgramMemory>(connection_.get());
}

attach::Descriptor connected_child(pid_t& pid, uid_t user, const std::function<void()>& body) {
  static int number = 0;
  const std::string path =
      "@paceline-child-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
  const attach::Descriptor listening = attach::listen_socket(path, 0600);
  if (!listening) throw std::runtime_error("socket");
  pid = ::fork();
  if (pid == 0) {
    if (user != ::geteuid() &&
        (::setgroups(0, nullptr) != 0 || ::setgid(user) != 0 || ::setuid(user) != 0)) {
      ::_exit(1);
    }
    const attach::Descriptor connected = attach::connect_socket(path);
    if (connected) body();
    ::_exit(1);
  }
  pollfd entry{listening.get(), POLLIN, 0};
  if (::poll(&entry, 1, 10'000) != 1) throw std::runtime_error("the child does not connect");
  return attach::Descriptor(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

Program::~Program() {
  end();
  ::munmap(memory_, bytes());
}

void Program::end() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

attach::Descriptor Program::shared_descriptor() const {
  return attach::Descriptor(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
}

std::vector<attach::Extent> Program::extents(std::uint64_t offset, std::uint64_t length) const {
  std::vector<attach::Extent> out;
  for (std::uint64_t at = offset; at < offset + length;) {
    const std::size_t page = at / kPage;
    const std::uint64_t bytes = std::min((page + 1) * kPage, offset + length) - at;
    attach::Extent extent;
    extent.length = bytes;
    if (shared_[page]) {
      extent.kind = attach::ExtentKind::shared;
      extent.offset = file_offset(page) + at % kPage;
    }
    if (!out.empty() && !shared_[page] && out.back().kind == attach::ExtentKind::by_copy) {
      out.back().length += bytes;
    } else {
      out.push_back(extent);
    }
    at += bytes;
  }
  return out;
}

std::vector<std::byte> Program::peek(std::uint64_t offset, std::size_t bytes) const {
  std::vector<std::byte> out(bytes);
  const iovec local{out.data(), bytes};
  const iovec remote{memory_ + offset, bytes};
  if (::process_vm_readv(pid_, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(bytes))
    out.clear();
  return out;
}

void Program::poke(std::uint64_t offset, std::span<const std::byte> bytes) const {
  const iovec local{const_cast<std::byte*>(bytes.data()), bytes.size()};
  const iovec remote{memory_ + offset, bytes.size()};
  if (::process_vm_writev(pid_, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("poke");
  }
}

bool wait_ready(TenantMemory& tenant, std::uint32_t qp_number) {
  const timespec pause{0, 20'000};
  for (int i = 0; i < 100'000; ++i) {
    std::array<std::uint32_t, 4> ready{};
    const std::size_t n = tenant.take_ready(ready);
    for (std::size_t k = 0; k < n; ++k) {
      if (ready[k] == qp_number) return true;
    }
    ::nanosleep(&pause, nullptr);
  }
  return false;
}

namespace {

constexpr std::uint32_t kQp = 17;

template <class Call>
transport::MemoryResult repeated(TenantMemory& tenant, Call&& call) {
  transport::MemoryResult result = call();
  while (result == transport::MemoryResult::pending) {
    if (!wait_ready(tenant, kQp)) throw std::runtime_error("the memory never became ready");
    result = call();
  }
  return result;
}

}  // namespace

transport::MemoryResult read_through(TenantMemory& tenant, RegionMemory& region,
                                     std::uint64_t offset, std::span<std::byte> out) {
  return repeated(tenant, [&] { return region.provider().read(kQp, offset, out); });
}
transport::MemoryResult write_through(TenantMemory& tenant, RegionMemory& region,
                                      std::uint64_t offset, std::span<const std::byte> in) {
  return repeated(tenant, [&] { return region.provider().write(kQp, offset, in); });
}
transport::MemoryResult atomic_through(TenantMemory& tenant, RegionMemory& region,
                                       std::uint64_t offset,
                                       const transport::AtomicOperation& operation,
                                       std::uint64_t& original) {
  return repeated(tenant,
                  [&] { return region.provider().atomic(kQp, offset, operation, original); });
}

}  // namespace paceline::service::test
