// A capture of each of some NICs of a service, each by a process of its own (`paceline capture`).
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

namespace paceline::tools {

class NicCaptures {
 public:
  NicCaptures() = default;
  ~NicCaptures();
  NicCaptures(const NicCaptures&) = delete;
  NicCaptures& operator=(const NicCaptures&) = delete;

  // Into `folder`/NIC.pcapng. Frames are captured from the return on. Why not, or an empty text.
  std::string begin(const std::string& socket, const std::string& folder,
                    std::span<const std::string> nics);
  std::vector<pid_t> processes() const;
  // Ends them and waits until the files are whole. Returns what they said.
  std::string end();

 private:
  struct Capture {
    std::string nic;
    pid_t process = 0;
    int said = -1;  // what it says on its standard error
  };
  std::string begin_one(const std::string& socket, const std::string& folder,
                        const std::string& nic);

  std::vector<Capture> captures_;
};

}  // namespace paceline::tools
