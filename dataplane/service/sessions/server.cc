#include "dataplane/service/sessions/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "dataplane/attach/descriptors/foreign_descriptors.h"
#include "dataplane/attach/text.h"
#include "dataplane/service/memory/credentials.h"
#include "dataplane/service/memory/program_memory.h"
#include "dataplane/service/memory/view_guard.h"
#include "dataplane/service/sessions/status.h"

namespace paceline::service {

namespace {

// Requests of one program in a row, before the others get their turn.
constexpr int kRequestsInARow = 16;

bool credentials_of(int socket, Peer& peer) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return false;
  peer = {credentials.pid, credentials.uid, nullptr};
  return true;
}

// Each message that is received says from then on which process sent it (attach::Message::sender).
void tell_senders(int socket) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
}

// For the connection manager.
cm::NicBook nic_book(Service& service) {
  const std::vector<NicPlace> places = service.nics();
  std::vector<attach::NicInfo> infos;
  for (const NicPlace place : places) infos.push_back(service.nic_info(place));
  return {std::move(infos),
          [&service, places](std::size_t from, const wire::IpAddress& to) {
            const NicPlace place = places[from];
            return service.worker(place.worker).nics().path_to(place.nic, to).has_value();
          },
          [&service, places](std::size_t nic, std::uint32_t port) {
            return attach::is_up(service.nic_info(places[nic]), port);
          }};
}

attach::Transfer answer(int socket, const attach::Header& request, const Status& status,
                        const Reply& reply) {
  attach::Header header;
  header.operation = request.operation;
  header.sequence = request.sequence;
  header.error = status.error;
  if (status.error == 0) {
    return attach::send_message(socket, header, reply.body, reply.descriptors);
  }
  attach::Complaint complaint;
  attach::put_text(complaint.text, status.why);
  return attach::send_message(socket, header, std::as_bytes(std::span(complaint.text)));
}

}  // namespace

struct Server::WayBack {
  std::mutex mutex;
  boost::asio::io_context* context = nullptr;

