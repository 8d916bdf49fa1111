// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/app.h"

#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "sdk/config/files.h"
#include "verifier/audit/file_log.h"
#include "verifier/enrollment/begin_limits.h"
#include "verifier/enrollment/ca.h"
#include "verifier/server/attestation.h"
#include "verifier/server/audit_records.h"
#include "verifier/server/key_files.h"
#include "verifier/server/routes_enroll.h"
#include "verifier/server/routes_operator.h"
#include "verifier/server/routes_public.h"
#include "verifier/server/transport.h"
#include "verifier/server/work_pool.h"
#include "verifier/store/sqlite_store.h"

namespace assay::server {
namespace {

constexpr std::size_t kCachedAiks = 1U << 16;
constexpr unsigned kWorkers = 2;
constexpr std::size_t kWorkQueue = 1024;
constexpr std::size_t kOperatorQueue = 4096;  // above the transport's limit of operator connections: never full

std::uint64_t NowMs() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

// For limits: a clock that is set back must not hold enrollments up.
std::int64_t SteadyMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::optional<std::uint32_t> GroupId(const std::string& name) {
  const struct group* found = name.empty() ? nullptr : ::getgrnam(name.c_str());
  return found == nullptr ? std::nullopt : std::optional<std::uint32_t>(found->gr_gid);
}

TransportSettings TransportSettingsOf(const config::VerifierConfig& config) {
  return {.address = config.listen_address,
          .port = config.listen_port,
          .tls_certificate = config.tls_certificate,
          .tls_key = config.tls_key,
          .operator_socket = config.operator_socket,
          .operator_group = config.operator_group,
          .balancers = config.balancers,
          .threads = config.threads,
          .max_connections = config.max_connections,
          .max_connections_per_source = config.max_connections_per_source,
          .max_handshakes = config.max_handshakes,
          .max_large_bodies = config.max_large_bodies,
          .max_large_bodies_per_source = config.max_large_bodies_per_source,
          .handshake_timeout_ms = config.handshake_timeout_ms,
          .header_timeout_ms = config.header_timeout_ms,
          .body_timeout_ms = config.body_timeout_ms,
          .handler_timeout_ms = config.handler_timeout_ms,
          .write_timeout_ms = config.write_timeout_ms,
          .idle_timeout_ms = config.idle_timeout_ms};
}

std::string PolicyId(const config::Policy& policy) { return "sha256:" + ToHex(policy.digest); }

Result<LoadedPolicy> LoadWholePolicy(const config::VerifierConfig& config) {
  ASSAY_TRY(config::Policy policy, config::LoadPolicy(config.policy));
  ASSAY_TRY(auto enrollment,
            enrollment::EnrollmentPolicyOf(policy, static_cast<std::int64_t>(config.aik_lifetime_ms / 1000)));
  return LoadedPolicy{std::move(policy), std::move(enrollment)};
}

// The last accepted counters of each host: the store's rows, and over them what the verified trail says, record by
// record. The trail wins: a restored older store reopens no fence, and brings no AIK back that a later one replaced.
struct RestoredClocks {
  std::map<Digest, tpm::ClockInfo> last;
  std::map<Digest, std::uint64_t> generations;  // highest that attested since the host was last forgotten
  std::optional<Error> fault;

