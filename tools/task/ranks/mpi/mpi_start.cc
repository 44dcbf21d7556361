#include "tools/task/ranks/mpi/mpi_start.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dataplane/base/text/printable.h"

namespace paceline::tools {

namespace {

std::string variable_text(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

// In a build tree ../lib from here, installed ../PACELINE_LIBRARIES.
void* load_module(const std::string& mpi) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  const std::string name = fmt::format("paceline-{}.so", mpi);
  std::vector<std::string> places;
  for (const fs::path& place : {here / ".." / PACELINE_LIBRARIES, here / "../lib"}) {
    places.push_back(place.lexically_normal().string());
    const fs::path file = place / name;
    if (!fs::exists(file, error)) continue;
    // Parts of an MPI look for its functions among those of the program.
    if (void* const module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL)) return module;
    throw std::runtime_error(fmt::format("{}: {}", name, ::dlerror()));
  }
  throw std::runtime_error(fmt::format(
      "{0} has started this process, but there is no {1} in {2}. It is built where CMake finds {3} "
      "(Debian: {4}). PACELINE_MPI=off runs without MPI",
      mpi == "mpich" ? "MPICH" : "Open MPI", name, fmt::join(places, ", "),
      mpi == "mpich" ? "mpicc.mpich" : "mpicc.openmpi",
      mpi == "mpich" ? "libmpich-dev" : "libopenmpi-dev"));
}

template <class Function>
Function function_of(void* module, const char* name) {
  void* const found = ::dlsym(module, name);
  if (found == nullptr) throw std::runtime_error(fmt::format("the module for MPI has no {}", name));
  return reinterpret_cast<Function>(found);
}

void check_mpi(int error, std::string_view what) {
  if (error != 0) throw std::runtime_error(fmt::format("MPI failed to {}: error {}", what, error));
}

}  // namespace

std::string mpi_of_environment() {
  const std::string chosen = variable_text("PACELINE_MPI");
  if (chosen == "off") return {};
  if (chosen == "openmpi" || chosen == "mpich") return chosen;
  if (!chosen.empty()) {
    throw std::runtime_error(
        fmt::format("PACELINE_MPI={}: openmpi, mpich and off are allowed", printable(chosen)));
  }
  // mpirun of Open MPI; srun --mpi=pmix. Then hydra of MPICH; srun --mpi=pmi2.
  if (!variable_text("OMPI_COMM_WORLD_SIZE").empty()) return "openmpi";
  if (!variable_text("PMIX_RANK").empty()) return "openmpi";
  if (!variable_text("PMI_RANK").empty() && !variable_text("PMI_SIZE").empty()) return "mpich";
  return {};
}

MpiStart::MpiStart(const std::string& mpi) {
  void* const module = load_module(mpi);
  const auto begin = function_of<PacelineMpiBegin>(module, "paceline_mpi_begin");
  share_ = function_of<PacelineMpiShare>(module, "paceline_mpi_share");
  end_ = function_of<PacelineMpiEnd>(module, "paceline_mpi_end");
  leave_ = function_of<PacelineMpiLeave>(module, "paceline_mpi_leave");
  check_mpi(begin(&place_), "begin");
  if (place_.ranks < 1 || place_.rank < 0 || place_.rank >= place_.ranks) {
    throw std::runtime_error(
        fmt::format("MPI says that this is rank {} of {}", place_.rank, place_.ranks));
  }
}

std::string MpiStart::share(std::string text, std::size_t most) {
  if (text.size() > most) throw std::length_error("too long for MpiStart::share");
  text.resize(most, '\0');
  check_mpi(share_(text.data(), static_cast<int>(most)), "bring what rank 0 says");
  return text.substr(0, text.find('\0'));
}

void MpiStart::end() { check_mpi(end_(), "end"); }

void MpiStart::leave(unsigned seconds) {
  if (!leaves()) return;
  ::alarm(seconds);
  leave_();
  ::alarm(0);
}

}  // namespace paceline::tools
