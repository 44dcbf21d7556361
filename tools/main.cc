// paceline, the command line.

#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
  CLI::App app{
      "Paceline: RDMA congestion control in virtual time, on a loopback testbed and on a NIC"};
  app.set_version_flag("--version", "paceline " PACELINE_VERSION);
  CLI11_PARSE(app, argc, argv);
  return 0;
}
