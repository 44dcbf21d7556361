#include "control/daemon/store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "control/experiment/text/json_reader.h"

namespace paceline::daemon {

using nlohmann::json;

namespace {

bool is_damage(const SqlResult& result) {
  return result.primary() == SQLITE_CORRUPT || result.primary() == SQLITE_NOTADB;
}

json parsed(const std::string& text) { return experiment::JsonReader::parse(text); }

// Bytes that are not UTF-8 (names of files) must not prevent an entry.
std::string dumped(const json& body) {
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<StoredEntry> rows_of(Statement& statement) {
  std::vector<StoredEntry> out;
  while (statement.step()) {
    out.push_back(
        {statement.whole(0), statement.whole(1), statement.text(2), parsed(statement.text(3))});
  }
  return out;
}

}  // namespace

std::string Store::open(const std::string& path, std::int64_t now_unix_ns) {
  path_ = path;
  const std::string lock_path = path + ".lock";
  lock_.reset(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_) return fmt::format("{}: {}", lock_path, std::strerror(errno));
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return fmt::format("{}: in use by another pacelined", path);
  }
  SqlResult result = open_file();
  if (is_damage(result)) {
    if (std::string wrong = move_aside(now_unix_ns, result.error); !wrong.empty()) return wrong;
    result = open_file();
  }
  if (!result.ok()) {
    database_.close();
    return fmt::format("{}: {}", path, result.error);
  }
  return {};
}

SqlResult Store::open_file() {
  database_.close();
  if (SqlResult result = database_.open(path_); !result.ok()) return result;
  if (SqlResult result = database_.run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL");
      !result.ok()) {
    return result;
  }
  const std::string check = database_.ask_text("PRAGMA quick_check(1)");
  if (check != "ok") return {SQLITE_CORRUPT, check.empty() ? "it cannot be checked" : check};
  const std::int64_t version = database_.ask("PRAGMA user_version", -1);
  if (version > kStoreSchema || version < 0) {
    return {SQLITE_ERROR,
            fmt::format("it was written by a newer pacelined (schema {}, this one knows {}); it is "
                        "left as it is",
                        version, kStoreSchema)};
  }
  return version == kStoreSchema ? SqlResult{} : migrate(version);
}

// One step per schema version, each in a transaction of its own.
SqlResult Store::migrate(std::int64_t from) {
  static constexpr const char* kSteps[] = {
      "BEGIN IMMEDIATE;"
      "CREATE TABLE document(kind TEXT NOT NULL, key TEXT NOT NULL, at_unix_ns INTEGER NOT NULL,"
      " body TEXT NOT NULL, PRIMARY KEY(kind, key)) WITHOUT ROWID;"
      "CREATE TABLE entry(number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL,"
      " key TEXT NOT NULL, at_unix_ns INTEGER NOT NULL, body TEXT NOT NULL);"
      "CREATE INDEX entry_of_kind ON entry(kind, number);"
      "PRAGMA user_version=1;"
      "COMMIT",
  };
  static_assert(std::size(kSteps) == kStoreSchema);
  for (auto step = static_cast<std::size_t>(from); step < std::size(kSteps); ++step) {
    if (SqlResult result = database_.run(kSteps[step]); !result.ok()) return result;
  }
  return {};
}

std::string Store::move_aside(std::int64_t now_unix_ns, const std::string& why) {
  database_.close();
  const std::string aside = fmt::format("{}.damaged-{}", path_, now_unix_ns / 1'000'000'000);
  if (std::rename(path_.c_str(), aside.c_str()) != 0) {
    return fmt::format("{}: damaged ({}), and cannot be moved aside: {}", path_, why,
                       std::strerror(errno));
  }
  // The log belongs to the file; alone it would be applied to the new one.
  for (const char* const suffix : {"-wal", "-shm"}) {
    std::rename((path_ + suffix).c_str(), (aside + suffix).c_str());
  }
  notes_.push_back(fmt::format("{}: damaged ({}); moved to {}, and replaced by an empty file",
                               path_, why, aside));
  return {};
}

std::string Store::write(Statement& statement) {
  if (statement) statement.step();
  trouble_ = statement.result().ok() ? std::string()
                                     : fmt::format("{}: {}", path_, statement.result().error);
  return trouble_;
}

std::string Store::put(std::string_view kind, std::string_view key, const json& body,
                       std::int64_t now_unix_ns) {
  Statement statement(database_.handle(),
                      "INSERT INTO document(kind, key, at_unix_ns, body) VALUES(?1, ?2, ?3, ?4) "
                      "ON CONFLICT(kind, key) DO UPDATE SET at_unix_ns=?3, body=?4");
  statement.bind(1, kind).bind(2, key).bind(3, now_unix_ns).bind(4, dumped(body));
  return write(statement);
}

std::optional<json> Store::get(std::string_view kind, std::string_view key) {
  Statement statement(database_.handle(), "SELECT body FROM document WHERE kind=?1 AND key=?2");
  statement.bind(1, kind).bind(2, key);
  if (!statement.step()) return std::nullopt;
  json body = parsed(statement.text(0));
  return body.is_discarded() ? std::nullopt : std::optional(std::move(body));
}

std::string Store::erase(std::string_view kind, std::string_view key) {
  Statement statement(database_.handle(), "DELETE FROM document WHERE kind=?1 AND key=?2");
  statement.bind(1, kind).bind(2, key);
  return write(statement);
}

std::vector<StoredDocument> Store::list(std::string_view kind) {
  Statement statement(database_.handle(),
                      "SELECT key, at_unix_ns, body FROM document WHERE kind=?1 ORDER BY key");
  statement.bind(1, kind);
  std::vector<StoredDocument> out;
  while (statement.step()) {
    out.push_back({statement.text(0), statement.whole(1), parsed(statement.text(2))});
  }
  return out;
}

std::string Store::append(std::string_view kind, std::string_view key, const json& body,
                          std::int64_t now_unix_ns, std::int64_t& number) {
  Statement statement(database_.handle(),
                      "INSERT INTO entry(kind, key, at_unix_ns, body) VALUES(?1, ?2, ?3, ?4)");
  statement.bind(1, kind).bind(2, key).bind(3, now_unix_ns).bind(4, dumped(body));
  std::string wrong = write(statement);
  number = wrong.empty() ? sqlite3_last_insert_rowid(database_.handle()) : 0;
  return wrong;
}

std::string Store::replace(std::int64_t number, const json& body) {
  Statement statement(database_.handle(), "UPDATE entry SET body=?2 WHERE number=?1");
  statement.bind(1, number).bind(2, dumped(body));
  return write(statement);
}

std::vector<StoredEntry> Store::entries(std::string_view kind, std::string_view key,
                                        std::int64_t after, std::size_t most) {
  Statement statement(database_.handle(),
                      "SELECT number, at_unix_ns, key, body FROM entry WHERE kind=?1 AND "
                      "number>?2 AND (?3='' OR key=?3) ORDER BY number LIMIT ?4");
  statement.bind(1, kind).bind(2, after).bind(3, key).bind(4, static_cast<std::int64_t>(most));
  return rows_of(statement);
}

std::vector<StoredEntry> Store::newest(std::string_view kind, std::size_t most) {
  Statement statement(database_.handle(),
                      "SELECT number, at_unix_ns, key, body FROM entry WHERE kind=?1 "
                      "ORDER BY number DESC LIMIT ?2");
  statement.bind(1, kind).bind(2, static_cast<std::int64_t>(most));
  std::vector<StoredEntry> rows = rows_of(statement);
  std::reverse(rows.begin(), rows.end());
  return rows;
}

nlohmann::json Store::listed(std::string_view kind, std::int64_t after, std::size_t most) {
  nlohmann::json out = nlohmann::json::array();
  for (StoredEntry& entry : after > 0 ? entries(kind, {}, after, most) : newest(kind, most)) {
    out.push_back(entry.body.is_object() ? std::move(entry.body) : nlohmann::json::object());
    out.back()["number"] = entry.number;
    out.back()["at_unix_ns"] = entry.at_unix_ns;
  }
  return out;
}

std::string Store::prune(std::string_view kind, std::size_t keep) {
  Statement statement(database_.handle(),
                      "DELETE FROM entry WHERE kind=?1 AND number <= coalesce((SELECT number FROM "
                      "entry WHERE kind=?1 ORDER BY number DESC LIMIT 1 OFFSET ?2), 0)");
  statement.bind(1, kind).bind(2, static_cast<std::int64_t>(keep));
  return write(statement);
}

void Store::limit_pages(std::int64_t pages) {
  database_.run(fmt::format("PRAGMA max_page_count={}", pages));
}

}  // namespace paceline::daemon
