// What there is for the service, and what its tenants may have of it.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "dataplane/service/limits/machine_memory.h"
#include "tests/unit/service/service_support.h"

using namespace paceline;

namespace {

class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("paceline-groups-" + std::to_string(::getpid()))) {}
  ~Folder() { std::filesystem::remove_all(path_); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text << "\n";
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("the least limit of the control groups above counts") {
  const Folder root;
  const auto limit = [&](const char* membership) {
    return service::group_limit(membership, root.path(), 1000);
  };
  CHECK(limit("0::/a/b\n") == 1000);
  root.write("a/b/memory.max", "max");
  CHECK(limit("0::/a/b\n") == 1000);
  root.write("a/memory.max", "400");
  CHECK(limit("0::/a/b\n") == 400);
  root.write("a/b/memory.max", "300");
  CHECK(limit("0::/a/b\n") == 300);
  CHECK(limit("0::/a\n") == 400);
  CHECK(limit("0::/\n") == 1000);
  root.write("memory/c/memory.limit_in_bytes", "200");
  CHECK(limit("5:cpu,memory:/c\n3:cpuset:/a\n") == 200);
  CHECK(limit("5:memory2:/c\n") == 1000);
  root.write("memory/c/memory.limit_in_bytes", "9223372036854771712");
  CHECK(limit("5:memory:/c\n") == 1000);
  CHECK(limit("nonsense\n\n5:memory\n") == 1000);
}

TEST_CASE("a tenant may register half of the memory that there is", "[threads]") {
  test::RunningService service;
  const std::uint64_t half = service::machine_memory() / 2;
  CHECK(service.service().settings().quota.registered_bytes == half);
  CHECK(service.service().settings().quota.queue_bytes == service::machine_memory() / 4);
  test::AttachClient client(service.path());
  REQUIRE(client.open("h0"));
  CHECK(client.info().limits.registered_bytes == half);
  CHECK(client.info().limits.region_bytes == half);
}