  void Visit(std::uint64_t sequence, std::string_view record) {
    FenceMark mark;
    const auto kind = ReadFenceMark(record, mark);
    if (!kind.ok() && !fault)
      fault = MakeError(kind.error().code, "audit record " + std::to_string(sequence) + ": " + kind.error().detail);
    if (kind.ok() && *kind == MarkKind::kForgotten) generations.erase(mark.host);
    if (!kind.ok() || *kind != MarkKind::kFence) return;
    last[mark.host] = mark.clock;
    generations[mark.host] = std::max(generations[mark.host], mark.generation);
  }
};

// The log and what is measured of it.
struct Trail {
  std::unique_ptr<Histogram> barriers = std::make_unique<Histogram>(
      std::vector<double>{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5});
  std::unique_ptr<Histogram> batches =
      std::make_unique<Histogram>(std::vector<double>{1, 2, 4, 8, 16, 32, 64, 128, 256, 1024});
  std::unique_ptr<audit::FileAuditLog> log;  // last: its thread writes to the others
};

Result<Trail> OpenTrail(const config::VerifierConfig& config, store::Store& store, RestoredClocks& clocks) {
  ASSAY_TRY(const std::vector<store::ClockRow> rows, store.Clocks());
  for (const auto& row : rows) {
    clocks.last[row.host_id] = {
        .clock = row.clock_ms, .reset_count = row.reset_count, .restart_count = row.restart_count, .safe = true};
  }
  const std::string key_file = config.keys_dir + "/audit.key";
  const bool first_start = ::access(key_file.c_str(), F_OK) != 0;
  ASSAY_TRY(audit::AuditKeys keys, first_start ? audit::AuditKeys::Create(key_file) : audit::AuditKeys::Load(key_file));
  audit::LogOptions options;
  options.directory = config.state_dir + "/audit";
  ASSAY_TRY(options.acknowledged, store.AuditMark());
  options.visit = [&clocks](const audit::RecordView& record) { clocks.Visit(record.sequence, record.json); };
  Trail trail;
  options.observe = [barriers = trail.barriers.get(), batches = trail.batches.get()](const audit::BatchSeen& seen) {
    barriers->Observe(seen.barrier_seconds);
    batches->Observe(static_cast<double>(seen.records));
  };
  ASSAY_TRY(trail.log, audit::FileAuditLog::Open(std::move(options), std::move(keys)));
  if (clocks.fault) return *clocks.fault;
  return trail;
}

Status RestoreGenerations(store::Store& store, attest::Fence& fence) {
  constexpr std::size_t kPage = 1000;
  std::optional<Digest> after;
  for (;;) {
    ASSAY_TRY(const std::vector<store::HostRow> hosts, store.ListHosts(after, kPage));
    for (const auto& host : hosts) {
      fence.SetGeneration(host.host_id, host.generation);
      if (host.reset_accepted) fence.AcceptReset(host.host_id, true);
    }
    if (hosts.size() < kPage) return Ok();
    after = hosts.back().host_id;
  }
}

// Members in the order they are built. At the end: the transport takes no more, the closing record waits for every
// completion before it, the work pool finishes what those queued, then all goes in reverse.
class Verifier final : public App {
 public:
  Verifier(const config::VerifierConfig& config, LoadedPolicy policy, std::unique_ptr<store::SqliteStore> store,
           Trail trail, token::ResultIssuer issuer, enrollment::EnrollmentCa ca)
      : config_(config),
        policy_(std::move(policy)),
        store_(std::move(store)),
        trail_(std::move(trail)),
        issuer_(std::move(issuer)),
        ca_(std::move(ca)),
        aiks_(*store_, kCachedAiks),
        verdicts_(*store_),
        limits_({.per_source = static_cast<std::uint32_t>(config.begin_per_source_minute),
                 .per_ek = static_cast<std::uint32_t>(config.begin_per_ek_minute),
                 .global = static_cast<std::uint32_t>(config.begin_global_minute)},
                SteadyMs),
        service_({.store = store_.get(),
                  .ca = &ca_,
                  .tickets = &tickets_,
                  .limits = &limits_,
                  .policy = [this] { return policy_.Enrollment(); },
                  .clock_ms = [] { return static_cast<std::int64_t>(NowMs()); }}),
        attestation_({.aiks = aiks_,
                      .fence = fence_,
                      .challenges = challenges_,
                      .audit = *trail_.log,
                      .verdicts = verdicts_,
                      .policy = policy_,
                      .issuer = issuer_,
                      .consent_used = [this](const Digest& host,
                                             std::function<void()> then) { ForgetConsent(host, std::move(then)); }},
                     {.challenge_lifetime_ms = config.challenge_lifetime_ms,
                      .reattest_interval_ms = config.reattest_interval_ms,
                      .now_ms = NowMs}),
        enroll_({.service = service_,
                 .attestation = attestation_,
                 .fence = fence_,
                 .aiks = aiks_,
                 .audit = *trail_.log,
                 .work = work_,
                 .now_ms = NowMs}),
        operators_(OperatorDepsOf()),
        public_({.issuer = issuer_,
                 .store = *store_,
                 .ready = [this] { return Readiness(); },
                 .metrics = metrics_,
                 .work = work_,
                 .now_ms = NowMs}) {}

