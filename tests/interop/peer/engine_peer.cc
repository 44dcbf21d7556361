// The test peer beside the guest: our engine on a packet socket, driven by lines on standard input
// (commands.h, engine_backend.h).
//
// usage: rxe_peer_ours INTERFACE MAC ADDRESS/PREFIX [SEED]
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "tests/interop/peer/commands.h"
#include "tests/interop/peer/engine_backend.h"

namespace {

using namespace paceline;

interop::EngineBackendOptions options_from(int argc, char** argv) {
  interop::EngineBackendOptions options;
  options.interface = argv[1];
  std::string error;
  const auto mac = wire::mac_address_from_text(argv[2], &error);
  if (!mac) throw std::invalid_argument(error);
  options.mac = *mac;
  const std::string text = argv[3];
  const std::size_t slash = text.find('/');
  const auto ip = wire::ip_address_from_text(text.substr(0, slash), &error);
  if (!ip || slash == std::string::npos) throw std::invalid_argument(error + " " + text);
  options.address = {*ip, static_cast<std::uint8_t>(std::atoi(text.c_str() + slash + 1))};
  if (argc > 4) options.seed = std::strtoull(argv[4], nullptr, 10);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: rxe_peer_ours INTERFACE MAC ADDRESS/PREFIX [SEED]\n", stderr);
    return 2;
  }
  try {
    interop::EngineBackend backend(options_from(argc, argv));
    interop::Commands(backend).run(STDIN_FILENO, STDOUT_FILENO);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rxe_peer_ours: %s\n", error.what());
    return 2;
  }
}