  // Waits while there is no memory: other threads may free some, and a session waits for this.
  template <class Work>
  void post(const Work& work) {
    for (;;) {
      try {
        const std::lock_guard lock(mutex);
        if (context != nullptr) boost::asio::post(*context, work);
        return;
      } catch (const std::bad_alloc&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  }
  void end() {
    const std::lock_guard lock(mutex);
    context = nullptr;
  }
};

Server::Server(Service& service)
    : service_(service),
      aside_(service.aside()),
      way_back_(std::make_shared<WayBack>()),
      listening_(context_),
      breath_(context_),
      spoilt_views_(context_),
      management_(context_, service),
      cm_(context_, nic_book(service),
          [this](const cm::Parcel& parcel) { management_.send(parcel); }) {
  way_back_->context = &context_;
  attach::Descriptor event(::fcntl(view_guard::spoilt_event(), F_DUPFD_CLOEXEC, 0));
  if (event) {
    spoilt_views_.assign(event.release());
    wait_for_spoilt_views();
  } else {
    spdlog::warn(
        "userfaultfd is not usable here (Linux 5.14 and its system call are needed): programs can "
        "make the service allocate memory (docs/service.md)");
  }
}

Server::~Server() { way_back_->end(); }

std::string Server::listen(const std::string& path) {
  const ServiceSettings& settings = service_.settings();
  const unsigned mode = settings.open || !settings.users.empty() ? 0666 : 0600;
  attach::Descriptor socket = attach::listen_socket(path, mode);
  if (!socket) {
    return errno == EADDRINUSE ? fmt::format(
                                     "{}: a service answers there already; end it first, or choose "
                                     "another --socket",
                                     path)
                               : fmt::format("{}: {}", path, std::strerror(errno));
  }
  tell_senders(socket.get());
  path_ = path;
  // They are due between open_nic and share_memory alone.
  attach::allow_descriptors(socket.get(), false);
  listening_.assign(socket.release());
  wait_for_programs();
  return {};
}

void Server::run() {
  try {
    strangers_.begin();
  } catch (const std::system_error& error) {
    throw std::runtime_error(attach::no_threads(error));
  }
  management_.open([this](const cm::Parcel& parcel, std::span<const std::byte> bytes) {
    cm_.arrive(parcel, bytes);
  });
  context_.run();
  way_back_->end();
  if (listening_.is_open())
    attach::close_listening(attach::Descriptor(listening_.release()), strangers_);
  if (!path_.empty() && path_.front() != '@') {
    const FileRights rights(service_.privileges().starter);
    ::unlink(path_.c_str());
  }
  while (!connections_.empty()) end(connections_.begin());
}

void Server::wait_for_programs() {
  listening_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                        [this](const boost::system::error_code& error) {
                          if (error) return;
                          if (accept()) {
                            wait_for_programs();
                            return;
                          }
                          breath_.expires_after(std::chrono::milliseconds(100));
                          breath_.async_wait([this](const boost::system::error_code& ended) {
                            if (!ended) wait_for_programs();
                          });
                        });
}

bool Server::accept() {
  attach::Descriptor socket(
      ::accept4(listening_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    if (exhausted) spdlog::warn("a program could not be let in: {}", std::strerror(errno));
    return !exhausted;
  }
  tell_senders(socket.get());
  Peer peer;
  if (!credentials_of(socket.get(), peer)) {
    strangers_.close(std::move(socket));
    return true;
  }
  if (!service_.may_attach(peer.user)) {
    spdlog::warn("user {} (process {}) may not attach", peer.user, peer.pid);
    answer(socket.get(), {}, {EACCES, "this user may not use this service"}, {});
    strangers_.close(std::move(socket));
    return true;
  }
  try {
    peer.program = std::make_shared<ProgramMemory>(socket.get());
    connections_.emplace_back(context_, service_, cm_, peer);
  } catch (const std::exception& error) {
    spdlog::warn("a program could not be let in: {}", error.what());
    strangers_.close(std::move(socket));
    return false;
  }
  Connection& connection = connections_.back();
  boost::system::error_code failed;
  const bool admitted = connection.session.admitted();
  if (admitted) connection.socket.assign(socket.get(), failed);
  if (admitted && !failed) {
    socket.release();
    wait_for_request(std::prev(connections_.end()));
    return true;
  }
  if (!admitted) {
    answer(socket.get(), {}, {EUSERS, "this user has as many sessions as it may have"}, {});
  }
  connections_.pop_back();
  strangers_.close(std::move(socket));
  return true;
}

void Server::wait_for_request(Place at) {
  at->socket.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                        [this, at](const boost::system::error_code& error) {
                          if (!error) guarded(at, [&] { return serve_some(at); });
                        });
}

template <class Serve>
void Server::guarded(Place at, Serve serve) {
  Next next = Next::end;
  try {
    next = serve();
    at->under_way = next == Next::errand;
    if (next == Next::request) {
      if (!at->over) return wait_for_request(at);
      next = Next::end;
    }
  } catch (const std::exception& error) {
    spdlog::warn("session {} is ended: {}", at->session.number(), error.what());
    next = Next::end;
  }
  if (next == Next::end) end(at);
}

void Server::wait_for_spoilt_views() {
  spoilt_views_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                           [this](const boost::system::error_code& error) {
                             if (error) return;
                             end_spoilt_sessions();
                             wait_for_spoilt_views();
                           });
}

void Server::end_spoilt_sessions() {
  std::array<std::uintptr_t, view_guard::kRemembered> all{};
  const auto addresses = std::span(all).first(view_guard::take_spoilt(all));
  for (Place at = connections_.begin(); at != connections_.end();) {
    const Place here = at++;
    Session& session = here->session;
    if (std::none_of(addresses.begin(), addresses.end(),
                     [&](std::uintptr_t address) { return session.holds(address); })) {
      continue;
    }
    spdlog::warn(
        "session {} of user {} (process {}) is ended: it took pages out of memory that is "
        "registered",
        session.number(), session.peer().user, session.peer().pid);
    end_soon(here);
  }
}

void Server::take_away(NicPlace place) {
  service_.take_away(place);
  const std::vector<NicPlace> places = service_.nics();
  cm_.take_away(
      static_cast<std::size_t>(std::find(places.begin(), places.end(), place) - places.begin()));
  const std::string name =
      attach::text_of(service_.worker(place.worker).nics().nic(place.nic).info.name);
  spdlog::info("NIC {} is taken away", name);
  for (Place at = connections_.begin(); at != connections_.end();) {
    const Place here = at++;
    if (here->session.place() != place) continue;
    // The last message to it; a program that does not read gets none.
    answer(here->socket.native_handle(), {}, {ENODEV, fmt::format("NIC {} was taken away", name)},
           {});
    end_soon(here);
  }
}

