#include "dataplane/verbs/files/cm_device.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/attach/text.h"
#include "dataplane/verbs/files/redirect.h"
#include "dataplane/verbs/service_link/session.h"
#include "dataplane/verbs/service_link/settings.h"

namespace paceline::files {

namespace {

struct Channel {
  ino_t inode = 0;  // the descriptor's number may belong to another file by now
  std::uint32_t handle = 0;
  bool inherited = false;  // of the parent process
};

// State of one process. A child needs its own: its parent's connection belongs to the parent.
struct Process {
  pid_t pid = 0;
  std::mutex table;                 // of `channels`; nothing is called with it held
  std::map<int, Channel> channels;  // by the descriptor that was opened
  std::mutex connecting;
  verbs::Session session;
  bool connected = false;
};

// Descriptors that were a channel once, by a bit each; those beyond are always in doubt.
constexpr int kMarked = 1 << 16;
struct Marks {
  std::atomic<bool> in_use{false};
  std::array<std::atomic<std::uint64_t>, kMarked / 64> bits{};

  void set(int file) {
    if (file < kMarked) {
      bits[static_cast<std::size_t>(file) / 64] |= std::uint64_t{1} << (file % 64);
    }
    in_use.store(true, std::memory_order_release);
  }
  bool has(int file) const {
    if (file < 0 || file >= kMarked) return file >= 0;
    return (bits[static_cast<std::size_t>(file) / 64].load(std::memory_order_relaxed) >>
                (file % 64) &
            1U) != 0;
  }
};

Marks& marks() {
  static Marks all;
  return all;
}

Process& process() {
  static std::atomic<Process*> current{nullptr};
  const pid_t pid = ::getpid();
  Process* seen = current.load(std::memory_order_acquire);
  if (seen != nullptr && seen->pid == pid) return *seen;
  auto fresh = std::make_unique<Process>();
  fresh->pid = pid;
  if (seen != nullptr && seen->table.try_lock()) {  // else a thread held it when the child was made
    fresh->channels = seen->channels;
    for (auto& [file, channel] : fresh->channels) channel.inherited = true;
    seen->table.unlock();
  }
  // The parent's connection is not closed: a descriptor of that number may be the child's own by
  // now.
  if (current.compare_exchange_strong(seen, fresh.get())) return *fresh.release();
  return *current.load(std::memory_order_acquire);
}

int real_fstat(int file, struct stat* out) {
  using Function = int(int, struct stat*);
  static Function* const real = next_function<Function>("fstat");
  return real(file, out);
}

std::optional<ino_t> socket_inode(int file) {
  struct stat status {};
  if (real_fstat(file, &status) != 0 || !S_ISSOCK(status.st_mode)) return std::nullopt;
  return status.st_ino;
}

// The channel behind a descriptor, also a duplicated one.
std::optional<Channel> channel_of(int file) {
  const auto inode = socket_inode(file);
  if (!inode) return std::nullopt;
  Process& own = process();
  const std::lock_guard hold(own.table);
  const auto at = own.channels.find(file);
  if (at != own.channels.end() && at->second.inode == *inode) return at->second;
  for (const auto& [opened, channel] : own.channels) {
    if (channel.inode == *inode) return channel;
  }
  return std::nullopt;
}

// 0 or an errno. Requires `connecting` to be held.
int connect(Process& own) {
  if (own.connected) return 0;
  const verbs::Settings settings = verbs::read_settings();
  if (const int error = own.session.connect(settings); error != 0) return error;
  attach::OpenRequest request;
  attach::put_text(request.nic, settings.nic);
  const int error = own.session.tell(attach::Operation::open_cm, request);
  own.connected = error == 0;
  return error;
}

// A descriptor, or minus an errno.
int open_channel(int flags) {
  Process& own = process();
  const std::lock_guard hold(own.connecting);
  const bool was_connected = own.connected;
  if (const int error = connect(own); error != 0) return -error;
  attach::Message reply;
  int error = own.session.exchange(attach::Operation::cm_channel, {}, reply);
  if (error == EIO) own.connected = false;
  if (error == EIO && was_connected) {  // the service was restarted
    error = connect(own);
    if (error == 0) error = own.session.exchange(attach::Operation::cm_channel, {}, reply);
  }
  if (error != 0) return -error;
  if (reply.descriptors.size() != 1) return -EIO;
  Channel channel;
  channel.handle = reply.as<attach::HandleBody>().handle;
  const int file = reply.descriptors.front().get();
  const auto inode = socket_inode(file);
  if (!inode) return -EIO;
  channel.inode = *inode;
  if ((flags & O_CLOEXEC) == 0) ::fcntl(file, F_SETFD, 0);
  if ((flags & O_NONBLOCK) != 0) ::fcntl(file, F_SETFL, O_NONBLOCK);
  {
    const std::lock_guard table(own.table);
    own.channels[file] = channel;
  }
  marks().set(file);
  return reply.descriptors.front().release();
}

// Where a command names the address of its response; nothing: it has no response.
std::optional<std::size_t> response_place(std::uint32_t command) {
  switch (command) {
    case RDMA_USER_CM_CMD_CREATE_ID:
      return offsetof(rdma_ucm_create_id, response);
    case RDMA_USER_CM_CMD_DESTROY_ID:
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
    case RDMA_USER_CM_CMD_QUERY:
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
    case RDMA_USER_CM_CMD_GET_EVENT:
    case RDMA_USER_CM_CMD_MIGRATE_ID:
      return 0;
    default:
      return std::nullopt;
  }
}

template <class T>
T read_at(std::span<const std::byte> bytes, std::size_t at) {
  T out{};
  if (at + sizeof(T) <= bytes.size()) std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

// 0: an event waits. Else an errno: EAGAIN of a descriptor that does not wait, EINTR, EIO when the
// service is gone. recv() continues after a signal if the program wants that from read().
int await_event(int file) {
  char byte = 0;
  const ssize_t got = ::recv(file, &byte, 1, MSG_PEEK);
  if (got > 0) return 0;
  return got == 0 ? EIO : errno;
}

struct Command {
  rdma_ucm_cmd_hdr header{};
  std::span<const std::byte> body;
};

// 0 or an errno; takes the response to where the program wants it.
int ask(int file, const Channel& channel, const Command& command) {
  attach::CmRequest request;
  request.channel = channel.handle;
  request.command = command.header.cmd;
  std::span<const std::byte> option;
  if (command.header.cmd == RDMA_USER_CM_CMD_SET_OPTION) {
    const auto length = read_at<std::uint32_t>(command.body, offsetof(rdma_ucm_set_option, optlen));
    const auto at = read_at<std::uint64_t>(command.body, offsetof(rdma_ucm_set_option, optval));
    if (length > attach::kMaxCmBytes) return EINVAL;
    if (at == 0 && length != 0) return EFAULT;
    option = {reinterpret_cast<const std::byte*>(at), length};
  }
  std::byte* response = nullptr;
  if (const auto place = response_place(command.header.cmd)) {
    response = reinterpret_cast<std::byte*>(read_at<std::uint64_t>(command.body, *place));
    if (response == nullptr && command.header.out != 0) return EFAULT;
    request.room = command.header.out;
  }
  int other = -1;
  if (command.header.cmd == RDMA_USER_CM_CMD_MIGRATE_ID) {
    other =
        static_cast<int>(read_at<std::uint32_t>(command.body, offsetof(rdma_ucm_migrate_id, fd)));
    if (const auto from = channel_of(other)) request.other_channel = from->handle;
  }
  request.body_bytes = static_cast<std::uint32_t>(command.body.size());
  request.option_bytes = static_cast<std::uint32_t>(option.size());
  std::vector<std::byte> bytes(sizeof request);
  std::memcpy(bytes.data(), &request, sizeof request);
  bytes.insert(bytes.end(), command.body.begin(), command.body.end());
  bytes.insert(bytes.end(), option.begin(), option.end());
  attach::Message reply;
  const int error = process().session.exchange(attach::Operation::cm_command, bytes, reply);
  if (error != 0) return error;
  const auto answer = reply.as<attach::CmReply>();
  char byte = 0;
  if (answer.drained != 0) ::recv(file, &byte, 1, MSG_DONTWAIT);
  if (answer.other_drained != 0) ::recv(other, &byte, 1, MSG_DONTWAIT);
  const auto got = reply.beyond<attach::CmReply>();
  if (response != nullptr && !got.empty()) std::memcpy(response, got.data(), got.size());
  return answer.error;
}

// 0 or an errno.
int carry_out(int file, std::span<const std::byte> bytes) {
  const auto channel = channel_of(file);
  if (!channel) return EBADF;
  if (channel->inherited) return EACCES;
  if (bytes.size() < sizeof(rdma_ucm_cmd_hdr)) return EINVAL;
  Command command;
  command.header = read_at<rdma_ucm_cmd_hdr>(bytes, 0);
  bytes = bytes.subspan(sizeof(rdma_ucm_cmd_hdr));
  if (command.header.in > bytes.size() || command.header.in > attach::kMaxCmBytes) return EINVAL;
  command.body = bytes.first(command.header.in);
  if (command.header.cmd != RDMA_USER_CM_CMD_GET_EVENT) return ask(file, *channel, command);
  for (;;) {
    if (const int error = await_event(file); error != 0) return error;
    // Another thread may have been faster.
    if (const int error = ask(file, *channel, command); error != EAGAIN) return error;
  }
}

// The device's own number where this machine has the kernel's, for librdmacm compares.
dev_t device_number() {
  unsigned major_number = 10;  // miscellaneous devices
  unsigned minor_number = 0;
  if (std::FILE* const file = std::fopen("/sys/class/misc/rdma_cm/dev", "re")) {
    if (std::fscanf(file, "%u:%u", &major_number, &minor_number) != 2) minor_number = 0;
    std::fclose(file);
  }
  return makedev(major_number, minor_number);
}

}  // namespace

int CmDevice::open(int flags) {
  int file = -ENOMEM;
  try {
    file = open_channel(flags);
    if (file < 0) {
      verbs::say(std::string("rdma_cm: the service opens no /dev/infiniband/rdma_cm: ") +
                 std::strerror(-file));
    }
  } catch (const std::bad_alloc&) {
  }
  if (file >= 0) return file;
  errno = -file;
  return -1;
}

bool CmDevice::in_use() { return marks().in_use.load(std::memory_order_acquire); }

bool CmDevice::is_command(int file, const void* bytes, std::size_t size) {
  if (!marks().has(file)) {
    // A duplicated descriptor: what is written to it looks like a command, and its socket is a
    // channel's.
    rdma_ucm_cmd_hdr header{};
    if (size < sizeof header || bytes == nullptr) return false;
    std::memcpy(&header, bytes, sizeof header);
    if (header.cmd > RDMA_USER_CM_CMD_JOIN_MCAST || header.in != size - sizeof header) return false;
  }
  const int error = errno;
  bool is = false;
  try {
    is = channel_of(file).has_value();
  } catch (const std::bad_alloc&) {
  }
  errno = error;
  return is;
}

ssize_t CmDevice::write(int file, const void* bytes, std::size_t size) {
  int error = ENOMEM;
  try {
    error = carry_out(file, {static_cast<const std::byte*>(bytes), size});
  } catch (const std::bad_alloc&) {
  }
  if (error == 0) return static_cast<ssize_t>(size);
  errno = error;
  return -1;
}

void CmDevice::disguise(int file, struct stat& status) {
  if (!marks().has(file) || !S_ISSOCK(status.st_mode)) return;
  try {
    if (!channel_of(file)) return;
  } catch (const std::bad_alloc&) {
    return;
  }
  status.st_mode = S_IFCHR | 0666;
  status.st_rdev = device_number();
}

}  // namespace paceline::files
