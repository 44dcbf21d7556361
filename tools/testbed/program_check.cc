#include "tools/testbed/program_check.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace paceline::tools {

namespace {

constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;
constexpr int kMostInterpreters = 4;          // as the kernel's limit on scripts run by scripts
constexpr std::size_t kMostFirstLine = 4096;  // the kernel reads 256

bool is_folder(const std::string& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool exists(const std::string& file) { return ::access(file.c_str(), F_OK) == 0; }

// A pipe is not, whatever its mode says: reading it could wait for ever.
bool is_executable(const std::string& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(file.c_str(), X_OK) == 0;
}

// All of T at `offset`, or nothing.
template <class T>
std::optional<T> read_at(std::ifstream& in, std::uint64_t offset) {
  T out{};
  in.clear();
  in.seekg(static_cast<std::streamoff>(offset));
  if (!in.read(reinterpret_cast<char*>(&out), sizeof(out))) return std::nullopt;
  return out;
}

struct ElfFacts {
  bool elf = false;
  bool ours = false;  // class and machine of this program
  std::string interpreter;
};

constexpr unsigned char kOurClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;

ElfFacts read_elf(std::ifstream& in) {
  ElfFacts facts;
  const auto header = read_at<Elf64_Ehdr>(in, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return facts;
  facts.elf = true;
  std::ifstream self("/proc/self/exe", std::ios::binary);
  const auto own = read_at<Elf64_Ehdr>(self, 0);
  facts.ours =
      header->e_ident[EI_CLASS] == kOurClass && (!own || own->e_machine == header->e_machine);
  if (!facts.ours) return facts;
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    const auto part = read_at<Elf64_Phdr>(in, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!part) break;
    if (part->p_type != PT_INTERP || part->p_filesz == 0 || part->p_filesz > 4096) continue;
    facts.interpreter.resize(part->p_filesz - 1);  // without the closing zero
    in.seekg(static_cast<std::streamoff>(part->p_offset));
    in.read(facts.interpreter.data(), static_cast<std::streamsize>(facts.interpreter.size()));
  }
  return facts;
}

// The program of a "#!" line; "/usr/bin/env [-S] NAME" is looked up.
std::string interpreter_of(const std::string& line, const std::string& path) {
  std::istringstream words(line.substr(2));
  std::string program;
  words >> program;
  if (program.substr(program.rfind('/') + 1) != "env") return program;
  std::string word;
  while (words >> word) {
    if (word.front() == '-' || word.find('=') != std::string::npos) continue;
    const FoundProgram found = find_program(word, path);
    return found.error.empty() ? found.file : program;
  }
  return program;
}

std::string why_not_elf(const std::string& file, const ElfFacts& facts) {
  if (!facts.ours) return fmt::format("{} is for another kind of processor", file);
  if (facts.interpreter.empty()) {
    return fmt::format(
        "{} is statically linked: no library can be loaded into it. Build it to link libibverbs "
        "dynamically",
        file);
  }
  if (facts.interpreter.find("ld-musl") != std::string::npos) {
    return fmt::format("{} is linked with musl ({}); our libraries need glibc", file,
                       facts.interpreter);
  }
  return {};
}

// The dynamic linker ignores LD_PRELOAD where a program gets rights that its caller does not have.
std::string why_not_rights(const std::string& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return fmt::format("{}: {}", file, std::strerror(errno));
  const bool changes_user = (info.st_mode & S_ISUID) != 0 && info.st_uid != ::geteuid();
  const bool changes_group = (info.st_mode & S_ISGID) != 0 && info.st_gid != ::getegid();
  if (changes_user || changes_group) {
    return fmt::format(
        "{} is set-{}-id: the dynamic linker loads no library into it that its caller names. Use a "
        "copy without that bit",
        file, changes_user ? "user" : "group");
  }
  if (::geteuid() != 0 && ::getxattr(file.c_str(), "security.capability", nullptr, 0) > 0) {
    return fmt::format(
        "{} has file capabilities: the dynamic linker loads no library into it that its caller "
        "names. Use a copy (cp does not copy them)",
        file);
  }
  return {};
}

}  // namespace

FoundProgram find_program(const std::string& name, const std::string& path) {
  if (name.empty()) return {{}, "the program's name is empty", kNotFound};
  if (name.find('/') != std::string::npos) {
    if (!exists(name)) return {{}, fmt::format("{}: no such file", name), kNotFound};
    if (is_folder(name)) return {{}, fmt::format("{} is a folder", name), kNotExecutable};
    if (!is_executable(name))
      return {{}, fmt::format("{} is not executable", name), kNotExecutable};
    return {name, {}, 0};
  }
  std::string seen;  // there, but not executable
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (is_executable(file)) return {file, {}, 0};
    if (seen.empty() && exists(file) && !is_folder(file)) seen = file;
  }
  if (!seen.empty()) return {{}, fmt::format("{} is not executable", seen), kNotExecutable};
  return {{}, fmt::format("{}: not found in PATH", name), kNotFound};
}

std::string why_blind(const std::string& file) {
  if (file.substr(file.rfind('/') + 1) != "rdma") return {};
  return fmt::format(
      "{} asks the kernel by netlink, and the kernel does not know these NICs. `ibv_devinfo` and "
      "`ibstat` show them, files in /sys/class/infiniband/NAME/ports/1/hw_counters have their "
      "counters, `paceline testbed status` shows both",
      file);
}

std::string why_not_preloadable(const std::string& file, const std::string& path) {
  std::string now = file;
  for (int depth = 0; depth <= kMostInterpreters; ++depth) {
    if (std::string why = why_not_rights(now); !why.empty()) return why;
    std::ifstream in(now, std::ios::binary);
    const ElfFacts facts = read_elf(in);
    if (facts.elf) return why_not_elf(now, facts);
    in.clear();
    in.seekg(0);
    std::string line(kMostFirstLine, '\0');
    in.read(line.data(), static_cast<std::streamsize>(line.size()));
    line.resize(std::min(static_cast<std::size_t>(in.gcount()), line.find('\n')));
    // A file that may be run but not read is left to the kernel; one without "#!" is a shell's.
    if (line.compare(0, 2, "#!") != 0) return {};
    const std::string next = interpreter_of(line, path);
    if (next.empty() || !exists(next)) {
      return fmt::format("{}: its interpreter \"{}\" does not exist", now, next);
    }
    now = next;
  }
  return fmt::format("{}: more than {} interpreters, one after the other", file, kMostInterpreters);
}

}  // namespace paceline::tools
