// Runs the built `paceline` as a user would, in a folder of its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace paceline::tools {

// A temporary folder, removed with its content.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  // Writes a file; its name.
  std::string write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;
  bool has(const std::string& name) const { return std::filesystem::exists(root_ / name); }
  // Names of everything in it, sorted.
  std::vector<std::string> list() const;

 private:
  std::filesystem::path root_;
};

struct Outcome {
  int code = -1;  // exit code; 128 + n when signal n ended it
  std::string out, err;
};

// A running command with the folder as its working directory. Its output goes to files outside the
// folder, so that Folder::list shows what the command itself left behind.
class Command {
 public:
  Command(const Folder& folder, const std::vector<std::string>& arguments);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  void signal(int number) const;
  // Standard error so far.
  std::string err() const;
  bool running();
  // Waits for the end. A command that hangs is killed after two minutes, and the test fails.
  Outcome wait();

 private:
  Folder streams_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

Outcome paceline_command(const Folder& folder, const std::vector<std::string>& arguments);

}  // namespace paceline::tools
