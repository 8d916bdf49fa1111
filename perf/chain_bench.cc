// SPDX-License-Identifier: Apache-2.0
// Group `chain`: what a whole re-attestation costs the server with its record durable, in V, measured in two ways: the
// verifier's code in this process, and assay-verifier as a process over kept TLS connections; and round trips with a
// software TPM. V is measured anew before each measurement of a run.
#include <cmath>
#include <thread>

#include "perf/bench.h"
#include "perf/chain_daemon.h"
#include "perf/chain_inside.h"
#include "perf/chain_swtpm.h"

namespace assay::perf {
namespace {

constexpr double kRoutineAim = 3.6, kTokenAim = 5.2;
constexpr auto kSettle = std::chrono::milliseconds(60);  // verdict rows are gathered for 20 ms, then written

struct Series {
  std::string name;
  double aim;
  std::function<double()> measure;  // CPU nanoseconds
  std::vector<double> in_v;
};

void MeasureAll(std::vector<Series>& all, const Yardstick& yardstick, int runs) {
  for (auto& series : all) (void)series.measure();  // caches warm, sizes known
  for (int run = 0; run < runs; ++run) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      Series& series = all[run % 2 == 0 ? i : all.size() - 1 - i];
      const double v = yardstick.Measure();
      series.in_v.push_back(series.measure() / v);
    }
  }
}

// All machines over their own kept connection: every request is written before a reply is read.
class Outside {
 public:
  Outside(const Site& site, const Daemon& daemon, std::vector<Machine>& machines)
      : site_policy_(site.Policy()),
        daemon_(daemon),
        machines_(machines),
        context_(TrustOnly(site.path("tls/cert.pem"))) {
    for (const auto& machine : machines_) {
      connections_.push_back(std::make_unique<Connection>(daemon.port(), context_.get()));
      connections_.back()->Send(route::kChallenge, EncodeChallengeRequest({machine.attester()}));
      next_.push_back(DecodeChallenge(connections_.back()->Receive()).value());
    }
  }
  double Round(bool with_token) {
    std::vector<Buffer> bodies;
    for (std::size_t i = 0; i < machines_.size(); ++i) {
      bodies.push_back(machines_[i].Answer(next_[i], connections_[i]->channel(),
                                           with_token ? std::optional(AskForToken(site_policy_)) : std::nullopt));
    }
    const double start = daemon_.CpuNanoseconds();
    for (std::size_t i = 0; i < machines_.size(); ++i) connections_[i]->Send(route::kAttest, bodies[i]);
    for (std::size_t i = 0; i < machines_.size(); ++i) next_[i] = Accept(connections_[i]->Receive(), with_token);
    std::this_thread::sleep_for(kSettle);
    return (daemon_.CpuNanoseconds() - start) / static_cast<double>(machines_.size());
  }

 private:
  const config::Policy site_policy_;
  const Daemon& daemon_;
  std::vector<Machine>& machines_;
  Handle<SSL_CTX, SSL_CTX_free> context_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Challenge> next_;  // of each machine
};

Sample Percentile(std::vector<double> values, double share) {
  Sample out = Summarise(values);
  std::sort(values.begin(), values.end());
  out.median = values[static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1];
  return out;
}

int Main(int argc, char** argv) {
  Group group("chain", argc, argv);
  const std::size_t count = group.quick() ? 6 : 128;
  const auto tpm = test::Swtpm::Make();
  Expect(tpm.ok(), "no software TPM: is swtpm installed? See scripts/install-deps");
  const Site site((*tpm)->manufacturer().root_pem, (*tpm)->manufacturer().issuer_pem);
  std::vector<Machine> machines;
  for (std::size_t n = 0; n < count; ++n) machines.emplace_back(n);
  Enroll(*store::SqliteStore::Open({.path = site.path("state/store.sqlite")}).value(), machines);
  const Daemon daemon(site);
  Outside outside(site, daemon, machines);
  Inside inside(site, machines);
  const Yardstick yardstick;

  std::vector<Series> all;
  all.push_back({"re-attestation through the daemon, routine", kRoutineAim, [&] { return outside.Round(false); }, {}});
  all.push_back(
      {"re-attestation through the daemon, with result token", kTokenAim, [&] { return outside.Round(true); }, {}});
  all.push_back({"re-attestation in process, routine", -1, [&] { return inside.Round(false); }, {}});
  all.push_back({"re-attestation in process, with result token", -1, [&] { return inside.Round(true); }, {}});
  for (auto& part : inside.Parts()) all.push_back({part.name, -1, std::move(part.measure), {}});
  MeasureAll(all, yardstick, group.runs());
  for (const auto& series : all) group.Report({series.name, "V", Summarise(series.in_v), series.aim, Better::kLower});
  std::vector<double> transport;
  for (std::size_t run = 0; run < all[0].in_v.size(); ++run) transport.push_back(all[0].in_v[run] - all[2].in_v[run]);
  group.Report(
      {"part: TLS, HTTP, threads (daemon less in process)", "V", Summarise(std::move(transport)), -1, Better::kLower});

  const RoundTrips trips = MeasureRoundTrips(**tpm, site, daemon.port(), group.quick() ? 2 : 200);
  group.Report({"swtpm round trip: attest, p50", "ms", Percentile(trips.attest_ms, 0.5), -1, Better::kLower});
  group.Report({"swtpm round trip: attest, p99", "ms", Percentile(trips.attest_ms, 0.99), -1, Better::kLower});
  group.Report({"swtpm round trip: enroll, p50", "ms", Percentile(trips.enroll_ms, 0.5), -1, Better::kLower});
  group.Report({"swtpm round trip: enroll, p99", "ms", Percentile(trips.enroll_ms, 0.99), -1, Better::kLower});
  return group.Print();
}

}  // namespace
}  // namespace assay::perf

int main(int argc, char** argv) { return assay::perf::Main(argc, argv); }
