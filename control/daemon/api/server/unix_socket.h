// The Unix socket of the API: its file, and who is at the other end of a connection.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <optional>
#include <string>

#include "control/daemon/api/endpoint.h"

namespace paceline::daemon {

// A listening socket with its file; the file goes with it, unless it is someone else's by then.
class UnixListener {
 public:
  UnixListener() = default;
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;
  ~UnixListener() { close(); }

  // In place of a stale socket of that name; refused where somebody answers, or where something
  // that is no socket is in the way. Not empty: why not.
  std::string open(const std::string& path, mode_t mode, std::optional<gid_t> group);
  // A descriptor that listens already; its file, if any, is left alone.
  std::string adopt(int descriptor);
  void close();

  int descriptor() const { return fd_; }
  // For who closes it himself (an acceptor); the file still goes with close().
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
