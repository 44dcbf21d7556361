// SQLite as far as the daemon needs it: one connection, prepared statements, errors as values. One
// thread.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace paceline::daemon {

// SQLite's result: 0 is success; otherwise the (extended) error code and a sentence.
struct SqlResult {
  int code = SQLITE_OK;
  std::string error;
  bool ok() const { return code == SQLITE_OK; }
  int primary() const { return code & 0xFF; }
};

class Statement {
 public:
  Statement() = default;
  Statement(sqlite3* database, std::string_view sql);

  explicit operator bool() const { return handle_ != nullptr; }
  // Counts from 1, as in the statement. Texts are copied.
  Statement& bind(int at, std::int64_t value);
  Statement& bind(int at, std::string_view text);
  // True: there is a row. False: the statement is done, or failed (result()).
  bool step();
  // Prepares another execution.
  void reset();
  std::int64_t whole(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  std::string text(int column) const;
  const SqlResult& result() const { return result_; }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  SqlResult result_;
};

class Database {
 public:
  // Opens or makes the file; its permissions are 0600.
  SqlResult open(const std::string& path);
  void close() { handle_.reset(); }
  bool is_open() const { return handle_ != nullptr; }
  SqlResult run(const std::string& sql);
  // The first column of the first row, or `otherwise`.
  std::int64_t ask(std::string_view sql, std::int64_t otherwise);
  std::string ask_text(std::string_view sql);
  sqlite3* handle() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace paceline::daemon
