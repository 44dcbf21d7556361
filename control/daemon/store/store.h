// State that outlives the daemon, in one SQLite file: documents, by kind and key, and entries,
// which are appended to a list of their kind and numbered. All are JSON objects that the store does
// not interpret. Only this file uses SQL.
//
// Once a call has returned "", its data is on the disk (write-ahead log, synced at each commit) and
// survives kill -9 and a power cut. If the disk is full or broken, writes return an error, reads
// still work, and every later write tries again. The daemon continues, and trouble() says what it
// cannot save.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/daemon/store/sqlite.h"
#include "dataplane/attach/descriptors/descriptor.h"

namespace paceline::daemon {

inline constexpr std::int64_t kStoreSchema = 1;

struct StoredDocument {
  std::string key;
  std::int64_t at_unix_ns = 0;
  nlohmann::json body;
};

struct StoredEntry {
  std::int64_t number = 0;  // grows within all kinds; never used twice
  std::int64_t at_unix_ns = 0;
  std::string key;
  nlohmann::json body;
};

class Store {
 public:
  // Returns an error, or an empty text. A file that is not a database, or is damaged, is renamed to
  // "<path>.damaged-<now in s>" and replaced by an empty one; notes() says so. A file of a newer
  // schema, or one that another process has open, is refused and not touched.
  std::string open(const std::string& path, std::int64_t now_unix_ns);
  const std::vector<std::string>& notes() const { return notes_; }

  std::string put(std::string_view kind, std::string_view key, const nlohmann::json& body,
                  std::int64_t now_unix_ns);
  std::optional<nlohmann::json> get(std::string_view kind, std::string_view key);
  std::string erase(std::string_view kind, std::string_view key);
  // By key.
  std::vector<StoredDocument> list(std::string_view kind);

  // `number`: set to that of the new entry.
  std::string append(std::string_view kind, std::string_view key, const nlohmann::json& body,
                     std::int64_t now_unix_ns, std::int64_t& number);
  // Replaces the body of an existing entry.
  std::string replace(std::int64_t number, const nlohmann::json& body);
  // At most `most` entries after number `after`, oldest first. An empty `key` matches every key.
  std::vector<StoredEntry> entries(std::string_view kind, std::string_view key = {},
                                   std::int64_t after = 0, std::size_t most = 1000);
  // The newest entries, oldest of them first.
  std::vector<StoredEntry> newest(std::string_view kind, std::size_t most);
  // Entries of a kind for the API: the bodies, with number and at_unix_ns. Those after number
  // `after`; with 0, the newest.
  nlohmann::json listed(std::string_view kind, std::int64_t after, std::size_t most);
  // Keeps the newest `keep` of a kind.
  std::string prune(std::string_view kind, std::size_t keep);

  // The last write that failed, as long as none has succeeded since.
  const std::string& trouble() const { return trouble_; }
  // The largest number of pages the file may have: a full disk, for tests.
  void limit_pages(std::int64_t pages);
  const std::string& path() const { return path_; }

 private:
  SqlResult open_file();
  SqlResult migrate(std::int64_t from);
  std::string move_aside(std::int64_t now_unix_ns, const std::string& why);
  std::string write(Statement& statement);

  std::string path_;
  attach::Descriptor lock_;
  Database database_;
  std::string trouble_;
  std::vector<std::string> notes_;
};

}  // namespace paceline::daemon
