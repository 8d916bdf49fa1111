// SPDX-License-Identifier: Apache-2.0
// A TOML file read strictly: every key must be asked for, unknown keys are errors, every error names file, line,
// key, what was found and what is allowed. toml++ stays inside document.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"

namespace assay::config {

// A table of a document. Getters never fail by themselves: the first problem is kept and Finish() of the document
// returns it, so a reader asks for everything in a row. A table must not outlive its document.
class Table {
 public:
  std::string String(std::string_view key, std::string_view fallback);
  std::string RequiredString(std::string_view key);  // not empty either
  std::uint64_t Uint(std::string_view key, std::uint64_t fallback, std::uint64_t low, std::uint64_t high);
  bool Bool(std::string_view key, bool fallback);
  // "250ms", "10s", "5m", "24h", "30d" as milliseconds.
  std::uint64_t DurationMs(std::string_view key, std::uint64_t fallback, std::uint64_t low, std::uint64_t high);
  std::string OneOf(std::string_view key, std::string_view fallback, const std::vector<std::string_view>& allowed);
  std::vector<std::string> Strings(std::string_view key);  // absent: empty
  std::vector<Digest> Digests(std::string_view key);       // each "sha256:<64 hex digits>"; absent: empty
  std::optional<Table> Sub(std::string_view key);          // [key]
  std::vector<Table> Array(std::string_view key);          // [[key]]
  std::vector<std::string> Keys() const;                   // for tables whose keys are data ([pcr] "0" = ...)
  bool Has(std::string_view key) const;
  void Problem(std::string_view key, std::string detail);  // a check of the reader's own failed

 private:
  friend class Document;
  struct Node;
  std::shared_ptr<Node> node_;  // shared with the Document that owns the tree
};

class Document {
 public:
  static Result<Document> Load(const std::string& path);  // at most 1 MiB
  static Result<Document> Parse(std::string_view text, std::string name);
  Table root();
  // The first problem met, or the first key nobody asked for; kConfig.
  Status Finish();

 private:
  std::shared_ptr<Table::Node> root_;
};

}  // namespace assay::config
