// SPDX-License-Identifier: Apache-2.0
// The only file that includes toml++ (it costs seconds to compile).
#include "sdk/config/document.h"

#define TOML_EXCEPTIONS 0
// The library asserts (and, with NDEBUG, assumes) what some texts break and what it then refuses by itself: off in any
// build, a text must not end the program.
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "sdk/config/files.h"

namespace assay::config {
namespace {

constexpr std::size_t kMaxFile = 1U << 20;
constexpr std::size_t kMaxArray = 100'000;

std::string Where(const std::string& file, const toml::source_region& source) {
  return source.begin ? file + ":" + std::to_string(source.begin.line) : file;
}

std::string_view KindOf(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "an array";
  if (node.is_string()) return "a string";
  if (node.is_integer()) return "an integer";
  if (node.is_boolean()) return "a boolean";
  return "another type";
}

// Where a character stands in the text, as far as quotes and comments decide it.
enum class Place : std::uint8_t { kOpen, kBasicString, kLiteralString, kComment };

Place NextPlace(Place place, char c) noexcept {
  if (c == '\n') return Place::kOpen;
  switch (place) {
    case Place::kOpen:
      return c == '"' ? Place::kBasicString : c == '\'' ? Place::kLiteralString : c == '#' ? Place::kComment : place;
    case Place::kBasicString: return c == '"' ? Place::kOpen : place;
    case Place::kLiteralString: return c == '\'' ? Place::kOpen : place;
    case Place::kComment: return place;
  }
  return place;
}

// The parser (3.3.0) has undefined behaviour for letters beyond ASCII where it looks for the end of a value. They are
// taken in comments only (strings have \u00E9); strings over several lines would blur what a comment is, and nothing
// here needs any. Control characters are no TOML.
Status CheckCharacters(std::string_view text, const std::string& name) {
  std::size_t line = 1;
  Place place = Place::kOpen;
  const auto refuse = [&](const char* what) {
    return MakeError(Code::kConfig, name + ":" + std::to_string(line) + ": " + what);
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F)
      return refuse("holds a control character");
    if (byte >= 0x80 && place != Place::kComment)
      return refuse("a letter beyond ASCII stands outside a comment; in a string write it as \\u00E9");
    const std::string_view three = text.substr(i, 3);
    if (place == Place::kOpen && (three == "\"\"\"" || three == "\'\'\'"))
      return refuse("a string over several lines is not taken");
    if (c == '\n') ++line;
    const bool escape = place == Place::kBasicString && c == '\\' && i + 1 < text.size() && text[i + 1] != '\n';
    if (escape) ++i;  // whatever follows, it does not end the string
    else place = NextPlace(place, c);
  }
  return Ok();
}

struct Unit {
  std::string_view suffix;
  std::uint64_t ms;
};
constexpr Unit kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};

std::optional<std::uint64_t> ParseDuration(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& unit : kUnits) {
    if (suffix != unit.suffix) continue;
    if (value > UINT64_MAX / unit.ms) return std::nullopt;
    return value * unit.ms;
  }
  return std::nullopt;
}

}  // namespace

// One table of the tree. Children are made when asked for and live as long as the root, which owns them.
struct Table::Node {
  struct Shared {
    std::string file;
    toml::table tree;
    std::optional<Error> problem;
  };
  std::shared_ptr<Shared> shared;  // by every node of one document: the parsed text and its first problem
  const toml::table* table = nullptr;
  std::string path;  // "[enrollment]" as people write it, empty at the root
  std::set<std::string, std::less<>> asked;
  std::vector<std::shared_ptr<Node>> children;

  void Complain(std::string_view key, const toml::node* at, const std::string& what) {
    if (shared->problem) return;
    const toml::source_region& source = at != nullptr ? at->source() : table->source();
    const std::string name = path.empty() ? std::string(key) : path + " " + std::string(key);
    shared->problem = MakeError(Code::kConfig, Where(shared->file, source) + ": " + name + ": " + what);
  }
  const toml::node* Take(std::string_view key) {
    asked.emplace(key);
    return table->get(key);
  }
  std::shared_ptr<Node> Child(const toml::table& child, std::string child_path) {
    auto node = std::make_shared<Node>();
    node->shared = shared;
    node->table = &child;
    node->path = std::move(child_path);
    children.push_back(node);
    return node;
  }
  void FindUnknown() {
    for (const auto& [key, value] : *table) {
      if (!asked.contains(std::string_view(key.str())))
        Complain(key.str(), &value, "is not a key of this table; check its spelling");
    }
    for (const auto& child : children) child->FindUnknown();
  }
};

std::string Table::String(std::string_view key, std::string_view fallback) {
  const toml::node* node = node_->Take(key);
  if (node == nullptr) return std::string(fallback);
  if (const auto* text = node->as_string()) return text->get();
  node_->Complain(key, node, "must be a string, found " + std::string(KindOf(*node)));
  return std::string(fallback);
}

std::string Table::RequiredString(std::string_view key) {
  if (!Has(key)) {
    node_->asked.emplace(key);
    node_->Complain(key, nullptr, "is missing");
    return {};
  }
  std::string text = String(key, "");
  if (text.empty()) node_->Complain(key, node_->table->get(key), "must not be empty");
  return text;
}

std::uint64_t Table::Uint(std::string_view key, std::uint64_t fallback, std::uint64_t low, std::uint64_t high) {
  const toml::node* node = node_->Take(key);
  if (node == nullptr) return fallback;
  const auto* number = node->as_integer();
  if (number != nullptr && number->get() >= 0) {
    const auto value = static_cast<std::uint64_t>(number->get());
    if (value >= low && value <= high) return value;
  }
  node_->Complain(key, node, "must be an integer from " + std::to_string(low) + " to " + std::to_string(high));
  return fallback;
}