  ~Verifier() override {
    Stop();
    // A log that stopped by a fault may still be failing what it held: its completions use what stands below it, so its
    // thread ends before any member does.
    work_.Finish();
    operator_work_.Finish();
    trail_.log.reset();
  }

  Status Serve() {
    ASSAY_CHECK_OK(RestoreGenerations(*store_, fence_));
    Record("start", "policy " + PolicyId(*policy_.Get()));
    std::vector<Route> routes = enroll_.Routes();
    for (auto& route : operators_.Routes()) routes.push_back(std::move(route));
    for (auto& route : public_.Routes()) routes.push_back(std::move(route));
    routes.push_back({.method = "POST",
                      .path = route::kChallenge,
                      .listener = Listener::kNetwork,
                      .body_limit = limits::kOtherBody,
                      .handler = [this](Request request, Responder respond) {
                        attestation_.HandleChallenge(std::move(request), std::move(respond));
                      }});
    routes.push_back({.method = "POST",
                      .path = route::kAttest,
                      .listener = Listener::kNetwork,
                      .body_limit = limits::kEvidenceBody,
                      .handler = [this](Request request, Responder respond) {
                        attestation_.HandleAttest(std::move(request), std::move(respond));
                      }});
    DescribeMetrics();
    ASSAY_TRY(transport_, Transport::Start(TransportSettingsOf(config_), std::move(routes)));
    AddTransportMetrics(*transport_, metrics_);
    return Ok();
  }

  attest::Fence& fence() { return fence_; }
  std::uint16_t port() const override { return transport_->port(); }

  Status ReloadPolicy() override {
    auto prepared = PreparePolicy();
    if (!prepared.ok()) {
      Record("policy_refused", prepared.error().detail);
      return prepared.error();
    }
    const auto recorded = trail_.log->AppendAndWait(
        EncodeRecord(SystemRecord{"policy_loaded", prepared->old_digest + " -> " + prepared->new_digest, NowMs()}));
    if (!recorded.ok()) return recorded.error();
    prepared->apply();
    return Ok();
  }

  void Stop() override {
    if (transport_ == nullptr || stopped_) return;
    stopped_ = true;
    transport_->Stop(config_.drain_timeout_ms);
    Record("stop", "drained");
  }

 private:
  void Record(std::string_view event, std::string detail) {
    (void)trail_.log->AppendAndWait(
        EncodeRecord(SystemRecord{event, std::move(detail), NowMs()}));  // a stopped log shows in readiness
  }

  Result<PreparedPolicy> PreparePolicy() {
    auto loaded = LoadWholePolicy(config_);
    if (!loaded.ok()) return loaded.error();
    const std::string fresh = PolicyId(loaded->policy);
    auto shared =
        std::make_shared<LoadedPolicy>(*std::move(loaded));  // by the closure alone: functions must be copyable
    return PreparedPolicy{PolicyId(*policy_.Get()), fresh, [this, shared] { policy_.Set(std::move(*shared)); }};
  }

  void ForgetConsent(const Digest& host, std::function<void()> then) {
    const auto work = [this, host, then = std::move(then)] {
      // A store that fails here leaves a consent that a restart would honour once more: the trail shows both uses.
      if (const Status cleared = store_->SetResetAccepted(host, false); !cleared.ok()) store_faults_.Add();
      then();
    };
    if (work_.Run(work) == Queued::kFull) work();
  }

