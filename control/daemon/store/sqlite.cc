#include "control/daemon/store/sqlite.h"

#include <sys/stat.h>

namespace paceline::daemon {

namespace {

SqlResult result_of(sqlite3* database, int code) {
  SqlResult result;
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return result;
  result.code = database == nullptr ? code : sqlite3_extended_errcode(database);
  if (result.code == SQLITE_OK) result.code = code;
  result.error = database == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database);
  return result;
}

}  // namespace

Statement::Statement(sqlite3* database, std::string_view sql) {
  sqlite3_stmt* handle = nullptr;
  const int code =
      sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &handle, nullptr);
  handle_.reset(handle);
  result_ = result_of(database, code);
}

Statement& Statement::bind(int at, std::int64_t value) {
  if (handle_) sqlite3_bind_int64(handle_.get(), at, value);
  return *this;
}

Statement& Statement::bind(int at, std::string_view text) {
  if (handle_) {
    // A null pointer would be NULL, which equals nothing.
    sqlite3_bind_text64(handle_.get(), at, text.data() == nullptr ? "" : text.data(), text.size(),
                        SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  return *this;
}

bool Statement::step() {
  if (!handle_) return false;
  const int code = sqlite3_step(handle_.get());
  result_ = result_of(sqlite3_db_handle(handle_.get()), code);
  return code == SQLITE_ROW;
}

void Statement::reset() {
  if (!handle_) return;
  sqlite3_reset(handle_.get());
  sqlite3_clear_bindings(handle_.get());
}

std::string Statement::text(int column) const {
  const auto* const text = sqlite3_column_text(handle_.get(), column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text),
          static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column))};
}

SqlResult Database::open(const std::string& path) {
  sqlite3* handle = nullptr;
  // The file records who may do what on this host, so only its owner may read it.
  const mode_t before = ::umask(0077);
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  SqlResult result = result_of(handle, code);
  if (result.ok())
    result =
        result_of(handle, sqlite3_exec(handle, "PRAGMA schema_version", nullptr, nullptr, nullptr));
  ::umask(before);
  handle_.reset(handle);
  if (!result.ok()) {
    handle_.reset();
    return result;
  }
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, 1000);
  return result;
}

SqlResult Database::run(const std::string& sql) {
  return result_of(handle_.get(),
                   sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr));
}

std::int64_t Database::ask(std::string_view sql, std::int64_t otherwise) {
  Statement statement(handle_.get(), sql);
  return statement.step() ? statement.whole(0) : otherwise;
}

std::string Database::ask_text(std::string_view sql) {
  Statement statement(handle_.get(), sql);
  return statement.step() ? statement.text(0) : std::string();
}

}  // namespace paceline::daemon