bool Table::Bool(std::string_view key, bool fallback) {
  const toml::node* node = node_->Take(key);
  if (node == nullptr) return fallback;
  if (const auto* flag = node->as_boolean()) return flag->get();
  node_->Complain(key, node, "must be true or false, found " + std::string(KindOf(*node)));
  return fallback;
}

std::uint64_t Table::DurationMs(std::string_view key, std::uint64_t fallback, std::uint64_t low, std::uint64_t high) {
  const toml::node* node = node_->Take(key);
  if (node == nullptr) return fallback;
  const auto* text = node->as_string();
  const auto value = text == nullptr ? std::nullopt : ParseDuration(text->get());
  if (value && *value >= low && *value <= high) return *value;
  node_->Complain(key, node,
                  "must be a duration such as \"250ms\", \"10s\", \"5m\", \"24h\" or \"30d\", from " +
                      std::to_string(low) + " ms to " + std::to_string(high) + " ms");
  return fallback;
}

std::string Table::OneOf(std::string_view key, std::string_view fallback,
                         const std::vector<std::string_view>& allowed) {
  const toml::node* node = node_->Take(key);
  if (node == nullptr) return std::string(fallback);
  std::string list;
  for (const auto& value : allowed) list += (list.empty() ? "\"" : ", \"") + std::string(value) + "\"";
  const auto* text = node->as_string();
  if (text != nullptr && std::find(allowed.begin(), allowed.end(), std::string_view(text->get())) != allowed.end())
    return text->get();
  node_->Complain(key, node, "must be one of " + list);
  return std::string(fallback);
}

std::vector<std::string> Table::Strings(std::string_view key) {
  const toml::node* node = node_->Take(key);
  std::vector<std::string> out;
  if (node == nullptr) return out;
  const auto* array = node->as_array();
  if (array == nullptr || array->size() > kMaxArray) {
    node_->Complain(key, node, "must be an array of strings");
    return out;
  }
  for (const auto& item : *array) {
    if (const auto* text = item.as_string()) out.push_back(text->get());
    else node_->Complain(key, &item, "must hold strings only, found " + std::string(KindOf(item)));
  }
  return out;
}

std::vector<Digest> Table::Digests(std::string_view key) {
  constexpr std::string_view kPrefix = "sha256:";
  std::vector<Digest> out;
  for (const auto& text : Strings(key)) {
    const bool named = std::string_view(text).starts_with(kPrefix);
    const auto bytes = named ? FromHex(std::string_view(text).substr(kPrefix.size()))
                             : Result<Buffer>(MakeError(Code::kMalformed, ""));
    if (bytes.ok() && bytes->size() == kSha256Size) out.push_back(ToDigest(*bytes).value());
    else node_->Complain(key, node_->table->get(key), "\"" + text + "\" is not \"sha256:\" and 64 hexadecimal digits");
  }
  return out;
}

std::optional<Table> Table::Sub(std::string_view key) {
  const toml::node* node = node_->Take(key);
  if (node == nullptr) return std::nullopt;
  const auto* table = node->as_table();
  if (table == nullptr) {
    node_->Complain(key, node, "must be a table, written [" + std::string(key) + "]");
    return std::nullopt;
  }
  Table sub;
  sub.node_ = node_->Child(*table, node_->path + "[" + std::string(key) + "]");
  return sub;
}

std::vector<Table> Table::Array(std::string_view key) {
  std::vector<Table> out;
  const toml::node* node = node_->Take(key);
  if (node == nullptr) return out;
  const auto* array = node->as_array();
  if (array == nullptr) {
    node_->Complain(key, node, "must be an array of tables, written [[" + std::string(key) + "]]");
    return out;
  }
  for (const auto& item : *array) {
    const auto* table = item.as_table();
    if (table == nullptr) {
      node_->Complain(key, &item, "must be a table, written [[" + std::string(key) + "]]");
      continue;
    }
    Table sub;
    sub.node_ = node_->Child(*table, node_->path + "[[" + std::string(key) + "]]");
    out.push_back(std::move(sub));
  }
  return out;
}

std::vector<std::string> Table::Keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : *node_->table) keys.emplace_back(key.str());
  return keys;
}

bool Table::Has(std::string_view key) const { return node_->table->get(key) != nullptr; }

void Table::Problem(std::string_view key, std::string detail) { node_->Complain(key, node_->table->get(key), detail); }

Result<Document> Document::Parse(std::string_view text, std::string name) {
  if (text.size() > kMaxFile) return MakeError(Code::kLimit, name + ": is larger than 1 MiB");
  ASSAY_CHECK_OK(CheckCharacters(text, name));
  toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) {
    const auto& error = parsed.error();
    return MakeError(Code::kConfig, Where(name, error.source()) + ": " + std::string(error.description()));
  }
  auto shared = std::make_shared<Table::Node::Shared>();
  shared->file = std::move(name);
  shared->tree = std::move(parsed).table();
  Document document;
  document.root_ = std::make_shared<Table::Node>();
  document.root_->table = &shared->tree;
  document.root_->shared = std::move(shared);
  return document;
}

Result<Document> Document::Load(const std::string& path) {
  ASSAY_TRY(const std::string text, ReadTextFile(path, kMaxFile));
  return Parse(text, path);
}

Table Document::root() {
  Table table;
  table.node_ = root_;
  return table;
}

Status Document::Finish() {
  if (!root_->shared->problem) root_->FindUnknown();
  if (root_->shared->problem) return *root_->shared->problem;
  return Ok();
}

}  // namespace assay::config