  OperatorDeps OperatorDepsOf() {
    return {.store = *store_,
            .audit = *trail_.log,
            .prepare_policy = [this] { return PreparePolicy(); },
            .accept_reset =
                [this](const Digest& host) {
                  fence_.AcceptReset(host, true);
                  return Ok();
                },
            .host_changed = [this](const Digest& host) { aiks_.ForgetHost(host); },
            .host_forgotten = [this](const Digest& host) { fence_.ForgetEnrollment(host); },
            .status = [this] { return StatusLines(); },
            .operator_gid = operator_gid_,
            .now_ms = NowMs,
            .run =
                [this](std::function<void()> work) {
                  if (operator_work_.Run(work) == Queued::kFull) work();
                }};
  }

  std::vector<std::pair<std::string, std::string>> StatusLines() const {
    const Status ready = Readiness();
    const auto& counts = attestation_.counts();
    return {{"policy", policy_.Get()->name + " " + PolicyId(*policy_.Get())},
            {"ready", ready.ok() ? "yes" : "no: " + ready.error().detail},
            {"affirming", std::to_string(counts.judged_affirming.value())},
            {"warning", std::to_string(counts.judged_warning.value())},
            {"contraindicated", std::to_string(counts.judged_contraindicated.value())},
            {"refused", std::to_string(counts.refused.value())}};
  }

  Status Readiness() const { return trail_.log->Health(); }

  void DescribeTrail() {
    const auto read = [this](std::uint64_t audit::FileAuditLog::Stats::*field) {
      return [this, field] { return static_cast<double>(trail_.log->stats().*field); };
    };
    using Stats = audit::FileAuditLog::Stats;
    metrics_.AddCounter("assay_audit_records_total", "Records made durable.", "", read(&Stats::records));
    metrics_.AddCounter("assay_audit_batches_total", "Barriers that covered them.", "", read(&Stats::batches));
    metrics_.AddCounter("assay_audit_bytes_total", "Bytes of records on disk, frames included.", "",
                        read(&Stats::bytes));
    metrics_.AddCounter("assay_audit_busy_total", "Records refused because the queue was full.", "",
                        read(&Stats::refused));
    metrics_.AddGauge("assay_audit_queue", "Records waiting for the writer.", "", read(&Stats::queued));
    metrics_.AddGauge("assay_audit_segment", "Number of the segment that grows.", "", read(&Stats::segment));
    metrics_.AddHistogram("assay_audit_barrier_seconds", "Write and fdatasync of one batch.", "", *trail_.barriers);
    metrics_.AddHistogram("assay_audit_batch_records", "Records under one barrier.", "", *trail_.batches);
  }

  void DescribeMetrics() {
    const auto& counts = attestation_.counts();
    const auto counter = [this](const char* name, const char* help, const char* labels, const Counter& value) {
      metrics_.AddCounter(name, help, labels, [&value] { return static_cast<double>(value.value()); });
    };
    counter("assay_attestations_total", "Evidence by outcome.", "{outcome=\"affirming\"}", counts.judged_affirming);
    counter("assay_attestations_total", "", "{outcome=\"warning\"}", counts.judged_warning);
    counter("assay_attestations_total", "", "{outcome=\"contraindicated\"}", counts.judged_contraindicated);
    counter("assay_attestations_total", "", "{outcome=\"refused\"}", counts.refused);
    counter("assay_attestations_total", "", "{outcome=\"asked_again\"}", counts.asked_again);
    counter("assay_result_tokens_total", "Result tokens signed.", "", counts.tokens);
    counter("assay_audit_failures_total", "Answers withheld because their record could not be made durable.", "",
            counts.audit_failures);
    const auto& enrolled = enroll_.counts();
    counter("assay_enrollments_total", "Enrollment requests by outcome.", "{outcome=\"begun\"}", enrolled.begun);
    counter("assay_enrollments_total", "", "{outcome=\"completed\"}", enrolled.completed);
    counter("assay_enrollments_total", "", "{outcome=\"renewed\"}", enrolled.renewed);
    counter("assay_enrollments_total", "", "{outcome=\"refused\"}", enrolled.refused);
    metrics_.AddGauge("assay_ready", "1 while the audit trail takes records.", "",
                      [this] { return Readiness().ok() ? 1.0 : 0.0; });
    DescribeTrail();
    counter("assay_store_faults_total", "Store writes that failed where no answer waited for them.", "", store_faults_);
    metrics_.AddGauge("assay_verdict_write_failures", "Store writes of verdict rows that failed in a row.", "",
                      [this] { return static_cast<double>(verdicts_.failures()); });
  }

