// SPDX-License-Identifier: Apache-2.0
// The power fails before every single operation of a log's life (first start, batches of several sizes, rotations,
// closing, the next start), and again before every operation of the recovery that follows. At each such place samples
// of what the disk may have kept are drawn by seed (tests/support/power_disk.h), the log is opened on each, and what it
// holds is held against a model of what was acknowledged, kept outside: all of it is there, in order, nothing twice,
// nothing invented, the trail can be continued and then verifies. A killed process, whose unsynced blocks are still in
// the page cache when the next one starts, counts as a beginning too.
// ASSAY_POWER_SAMPLES=N: images per place (default 3: 15,000 images in all, some 8 s of one core). ASSAY_POWER_SEED: another draw.
// A failure names seed, place and image: the run is the same every time.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <map>
#include <set>

#include "tests/support/power_disk.h"
#include "tests/support/trail.h"

namespace assay::audit {
namespace {

using test::PowerCut;
using test::PowerDirectory;
using test::PowerDisk;
using test::Survival;

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Model {
  std::map<std::uint64_t, std::string> acknowledged;  // sequence -> record
  std::vector<std::string> offered;                   // in order
  std::uint64_t last() const { return acknowledged.empty() ? 0 : acknowledged.rbegin()->first; }
};

LogOptions SmallSegments() { return {.directory = "simulated", .segment_bytes = 4608, .max_record = 256, .visit = {}}; }

// Appends batches from the completions, that is on the writer's thread: each batch is what the writer finds next, so a
// run has the same operations every time.
class Feeder {
 public:
  Feeder(FileAuditLog& log, Model& model, std::vector<int> batches)
      : log_(log), model_(model), batches_(std::move(batches)) {}
  std::string Run() {
    Next();  // of one record: the writer can't be faster than us
    return done_.get_future().get();
  }

 private:
  void Next() {
    if (!error_.empty() || at_ == batches_.size()) return done_.set_value(error_);
    left_ = batches_[at_++];
    const int size = left_;
    for (int i = 0; i < size; ++i) {
      const int n = static_cast<int>(model_.offered.size());
      std::string json = test::Record(n, static_cast<std::size_t>(n * 37 % 200));
      model_.offered.push_back(json);
      const Status taken = log_.Append(json, [this, json](Result<std::uint64_t> sequence) { Settle(json, sequence); });
      if (!taken.ok()) return done_.set_value(taken.error().ToString());
    }
  }
  void Settle(const std::string& json, const Result<std::uint64_t>& sequence) {
    if (sequence.ok()) model_.acknowledged.emplace(*sequence, json);
    else error_ = sequence.error().ToString();
    if (--left_ == 0) Next();
  }

  FileAuditLog& log_;
  Model& model_;
  const std::vector<int> batches_;
  std::size_t at_ = 0;
  int left_ = 0;
  std::string error_;
  std::promise<std::string> done_;
};

// One life of the log, closed in order at its end. Empty: all went well.
std::string Live(PowerDisk& disk, Model& model, const std::vector<int>& batches, test::Boundary boundary) {
  LogOptions options = SmallSegments();
  options.acknowledged = model.last();
  auto log = FileAuditLog::Open(options, test::TestKeys(), std::make_unique<PowerDirectory>(disk, std::move(boundary)));
  if (!log.ok()) return log.error().ToString();
  Feeder feeder(**log, model, batches);
  const std::string wrong = feeder.Run();
  log->reset();  // its thread is gone before the feeder is
  return wrong;
}

std::string CheckRecords(const std::map<std::uint64_t, std::string>& stored, const Model& model) {
  for (const auto& [sequence, json] : model.acknowledged) {
    const auto found = stored.find(sequence);
    if (found == stored.end()) return "acknowledged record " + std::to_string(sequence) + " is lost";
    if (found->second != json) return "acknowledged record " + std::to_string(sequence) + " is another";
  }
  auto from = model.offered.begin();
  for (const auto& [sequence, json] : stored) {
    from = std::find(from, model.offered.end(), json);
    if (from == model.offered.end())
      return "record " + std::to_string(sequence) + " is repeated, out of order or was never appended";
    ++from;
  }
  return {};
}

// What is wrong with the disk that the next start finds; empty: nothing. `mark`: whether the store knows what was acknowledged.
std::string Judge(PowerDisk disk, const Model& model, bool mark) {
  LogOptions options = SmallSegments();
  options.acknowledged = mark ? model.last() : 0;
  std::map<std::uint64_t, std::string> stored;
  options.visit = [&stored](const RecordView& record) { stored.emplace(record.sequence, record.json); };
  auto log = FileAuditLog::Open(options, test::TestKeys(), std::make_unique<PowerDirectory>(disk));
  if (!log.ok()) return log.error().ToString();
  if (std::string wrong = CheckRecords(stored, model); !wrong.empty()) return wrong;
  const auto more = (*log)->AppendAndWait(test::Record(1'000'000));
  if (!more.ok()) return more.error().ToString();
  if (*more <= model.last()) return "sequence " + std::to_string(*more) + " is given again";
  log->reset();
  PowerDirectory directory(disk);
  const auto walk = WalkTrail(directory, test::TestKeys(), {});
  if (!walk.ok()) return walk.error().ToString();
  if (!walk->faults.empty()) return "after the recovery: " + walk->faults.faults.front().ToString();
  return walk->rotation ? "after the recovery: a rotation is not finished" : std::string();
}

struct Tally {
  std::uint64_t seed = FromEnvironment("ASSAY_POWER_SEED", 1);
  std::uint64_t samples = FromEnvironment("ASSAY_POWER_SAMPLES", 3);
  std::uint64_t places = 0;
  std::uint64_t cuts = 0;
  std::vector<std::string> failures;

