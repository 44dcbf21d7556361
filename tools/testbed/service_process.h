// The process of a testbed: starting it in the background, and ending it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace paceline::tools {

// paceline-dataplane, beside the own executable, or where the build tree or an installation has it.
struct FoundService {
  std::string path;
  std::string error;
};
FoundService find_dataplane();
// Says that `name` is in none of the places, and how to get it: one command, which differs between
// a build tree and an installation. The first place is the folder of the own executable.
std::string missing_part(const std::string& name, std::span<const std::filesystem::path> places);

struct ServiceStart {
  std::string program;
  std::string testbed;  // absolute
  std::string socket;
  std::string log;
  std::vector<std::string> sets;
  bool ends_with_parent = false;  // even where that is killed
};
std::vector<std::string> service_command(const ServiceStart& start);

// Starts it in a session of its own and waits until its socket answers. Returns why it does not,
// with the end of its log; empty: it answers.
std::string start_service(const ServiceStart& start);
// Becomes it; only returns when that fails.
std::string become_service(const ServiceStart& start);

// Ends the process and waits until it is gone. Returns why it is not, or an empty text.
std::string end_service(pid_t pid);

}  // namespace paceline::tools
