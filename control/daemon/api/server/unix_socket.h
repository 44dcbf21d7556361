// The Unix socket of the API: its file, and the identity of the other end of a connection.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <optional>
#include <string>

#include "control/daemon/api/endpoint.h"

namespace paceline::daemon {

// A listening socket with its file. The file is removed with it, unless it is another's by then.
class UnixListener {
 public:
  UnixListener() = default;
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;
  ~UnixListener() { close(); }

  // Replaces a stale socket of that name. Refuses if a server answers there, or if a file that is
  // not a socket is in the way. Returns an error, or an empty text.
  std::string open(const std::string& path, mode_t mode, std::optional<gid_t> group);
  // Takes over a descriptor that listens already; its file, if any, is left alone.
  std::string adopt(int descriptor);
  void close();

  int descriptor() const { return fd_; }
  // For a caller that closes it itself (an acceptor); close() still removes the file.
  int release();

 private:
  int fd_ = -1;
  std::string path_;  // file to remove at the end; empty: none
  dev_t device_ = 0;
  ino_t inode_ = 0;
  timespec changed_{};  // numbers of files are used again; this time with them is not
};

// The number of a group by name or number; none: there is no such group.
std::optional<gid_t> group_number(const std::string& name);

struct LocalAccess {
  std::optional<gid_t> group{};  // its members may write
  bool world_readable = false;
};

// The peer, by the credentials that the kernel took when it connected. Nothing: it may not even
// read.
std::optional<Caller> local_caller(int descriptor, const LocalAccess& access);
// The rule alone: `groups` are all of the peer's.
bool may_write(uid_t user, const gid_t* groups, std::size_t count, const LocalAccess& access);

}  // namespace paceline::daemon