// Unread data in the socket is lost when it is closed.
void Server::end(Place at) {
  attach::Descriptor socket(at->socket.release());
  const std::shared_ptr<const void> remains = at->session.remains();
  connections_.erase(at);
  aside_.close(std::move(socket), remains);
}

Server::Next Server::serve_some(Place at) {
  Session& session = at->session;
  const int socket = at->socket.native_handle();
  for (int i = 0; i < kRequestsInARow; ++i) {
    const auto errand = std::make_shared<Errand>();
    attach::Message request;
    const attach::Glance glance =
        attach::look(socket, std::as_writable_bytes(std::span(&request.header, 1)));
    // A message that arrives after this look may bring descriptors; the next look finds them.
    if (glance.bytes < 0) {
      return errno == EAGAIN || errno == EWOULDBLOCK ? Next::request : Next::end;
    }
    if (glance.descriptors) {
      // Received by the thread that closes them, or not at all.
      errand->header = request.header;
      if (request.header.operation != attach::Operation::share_memory || !session.takes_memory()) {
        answer(socket, request.header, {EPROTO, "descriptors come with share_memory alone"}, {});
        return Next::end;
      }
      errand->status = session.take_memory(socket, errand->reply);
      if (const Next next = finish(at, errand); next != Next::request) return next;
      continue;
    }
    switch (attach::receive_message(socket, request)) {
      case attach::Transfer::done:
        break;
      case attach::Transfer::again:
        return Next::request;
      case attach::Transfer::broken:
        answer(socket, request.header, {EPROTO, "not a message of this protocol"}, {});
        return Next::end;
      case attach::Transfer::closed:
      case attach::Transfer::failed:
        return Next::end;
    }
    errand->header = request.header;
    errand->status = request.header.operation == attach::Operation::status
                         ? status(session, errand->reply)
                         : session.handle(request, errand->reply);
    if (const Next next = finish(at, errand); next != Next::request) return next;
  }
  return Next::request;
}

// Answers, or starts the work on a side thread that must be done first.
Server::Next Server::finish(Place at, const std::shared_ptr<Errand>& errand) {
  using attach::Operation;
  if (errand->reply.aside) {
    std::function<void()> work = [this, at, errand, way = way_back_] {
      try {
        errand->reply.aside();
      } catch (const std::exception&) {
        errand->thrown = std::current_exception();
      }
      way->post([this, at, errand] {
        guarded(at, [&] {
          if (errand->thrown) std::rethrow_exception(errand->thrown);
          errand->status = at->session.resume(errand->reply);
          return finish(at, errand);
        });
      });
    };
    if (!aside_.try_run(work)) throw std::bad_alloc();
    return Next::errand;
  }
  const int socket = at->socket.native_handle();
  const Operation operation = errand->header.operation;
  const Status& status = errand->status;
  if (status.error != 0) {
    spdlog::debug("session {}: operation {} refused: {} ({})", at->session.number(),
                  static_cast<unsigned>(operation), status.why, std::strerror(status.error));
  }
  if (status.error == 0 && operation == Operation::open_nic) {
    attach::allow_descriptors(socket, true);
  }
  if (status.error == 0 && operation == Operation::share_memory) {
    attach::allow_descriptors(socket, false);
  }
  // A program that does not read its replies may send no further requests.
  if (answer(socket, errand->header, status, errand->reply) != attach::Transfer::done) {
    return Next::end;
  }
  return status.error == EPROTO ? Next::end : Next::request;
}

std::string Server::status_of(std::optional<uid_t> only) {
  std::vector<const Session*> sessions;
  for (const Connection& connection : connections_) sessions.push_back(&connection.session);
  return status_text(service_, sessions, only, management_.counts(cm_.messages()));
}

std::string Server::status_of_all() { return status_of(std::nullopt); }

Status Server::status(const Session& asking, Reply& reply) {
  if (!asking.greeted()) return {EPROTO, "the first request is hello"};
  const uid_t user = asking.peer().user;
  const bool sees_all = user == 0 || user == service_.privileges().owner;
  const std::string text = status_of(sees_all ? std::nullopt : std::optional(user));
  const auto bytes = std::as_bytes(std::span(text));
  if (bytes.size() <= attach::kMaxStatusBody) {
    reply.body.assign(bytes.begin(), bytes.end());
    return {};
  }
  if (!status_.make("paceline-status", bytes.size())) return {ENOMEM, "shared memory"};
  std::copy(bytes.begin(), bytes.end(), status_.data());
  reply.descriptors = {status_.descriptor()};
  return {};
}

}  // namespace paceline::service
