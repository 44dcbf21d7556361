#include "tools/workload/files/text_table.h"

#include <stdlib.h>  // mkstemp is POSIX
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "tools/workload/cdf.h"
#include "tools/workload/files/hpcc_format.h"

namespace paceline::workload {
namespace {

using Lines = std::vector<std::string>;

class File {
 public:
  explicit File(const std::string& text) {
    const int descriptor = ::mkstemp(path_.data());
    REQUIRE(descriptor >= 0);
    ::close(descriptor);
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~File() { ::unlink(path_.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/paceline-table-XXXXXX";
};

TEST_CASE("a line as long as allowed is read, a longer one is refused", "[workload]") {
  const std::string longest(kLongestLine, '7');
  CHECK(read_table_file(File(longest + "\n" + longest).path(), 4 * kLongestLine).ok());
  const File file("1\n\n" + longest + "7\n");
  CHECK(read_table_file(file.path(), 4 * kLongestLine).errors ==
        Lines{file.path() + ":3: a line of 1048577 characters; allowed are 1048576"});
  const File whole(longest);
  CHECK(read_table_file(whole.path(), 1000).errors ==
        Lines{whole.path() + ": longer than 1000 bytes, the most that is read"});
}

TEST_CASE("no reader of a table takes a line without end", "[workload]") {
  const File file(std::string(10'000'000, '7'));
  const Lines refused = {file.path() + ":1: a line of 10000000 characters; allowed are 1048576"};
  CHECK(read_cdf_file(file.path()).errors == refused);
  CHECK(read_hpcc_topology(file.path()).errors == refused);
  CHECK(read_hpcc_flows(file.path(), NodeNumbers::star(2)).errors == refused);
}

}  // namespace
}  // namespace paceline::workload
