// SPDX-License-Identifier: Apache-2.0
#include "sdk/core/json.h"
#include "sdk/core/token.h"
#include "tests/vectors/groups.h"
#include "verifier/token/bundle.h"
#include "verifier/token/compact.h"
#include "verifier/token/dpop.h"

namespace assay::vectors {
namespace {

// Owns the texts that a request views.
struct Proof {
  std::string proof, method, url, access_token;
  token::ProofRequest request;

  explicit Proof(const Json& input)
      : proof(input.at("proof").get<std::string>()),
        method(input.at("method").get<std::string>()),
        url(input.at("url").get<std::string>()),
        access_token(input.value("accessToken", "")) {
    request = {proof,
               method,
               url,
               access_token,
               input.at("now").get<std::int64_t>(),
               input.value("requireNonce", false),
               input.value("nonces", std::vector<std::string>())};
  }
};

Json Told(const token::ProofCheck& check) {
  if (check.fault != token::ProofFault::kNone) return {{"ok", false}, {"code", token::ProofFaultCode(check.fault)}};
  return {{"ok", true}, {"jkt", check.thumbprint}};
}

std::optional<std::string> Text(const Json& input, const char* name) {
  if (!input.contains(name) || input.at(name).is_null()) return std::nullopt;
  return input.at(name).get<std::string>();
}

}  // namespace

Json DpopVerify(const Json& input) {
  token::MemoryReplayStore replay;
  return Told(token::VerifyProof(Proof(input).request, replay));
}

Json DpopReplay(const Json& input) {
  const Proof proof(input);
  const std::string op = input.at("op").get<std::string>();
  token::MemoryReplayStore replay;
  if (op == "present twice") {
    const auto first = token::VerifyProof(proof.request, replay);
    return {{"first", first.fault == token::ProofFault::kNone},
            {"second", Told(token::VerifyProof(proof.request, replay))}};
  }
  if (op != "same jti, other key") throw std::runtime_error("unknown op: " + op);
  // The same id was used before by another key.
  token::MemoryReplayStore aside;
  const auto seen = token::VerifyProof(proof.request, aside);
  if (!replay.Remember("another key", seen.proof_id, seen.issued_at, proof.request.now))
    throw std::runtime_error("a fresh store refuses");
  return Told(token::VerifyProof(proof.request, replay));
}

Json DpopBinding(const Json& input) {
  const auto bound = Text(input, "cnf_jkt");
  const auto presented = Text(input, "presented_jkt");
  if (token::BindingHolds(bound, presented)) return {{"ok", true}};
  return {{"ok", false}, {"code", "INVALID_TOKEN"}};
}

Json DpopHeader(const Json& input) {
  const std::string header = input.at("DPoP_header").get<std::string>();
  if (token::ProofFromHeader(header)) return {{"ok", true}};
  return {{"ok", false}, {"code", token::ProofFaultCode(token::ProofFault::kMalformed)}};
}

Json Thumbprint(const Json& input) {
  const std::string text = input.at("jwk").dump();
  JsonParser parser(text.size());
  const auto jwk = parser.TryParse(text);
  const auto thumbprint = jwk ? token::JwkThumbprint(*jwk) : std::nullopt;
  if (!thumbprint) return {{"error", "INVALID_JWK"}};
  return {{"jkt", *thumbprint}};
}

Json DeviceBundle(const Json& input) {
  const auto keys = KeySet::ParseJwks(input.at("jwks").dump());
  if (!keys.ok()) throw std::runtime_error(keys.error().ToString());
  const std::string device = input.at("device").get<std::string>();
  const std::string issuer = input.at("issuer").get<std::string>();
  const std::int64_t now = input.at("now").get<std::int64_t>();
  const token::BundleCheck check{device, issuer, now, input.value("skew_s", std::int64_t{30}),
                                 input.value("least_version", std::uint64_t{0})};
  const auto opened = token::OpenBundle(*keys, input.at("bundle").get<std::string>(), check, Zones());
  if (opened.fault != token::BundleFault::kNone) return {{"valid", false}};
  const Json& request = input.at("request");
  const std::string action = request.at("action").get<std::string>();
  const std::string resource = request.at("resource").get<std::string>();
  const auto arguments =
      request.contains("arguments") ? authz::Arguments::Parse(request.at("arguments").dump()) : authz::Arguments();
  if (!arguments) throw std::runtime_error("the arguments are refused");
  const authz::CallFacts facts{now, authz::IpAddress::Parse(request.value("ip", "")), &*arguments};
  return {
      {"valid", true},
      {"decision", token::BundleAnswerName(token::DecideBundle(opened.bundle, {action, resource, facts}, nullptr))}};
}

}  // namespace assay::vectors
