// The service under test: a process of its own, started here and ended here.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace paceline::test {

// What a process holds that must not grow with the programs it has served.
struct Holdings {
  std::size_t descriptors = 0;
  std::size_t shared_mappings = 0;  // of memfds
  bool operator==(const Holdings&) const = default;
};

class ServiceProcess {
 public:
  // Its log goes to `folder`/service.log, its socket is `folder`/service.sock.
  ServiceProcess(const std::string& program, const std::string& testbed, const std::string& folder);
  ~ServiceProcess();
  ServiceProcess(const ServiceProcess&) = delete;
  ServiceProcess& operator=(const ServiceProcess&) = delete;

  const std::string& socket() const { return socket_; }
  // True once it answers.
  bool await();
  bool alive();
  Holdings holdings() const;
  // What it answers to `status`; an empty object when it does not.
  nlohmann::json status() const;
  // SIGTERM; true when it exits with status 0. A sanitizer that has found something says otherwise.
  bool end();
  std::string log() const;

 private:
  std::string socket_;
  std::string log_;
  pid_t pid_ = -1;
};

}  // namespace paceline::test
