// SPDX-License-Identifier: Apache-2.0
#include "sdk/config/document.h"

#include <doctest/doctest.h>

namespace assay::config {
namespace {

std::string ProblemOf(std::string_view text, void (*read)(Table&)) {
  auto document = Document::Parse(text, "file.toml");
  if (!document.ok()) return document.error().detail;
  Table root = document->root();
  read(root);
  const Status status = document->Finish();
  return status.ok() ? "" : status.error().detail;
}

TEST_CASE("values are read with their types and defaults") {
  auto document = Document::Parse(
                      "name = \"n\"\ncount = 7\nflag = true\nwait = \"5m\"\nlist = [\"a\", \"b\"]\n[sub]\nx = "
                      "1\n[[item]]\nid = \"1\"\n[[item]]\nid = \"2\"\n",
                      "f")
                      .value();
  Table root = document.root();
  CHECK(root.RequiredString("name") == "n");
  CHECK(root.Uint("count", 1, 0, 10) == 7);
  CHECK(root.Bool("flag", false));
  CHECK(root.DurationMs("wait", 0, 0, 1'000'000) == 300'000);
  CHECK(root.Strings("list").size() == 2);
  CHECK(root.String("absent", "default") == "default");
  CHECK(root.Sub("sub")->Uint("x", 0, 0, 1) == 1);
  auto items = root.Array("item");
  CHECK(items.size() == 2);
  CHECK(items[1].String("id", "") == "2");
  CHECK(items[0].String("id", "") == "1");
  CHECK(document.Finish().ok());
}

TEST_CASE("an unknown key is an error that names file, line and key") {
  CHECK(ProblemOf("a = 1\nb = 2\n", [](Table& t) { (void)t.Uint("a", 0, 0, 9); }) ==
        "file.toml:2: b: is not a key of this table; check its spelling");
  CHECK(ProblemOf("[s]\nx = 1\n", [](Table& t) { (void)t.Sub("s"); }).find("[s] x") != std::string::npos);
  CHECK(ProblemOf("[s]\nx = 1\n", [](Table&) {}).find("s") != std::string::npos);
}

TEST_CASE("characters that TOML does not allow are refused where they stand, before the parser meets them") {
  const auto problem = [](std::string_view text) { return ProblemOf(text, [](Table& t) { (void)t.String("a", ""); }); };
  CHECK(problem("a = \"x\"\n[\x01]\n").starts_with("file.toml:2: holds a control character"));
  CHECK(problem(std::string_view("a = \"\0\"\n", 8)).starts_with("file.toml:1: holds a control character"));
  CHECK(problem("\n\na = 7\xD1\x91\n").starts_with("file.toml:3: a letter beyond ASCII"));
  CHECK(problem("a = \"x\" \xC3\xA9\n").starts_with("file.toml:1: a letter beyond ASCII"));
  CHECK(problem("a = \"\\\"\" \xC3\xA9\n").starts_with("file.toml:1: a letter beyond ASCII"));
  CHECK(problem("a = \"\"\"x\n\xC3\xA9\"\"\"\n").starts_with("file.toml:1: a string over several lines"));
  CHECK(problem("a = '''x'''\n").starts_with("file.toml:1: a string over several lines"));
  CHECK(problem("a = \"\xC3\xA9\"\n").find("write it as \\u00E9") != std::string::npos);
  CHECK(problem("a = \"#\xC3\xA9\"\n") != "");
  CHECK(problem("a = \"\\u00E9\" # \xC3\xA9 \"\n# \xC3\xA9\n") == "");
  CHECK(problem("a = '\\' # \xC3\xA9\n") == "");
  CHECK(problem("a = \"\"\n") == "");
  CHECK(problem("a = \"\xFF\"\n") != "");
}

TEST_CASE("wrong types and values are errors that say what is allowed") {
  CHECK(ProblemOf("a = \"x\"\n", [](Table& t) { (void)t.Uint("a", 0, 1, 9); }).find("from 1 to 9") !=
        std::string::npos);
  CHECK(ProblemOf("a = -1\n", [](Table& t) { (void)t.Uint("a", 0, 0, 9); }) != "");
  CHECK(ProblemOf("a = 10\n", [](Table& t) { (void)t.Uint("a", 0, 0, 9); }) != "");
  CHECK(ProblemOf("a = 1\n", [](Table& t) { (void)t.Bool("a", false); }) != "");
  CHECK(ProblemOf("a = \"5\"\n", [](Table& t) { (void)t.DurationMs("a", 0, 0, 9); }) != "");
  CHECK(ProblemOf("a = \"99999999999999999d\"\n", [](Table& t) { (void)t.DurationMs("a", 0, 0, ~0ULL); }) != "");
  CHECK(ProblemOf("a = \"z\"\n", [](Table& t) {
          (void)t.OneOf("a", "x", {"x", "y"});
        }).find("\"x\", \"y\"") != std::string::npos);
  CHECK(ProblemOf("a = [1]\n", [](Table& t) { (void)t.Strings("a"); }) != "");
  CHECK(ProblemOf("a = [\"sha256:00\"]\n", [](Table& t) { (void)t.Digests("a"); }) != "");
  CHECK(ProblemOf("a = [\"" + std::string(64, '0') + "\"]\n", [](Table& t) { (void)t.Digests("a"); }) != "");
  CHECK(ProblemOf("a = [\"sha256:" + std::string(64, '0') + "\"]\n",
                  [](Table& t) { CHECK(t.Digests("a").size() == 1); }) == "");
  CHECK(ProblemOf("", [](Table& t) { (void)t.RequiredString("a"); }).find("is missing") != std::string::npos);
  CHECK(ProblemOf("a = [\n", [](Table&) {}).find("file.toml") == 0);
}

}  // namespace
}  // namespace assay::config
