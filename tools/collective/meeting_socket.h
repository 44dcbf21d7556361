// A socket on which the ranks of one group meet their parent: in a folder of its own, which only
// its owner may enter and which is removed with it.
#pragma once

#include <string>

namespace paceline::tools {

class MeetingSocket {
 public:
  // Throws std::runtime_error where there can be none.
  MeetingSocket();
  ~MeetingSocket();
  MeetingSocket(const MeetingSocket&) = delete;
  MeetingSocket& operator=(const MeetingSocket&) = delete;

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  // The descriptor of a new connection, or -1.
  int accept() const;

 private:
  void remove();

  std::string folder_;
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace paceline::tools
