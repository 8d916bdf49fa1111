// SPDX-License-Identifier: Apache-2.0
// authz_vectors FILE: runs every vector, prints each that fails, then "N passed, N failed"; exit code 1 on a failure.
#include <cstdio>
#include <fstream>
#include <map>

#include "tests/vectors/groups.h"

namespace assay::vectors {
namespace {

using Group = Json (*)(const Json&);
const std::map<std::string, Group> kGroups = {
    {"match.colon", MatchColon},    {"match.path", MatchPath},     {"match.action", MatchAction},
    {"subset.colon", SubsetColon},  {"canonical_json", Canonical}, {"ip_allowlist", IpAllowlist},
    {"time_window", TimeWindow},    {"dpop.verify", DpopVerify},   {"dpop.replay", DpopReplay},
    {"dpop.binding", DpopBinding},  {"dpop.header", DpopHeader},   {"jwk_thumbprint", Thumbprint},
    {"device_bundle", DeviceBundle}};

// Every member that is expected is there and equal; others are not looked at.
bool Meets(const Json& expected, const Json& got) {
  if (!expected.is_object()) return expected == got;
  if (!got.is_object()) return false;
  for (const auto& [name, value] : expected.items())
    if (!got.contains(name) || !Meets(value, got.at(name))) return false;
  return true;
}

bool Report(const std::string& id, const Json& expected, const Json& got) {
  if (Meets(expected, got)) return true;
  std::printf("FAILED %s: expected %s, got %s\n", id.c_str(), expected.dump().c_str(), got.dump().c_str());
  return false;
}

// A vector that expects nothing would pass whatever the core does: it fails.
bool RunScenarioVector(const std::string& id, const Json& input) {
  const auto answers = RunScenario(input);
  bool good = true;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Json& step = input.at("steps").at(i);
    if (!step.contains("expect")) continue;
    ++compared;
    good = Report(id + " step " + std::to_string(i + 1), step.at("expect"), answers[i]) && good;
  }
  return compared == 0 ? Report(id, "a step with an expectation", nullptr) : good;
}

bool RunVector(const Json& vector) {
  const std::string id = vector.value("id", "(no id)");
  const Json expected = vector.value("expect", Json());
  try {
    const std::string group = vector.at("group").get<std::string>();
    if (group == "scenario") return RunScenarioVector(id, vector.at("input"));
    const auto known = kGroups.find(group);
    if (known == kGroups.end()) return Report(id, expected, "unknown group " + group);
    if (!expected.is_object() || expected.empty()) return Report(id, "an expectation", nullptr);
    return Report(id, expected, known->second(vector.at("input")));
  } catch (const std::exception& error) {
    std::printf("FAILED %s: expected %s, got an exception: %s\n", id.c_str(), expected.dump().c_str(), error.what());
    return false;
  }
}

int Run(const char* path) {
  std::ifstream file(path);
  const Json root = Json::parse(file, nullptr, false);
  if (!root.is_object() || !root.contains("vectors") || !root.at("vectors").is_array()) {
    std::fprintf(stderr, "authz_vectors: %s is not a file of vectors\n", path);
    return 2;
  }
  std::size_t passed = 0, failed = 0;
  for (const Json& vector : root.at("vectors")) ++(RunVector(vector) ? passed : failed);
  std::printf("%zu passed, %zu failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace
}  // namespace assay::vectors

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: authz_vectors FILE\n");
    return 2;
  }
  return assay::vectors::Run(argv[1]);
}