  Survival SurvivalOf(std::uint64_t sample) const {
    return sample == 0 ? Survival::kNothing : sample == 1 ? Survival::kEverything : Survival::kChance;
  }
  std::uint64_t Draw(std::uint64_t sample) const { return seed * 1'000'003 + places * 1009 + sample; }

  // The power fails here.
  void CutHere(const PowerDisk& disk, const Model& model) {
    ++places;
    for (std::uint64_t sample = 0; sample < samples; ++sample) {
      ++cuts;
      const std::string wrong =
          Judge(PowerCut(Draw(sample), SurvivalOf(sample)).Of(disk), model, (places + sample) % 2 == 0);
      Note(wrong, "image " + std::to_string(sample));
    }
  }
  void Note(const std::string& wrong, const std::string& where) {
    if (!wrong.empty())
      failures.push_back("seed " + std::to_string(seed) + ", place " + std::to_string(places) + ", " + where + ": " +
                         wrong);
  }
  void Report() const {
    MESSAGE(cuts, " power cuts at ", places, " places");
    for (std::size_t i = 0; i < failures.size() && i < 10; ++i) FAIL_CHECK(failures[i]);
    CHECK(failures.size() == 0);
  }
};

const std::vector<int> kBatches = {1, 3, 1, 6, 2, 1, 9, 4, 1, 1, 5, 1, 7, 2, 1, 1, 3};
const std::vector<int> kSecondLife = {1, 4, 2, 6, 1, 1};

// The next start on `disk`, the power failing before each of its operations.
void CutRecovery(PowerDisk disk, Model model, Tally& tally, const char* beginning) {
  const std::string place = std::string(beginning) + " at place " + std::to_string(tally.places);
  const std::string wrong = Live(disk, model, {1, 5, 2}, [&] { tally.CutHere(disk, model); });
  tally.Note(wrong, "a start after " + place);
}

TEST_CASE("what was acknowledged survives a power cut before every operation of two lives") {
  Tally tally;
  tally.samples *= 8;
  PowerDisk disk;
  Model model;
  const auto cut = [&] { tally.CutHere(disk, model); };
  CHECK(Live(disk, model, kBatches, cut) == "");
  CHECK(Live(disk, model, kSecondLife, cut) == "");
  cut();
  CHECK(tally.places > 100);
  CHECK(model.acknowledged.size() == model.offered.size());
  PowerDirectory directory(disk);
  const auto walk = WalkTrail(directory, test::TestKeys(), {});
  REQUIRE(walk.ok());
  CHECK(walk->segments > 4);
  tally.Report();
}

TEST_CASE("what was acknowledged survives a second power cut before every operation of the recovery from a first") {
  Tally tally;
  PowerDisk disk;
  Model model;
  CHECK(Live(disk, model, kBatches, [&] {
          CutRecovery(PowerCut(tally.Draw(7), Survival::kChance).Of(disk), model, tally, "a power cut");
        }) == "");
  CHECK(tally.places > 500);
  tally.Report();
}

TEST_CASE("what was acknowledged survives a power cut while the successor of a killed process recovers") {
  Tally tally;
  PowerDisk disk;
  Model model;
  CHECK(Live(disk, model, kBatches, [&] { CutRecovery(disk, model, tally, "a kill"); }) == "");
  CHECK(tally.places > 500);
  tally.Report();
}

TEST_CASE("a disk that only pretends to sync is found out by the same check") {
  Tally tally;
  PowerDisk disk;
  disk.lies = true;
  Model model;
  CHECK(Live(disk, model, kBatches, [&] { tally.CutHere(disk, model); }) == "");
  CHECK(tally.failures.size() > 10);
}

}  // namespace
}  // namespace assay::audit
