// Captures NICs of a service, each with a process of its own (`paceline capture`).
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

  // Captures into `folder`/NIC.pcapng, from its return on. Returns an error, or an empty text.
  std::string begin(const std::string& socket, const std::string& folder,
                    std::span<const std::string> nics);
  std::vector<pid_t> processes() const;
  // Ends the captures and waits until the files are complete. Returns their error messages.
  std::string end();

 private:
  struct Capture {
    std::string nic;
    pid_t process = 0;
    int said = -1;  // reads its standard error
  };
  std::string begin_one(const std::string& socket, const std::string& folder,
                        const std::string& nic);

  std::vector<Capture> captures_;
};

}  // namespace paceline::tools