  const config::VerifierConfig config_;
  const std::optional<std::uint32_t> operator_gid_ = GroupId(config_.operator_group);
  PolicyHolder policy_;
  std::unique_ptr<store::SqliteStore> store_;
  Trail trail_;
  token::ResultIssuer issuer_;
  enrollment::EnrollmentCa ca_;
  store::AikCache aiks_;
  attest::Fence fence_;
  attest::ChallengeKeeper challenges_;
  VerdictWriter verdicts_;
  Counter store_faults_;
  enrollment::TicketSealer tickets_;
  enrollment::BeginLimits limits_;
  enrollment::EnrollmentService service_;
  Attestation attestation_;
  EnrollRoutes enroll_;
  OperatorRoutes operators_;
  MetricsPage metrics_;
  PublicRoutes public_;
  std::unique_ptr<Transport> transport_;
  bool stopped_ = false;
  WorkPool operator_work_{1, kOperatorQueue};  // apart: operators wait for barriers, machines must not wait for them
  WorkPool work_{kWorkers, kWorkQueue};        // last: what it still runs while it ends may use everything above
};

}  // namespace

Result<std::unique_ptr<App>> App::Start(const config::VerifierConfig& config) {
  ASSAY_TRY(LoadedPolicy policy, LoadWholePolicy(config));
  ASSAY_CHECK_OK(config::MakeDirectory(config.state_dir, 0700));
  ASSAY_CHECK_OK(config::MakeDirectory(config.keys_dir, 0700));
  ASSAY_TRY(token::IssuerKeys issuer_keys, LoadOrCreateIssuerKeys(config.keys_dir));
  ASSAY_TRY(token::ResultIssuer issuer, token::ResultIssuer::Create(std::move(issuer_keys), config.issuer));
  ASSAY_TRY(enrollment::EnrollmentCa ca,
            enrollment::EnrollmentCa::LoadOrCreate(config.keys_dir, static_cast<std::int64_t>(NowMs() / 1000)));
  ASSAY_TRY(auto store, store::SqliteStore::Open({.path = config.state_dir + "/store.sqlite"}));
  RestoredClocks clocks;
  ASSAY_TRY(auto trail, OpenTrail(config, *store, clocks));
  auto verifier = std::make_unique<Verifier>(config, std::move(policy), std::move(store), std::move(trail),
                                             std::move(issuer), std::move(ca));
  for (const auto& [host, clock] : clocks.last) verifier->fence().Restore(host, clock);
  for (const auto& [host, generation] : clocks.generations) verifier->fence().SetGeneration(host, generation);
  ASSAY_CHECK_OK(verifier->Serve());
  return std::unique_ptr<App>(std::move(verifier));
}

Status CheckConfiguration(const config::VerifierConfig& config) {
  ASSAY_TRY(const LoadedPolicy policy, LoadWholePolicy(config));
  ASSAY_CHECK_OK(Transport::Check(TransportSettingsOf(config)));
  ASSAY_CHECK_OK(CheckIssuerKeys(config.keys_dir));
  return Ok();
}

}  // namespace assay::server
