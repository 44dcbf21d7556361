#include "dataplane/verbs/service_link/session.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <iterator>

#include "dataplane/attach/text.h"
#include "dataplane/attach/turned_away.h"

namespace paceline::verbs {

namespace {

std::string complaint_of(const attach::Message& reply) {
  auto complaint = reply.as<attach::Complaint>();
  complaint.text.back() = '\0';
  return complaint.text.data();
}

void log_refusal(attach::Operation operation, const attach::Message& reply) {
  const std::string complaint = complaint_of(reply);
  std::string text = "operation " + std::to_string(static_cast<unsigned>(operation)) +
                     " refused: " + std::strerror(reply.header.error);
  if (!complaint.empty()) text += " (" + complaint + ")";
  say(text);
}

// Why the service has ended a session, if it told so and the message is unread.
std::string unread_word(int socket) {
  pollfd entry{socket, POLLIN, 0};
  attach::Message last;
  if (socket < 0 || ::poll(&entry, 1, 0) <= 0 || !attach::turned_away(socket, last)) return {};
  return complaint_of(last);
}

// With Yama's ptrace_scope = 1 only ancestors may access a program's memory, so the program names
// the service as a further process that may. Only one process can be named at a time; without need
// none is named.
void let_service_copy(int socket) {
  char scope = 0;
  const attach::Descriptor file(::open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC));
  if (!file || ::read(file.get(), &scope, 1) != 1 || scope != '1') return;
  ucred service{};
  socklen_t length = sizeof service;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &service, &length) == 0 && service.pid > 0) {
    ::prctl(PR_SET_PTRACER, static_cast<unsigned long>(service.pid));
  }
}

// One that ends in order removes its socket before it leaves its programs.
std::string how_it_ended(const std::string& path, bool connected) {
  if (!connected) return "is out of reach, for this program has closed the connection to it";
  if (path.empty() || path.front() == '@') return "is gone";
  constexpr int kPatienceMs = 100;  // a service that is being killed may listen a moment longer
  const attach::Descriptor again = attach::connect_socket(path, attach::kNoPatience);
  pollfd entry{again.get(), POLLRDHUP, 0};
  if (again ? ::poll(&entry, 1, kPatienceMs) == 0 : errno == ETIMEDOUT) {
    return "has ended this session, or was restarted";
  }
  if (again || errno == ECONNREFUSED) return "was killed or has crashed";
  if (errno == ENOENT) return "has ended (paceline testbed down)";
  return std::string("is out of reach (") + std::strerror(errno) + ")";
}

// A service on a busy machine may take its time to let a program in; one that is stopped or stuck
// never does.
constexpr timeval kPatience{10, 0};

}  // namespace

int Session::connect(const Settings& settings, Presence* presence) {
  presence_ = presence;
  log_ = settings.log;
  path_ = settings.socket;
  socket_ = attach::connect_socket(settings.socket, kPatience);
  if (!socket_) return errno;
  let_service_copy(socket_.get());
  received_.body.reserve(attach::kMaxMessage);
  received_.descriptors.reserve(attach::kMaxDescriptors);
  attach::HelloRequest hello;
  hello.pid = static_cast<std::uint32_t>(::getpid());
  const char* const name = program_invocation_short_name;
  attach::put_text(hello.program, name);
  const auto wait_at_most = [this](const timeval& time) {
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  };
  wait_at_most(kPatience);
  const int error = ask(attach::Operation::hello, hello, service_);
  wait_at_most({});
  return error;
}

void Session::lost(const char* last_word) noexcept {
  // Of the process: a program may have many devices of one service, and nothing owns them all.
  static std::atomic<bool> told{false};
  if (presence_ == nullptr || !presence_->lost()) return;
  try {
    const std::string why = last_word != nullptr ? last_word : unread_word(socket_.get());
    if (!why.empty()) {
      say(why + ": the device is lost to this program, and all calls for it fail");
      return;
    }
    if (told.exchange(true)) return;
    say("the service at " + path_ + " " + how_it_ended(path_, static_cast<bool>(socket_)) +
        ": its devices are lost to this program, and all calls for them fail");
  } catch (const std::exception&) {  // no memory for a message
  }
}

int Session::lose() {
  lost();
  return EIO;
}

int Session::exchange(attach::Operation operation, std::span<const std::byte> body,
                      attach::Message& reply, std::span<const int> descriptors) {
  // Before the lock: a child may have inherited it held, and must not answer for its parent.
  if (presence_ != nullptr && !presence_->usable()) return EIO;
  const std::lock_guard hold(mutex_);
  attach::Header header;
  header.operation = operation;
  header.sequence = ++sequence_;
  const attach::Transfer sent = attach::send_message(socket_.get(), header, body, descriptors);
  if (sent == attach::Transfer::failed) return errno == EBADF ? lose() : errno;
  const attach::Transfer got = sent == attach::Transfer::done
                                   ? attach::receive_message(socket_.get(), received_)
                                   : attach::Transfer::closed;
  const attach::Header& answer = received_.header;
  if (got == attach::Transfer::closed && attach::turned_away(socket_.get(), received_)) {
    return dismissed();
  }
  if (got == attach::Transfer::again) return ETIMEDOUT;  // in connect() alone
  if (got != attach::Transfer::done) return lose();
  if (answer.sequence == 0 && answer.error != 0) return dismissed();
  if (answer.operation != operation || answer.sequence != header.sequence) return lose();
  if (answer.error != 0) {
    if (log_) log_refusal(operation, received_);
    return answer.error;
  }
  reply.header = answer;
  reply.body.assign(received_.body.begin(), received_.body.end());
  reply.descriptors.assign(std::make_move_iterator(received_.descriptors.begin()),
                           std::make_move_iterator(received_.descriptors.end()));
  return 0;
}

// The service sends a message that answers no request. If it is the first after hello, a program
// that was let in loses its device.
int Session::dismissed() {
  const int error = received_.header.error;
  if (service_.service_pid == 0) {
    if (log_) log_refusal(attach::Operation::hello, received_);
    return error;
  }
  lost(complaint_of(received_).c_str());
  return EIO;
}

bool Session::look() {
  pollfd entry{socket_.get(), POLLRDHUP, 0};
  if (entry.fd >= 0) {  // poll() passes over what is closed
    if (::poll(&entry, 1, 0) <= 0) return true;
    if ((entry.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) == 0) return true;
  }
  lose();
  return false;
}

}  // namespace paceline::verbs
