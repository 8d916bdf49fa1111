// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_device.h"

#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <bit>
#include <cstdlib>

#include "sdk/config/files.h"
#include "tests/support/forge.h"

namespace assay::test {
namespace {

constexpr std::size_t kSizeField = 2;  // of a TPM2B

// A template with its unique field replaced by the key's own.
Buffer WithUnique(Bytes area_template, const PublicKey& key) {
  const tpm::PublicArea decoded = tpm::DecodePublicArea(area_template).value();
  const bool rsa = decoded.type == tpm::Alg::kRsa;
  const std::size_t unique =
      rsa ? kSizeField + decoded.rsa_modulus.size() : 2 * kSizeField + decoded.ecc_x.size() + decoded.ecc_y.size();
  Writer out;
  out.Put(area_template.first(area_template.size() - unique));
  if (rsa) {
    out.PutU16Sized(key.Rsa().value().modulus);
  } else {
    out.PutU16Sized(key.Point().value().x);
    out.PutU16Sized(key.Point().value().y);
  }
  return std::move(out).Take();
}

SignatureScheme SchemeOf(tpm::AikKind kind) {
  switch (kind) {
    case tpm::AikKind::kRsaSsa: return SignatureScheme::kRsaSsaSha256;
    case tpm::AikKind::kRsaPss: return SignatureScheme::kRsaPssSha256;
    case tpm::AikKind::kEccP256: return SignatureScheme::kEcdsaP256Sha256;
  }
  std::abort();
}

Error NoHandle(std::uint32_t handle) {
  return MakeError(Code::kNotFound, "the fake TPM holds nothing at handle " + std::to_string(handle));
}

Result<Secret> RsaOaepDecrypt(const PrivateKey& key, Bytes ciphertext) {
  EvpPkeyCtx ctx(EVP_PKEY_CTX_new(key.get(), nullptr));
  static constexpr char kLabel[] = "IDENTITY";  // with its terminating zero: Part 1 section 24.4
  void* label = OPENSSL_memdup(kLabel, sizeof kLabel);
  if (EVP_PKEY_decrypt_init(ctx.get()) != 1 || EVP_PKEY_CTX_set_rsa_padding(ctx.get(), RSA_PKCS1_OAEP_PADDING) != 1 ||
      EVP_PKEY_CTX_set_rsa_oaep_md(ctx.get(), EVP_sha256()) != 1 ||
      EVP_PKEY_CTX_set_rsa_mgf1_md(ctx.get(), EVP_sha256()) != 1 ||
      EVP_PKEY_CTX_set0_rsa_oaep_label(ctx.get(), label, sizeof kLabel) != 1) {
    OPENSSL_free(label);
    return MakeError(Code::kCrypto, OpenSslErrorText());
  }
  Buffer plain(512);
  std::size_t size = plain.size();
  if (EVP_PKEY_decrypt(ctx.get(), plain.data(), &size, ciphertext.data(), ciphertext.size()) != 1) {
    return MakeError(Code::kTpm, "TPM_RC_VALUE: " + OpenSslErrorText());
  }
  return Secret::CopyOf(Bytes(plain).first(size));
}

Buffer AesCfbDecrypt(Bytes key, Bytes ciphertext) {
  const Handle<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free> ctx(EVP_CIPHER_CTX_new());
  const Buffer iv(16, 0);
  Buffer out(ciphertext.size());
  int size = 0;
  if (EVP_DecryptInit_ex(ctx.get(), EVP_aes_128_cfb128(), nullptr, key.data(), iv.data()) != 1 ||
      EVP_DecryptUpdate(ctx.get(), out.data(), &size, ciphertext.data(), static_cast<int>(ciphertext.size())) != 1) {
    std::abort();
  }
  return out;
}

}  // namespace

FakeDevice::FakeDevice(std::string state_path) : state_path_(std::move(state_path)) {
  const auto bytes = config::ReadFile(state_path_, 4096);
  if (!bytes.ok()) return;
  Reader in(*bytes);
  clock.clock = in.U64Le();
  clock.reset_count = in.U32Le();
  clock.restart_count = in.U32Le();
  clock.safe = in.U8() == 1;
  for (Digest& pcr : pcrs) CopyBytes(in.Take(kSha256Size), pcr);
  if (!in.Finish("the fake TPM's state").ok()) std::abort();
}

void FakeDevice::Save() const {
  if (state_path_.empty()) return;
  Writer out;
  out.U64Le(clock.clock);
  out.U32Le(clock.reset_count);
  out.U32Le(clock.restart_count);
  out.U8(clock.safe ? 1 : 0);
  for (const Digest& pcr : pcrs) out.Put(pcr);
  if (!config::WriteFileAtomic(state_path_, out.buffer(), 0600).ok()) std::abort();
}

Status FakeDevice::Begin(std::string_view command) {
  commands.emplace_back(command);
  clock.clock += 5;
  return before ? before(command) : Ok();
}

void FakeDevice::Reboot() {
  pcrs = {};
  ++clock.reset_count;
  clock.restart_count = 0;
  Save();
}

void FakeDevice::Hibernate() {
  pcrs = {};
  ++clock.restart_count;
  Save();
}

PublicKey FakeDevice::MakeAik(tpm::AikKind kind, std::uint32_t handle) {
  const tpm::CreatedKey created = CreateAik(kind, RandomArray<32>()).value();
  if (!Persist(created.handle, handle).ok() || !FlushTransient(created.handle).ok()) std::abort();
  return Find(handle)->key.Public().value();
}

const FakeDevice::Key* FakeDevice::Find(std::uint32_t handle) const {
  const auto found = handles_.find(handle);
  return found == handles_.end() ? nullptr : found->second.get();
}

Result<tpm::CreatedKey> FakeDevice::Add(KeyPtr key) {
  tpm::CreatedKey created;
  created.handle = next_transient_++;
  created.public_area = key->area;
  created.creation_hash = ToBuffer(key->creation);
  Writer ticket;  // TPMT_TK_CREATION: tag, hierarchy, digest
  ticket.U16Be(0x8021);
  ticket.U32Be(0x4000000B);
  ticket.PutU16Sized(Sha256(key->area));
  created.creation_ticket = std::move(ticket).Take();
  handles_[created.handle] = std::move(key);
  return created;
}

Result<Buffer> FakeDevice::ReadNv(std::uint32_t index) {
  ASSAY_CHECK_OK(Begin("ReadNv"));
  const auto found = nv.find(index);
  if (found == nv.end()) return NoHandle(index);
  ASSAY_CHECK_OK(End("ReadNv"));
  return found->second;
}

Result<tpm::CreatedKey> FakeDevice::CreateEk(tpm::EkKind kind) {
  ASSAY_CHECK_OK(Begin("CreateEk"));
  const bool rsa = kind == tpm::EkKind::kRsa2048Low || kind == tpm::EkKind::kRsa2048High;
  if (kind == tpm::EkKind::kEccP384High) return MakeError(Code::kUnsupported, "the fake TPM makes no P-384 keys");
  KeyPtr& key = primaries_[tpm::EkTemplate(kind)];
  if (key == nullptr) {
    ASSAY_TRY(PrivateKey made, PrivateKey::Generate(rsa ? KeyType::kRsa2048 : KeyType::kP256));
    ASSAY_TRY(const PublicKey public_key, made.Public());
    ASSAY_TRY(Buffer area, tpm::EkPublicArea(kind, public_key));
    const Digest creation = Sha256(area);
    key = std::make_shared<Key>(Key{std::move(made), SignatureScheme::kRsaSsaSha256, std::move(area), creation});
  }
  ASSAY_CHECK_OK(End("CreateEk"));
  return Add(key);
}

Result<tpm::CreatedKey> FakeDevice::CreateAik(tpm::AikKind kind, Bytes unique) {
  ASSAY_CHECK_OK(Begin("CreateAik"));
  const Buffer area_template = tpm::AikTemplate(kind, unique);
  KeyPtr& key = primaries_[area_template];
  if (key == nullptr) {
    ASSAY_TRY(PrivateKey made,
              PrivateKey::Generate(kind == tpm::AikKind::kEccP256 ? KeyType::kP256 : KeyType::kRsa2048));
    ASSAY_TRY(const PublicKey public_key, made.Public());
    Buffer area = WithUnique(area_template, public_key);
    const Digest creation = Sha256(area);
    key = std::make_shared<Key>(Key{std::move(made), SchemeOf(kind), std::move(area), creation});
  }
  ASSAY_CHECK_OK(End("CreateAik"));
  return Add(key);
}

Status FakeDevice::Persist(std::uint32_t transient, std::uint32_t persistent) {
  ASSAY_CHECK_OK(Begin("Persist"));
  const auto found = handles_.find(transient);
  if (found == handles_.end()) return NoHandle(transient);
  handles_[persistent] = found->second;
  return End("Persist");
}

Status FakeDevice::RemovePersistent(std::uint32_t persistent) {
  ASSAY_CHECK_OK(Begin("RemovePersistent"));
  if (handles_.erase(persistent) == 0) return NoHandle(persistent);
  return End("RemovePersistent");
}

Result<Buffer> FakeDevice::ReadPublic(std::uint32_t handle) {
  ASSAY_CHECK_OK(Begin("ReadPublic"));
  const Key* key = Find(handle);
  if (key == nullptr) return NoHandle(handle);
  ASSAY_CHECK_OK(End("ReadPublic"));
  return key->area;
}

// Part 1 section 24: the seed under the EK, then integrity and storage keys from it, bound to the AIK's Name.
Result<Secret> FakeDevice::ActivateCredential(std::uint32_t aik, std::uint32_t ek, Bytes credential_blob,
                                              Bytes encrypted_secret) {
  ASSAY_CHECK_OK(Begin("ActivateCredential"));
  const Key* aik_key = Find(aik);
  const Key* ek_key = Find(ek);
  if (aik_key == nullptr || ek_key == nullptr) return NoHandle(aik_key == nullptr ? aik : ek);
  ASSAY_TRY(const Bytes seed_box, tpm::UnwrapTpm2b(encrypted_secret, limits::kCredentialBlob, "an encrypted secret"));
  ASSAY_TRY(const Bytes id_object, tpm::UnwrapTpm2b(credential_blob, limits::kCredentialBlob, "an identity object"));
  ASSAY_TRY(const Secret seed, RsaOaepDecrypt(ek_key->key, seed_box));
  ASSAY_TRY(const Buffer name, tpm::ObjectName(aik_key->area));
  Reader in(id_object);
  const Bytes mac = in.TakeU16Sized(kSha256Size);
  const Bytes encrypted = in.Rest();
  const Secret hmac_key = KdfaSha256(seed.view(), "INTEGRITY", {}, {}, 256);
  if (!in.ok() || !Equal(mac, HmacSha256(hmac_key.view(), {encrypted, name})))
    return MakeError(Code::kTpm, "TPM_RC_INTEGRITY: not for this AIK");
  const Secret aes_key = KdfaSha256(seed.view(), "STORAGE", name, {}, 128);
  const Buffer plain = AesCfbDecrypt(aes_key.view(), encrypted);
  ASSAY_TRY(const Bytes secret, tpm::UnwrapTpm2b(plain, kSha256Size, "a credential"));
  ASSAY_CHECK_OK(End("ActivateCredential"));
  return Secret::CopyOf(secret);
}

Result<tpm::AttestedBytes> FakeDevice::CertifyCreation(std::uint32_t aik, const tpm::CreatedKey& object,
                                                       Bytes qualifying) {
  ASSAY_CHECK_OK(Begin("CertifyCreation"));
  const Key* key = Find(aik);
  const Key* made = Find(object.handle);
  if (key == nullptr || made == nullptr) return NoHandle(key == nullptr ? aik : object.handle);
  if (!Equal(object.creation_hash, made->creation))
    return MakeError(Code::kTpm, "TPM_RC_TICKET: the ticket is of another object");
  ASSAY_TRY(const Buffer signer, tpm::ObjectName(key->area));
  ASSAY_TRY(const Buffer name, tpm::ObjectName(made->area));
  Writer out;
  out.U32Be(tpm::kGenerated);
  out.U16Be(static_cast<std::uint16_t>(tpm::AttestType::kCreation));
  out.PutU16Sized(signer);
  out.PutU16Sized(qualifying);
  out.U64Be(clock.clock);
  out.U32Be(clock.reset_count);
  out.U32Be(clock.restart_count);
  out.U8(clock.safe ? 1 : 0);
  out.U64Be(1);
  out.PutU16Sized(name);
  out.PutU16Sized(made->creation);
  tpm::AttestedBytes attested{std::move(out).Take(), {}};
  ASSAY_TRY(const Buffer raw, key->key.SignDigest(key->scheme, Sha256(attested.attest)));
  attested.signature = EncodeSignature(key->scheme, raw);
  ASSAY_CHECK_OK(End("CertifyCreation"));
  return attested;
}

Result<std::vector<Digest>> FakeDevice::ReadPcrs(tpm::PcrSelection selection) {
  ASSAY_CHECK_OK(Begin("ReadPcrs"));
  std::vector<Digest> values;
  if (selection.hash == tpm::Alg::kSha256) {
    for (std::size_t pcr = 0; pcr < pcrs.size(); ++pcr)
      if ((selection.mask & (1U << pcr)) != 0) values.push_back(pcrs[pcr]);
  }
  ASSAY_CHECK_OK(End("ReadPcrs"));
  return values;
}

Result<tpm::QuoteResult> FakeDevice::Quote(std::uint32_t aik, tpm::PcrSelection selection, const Digest& extra_data) {
  ASSAY_CHECK_OK(Begin("Quote"));
  const Key* key = Find(aik);
  if (key == nullptr) return NoHandle(aik);
  if (selection.hash != tpm::Alg::kSha256) return MakeError(Code::kUnsupported, "the fake TPM has a SHA-256 bank only");
  tpm::QuoteResult quote;
  Writer joined;
  for (std::size_t pcr = 0; pcr < pcrs.size(); ++pcr) {
    if ((selection.mask & (1U << pcr)) == 0) continue;
    quote.pcrs.push_back(pcrs[pcr]);
    joined.Put(pcrs[pcr]);
  }
  QuoteFields fields;
  fields.extra_data = extra_data;
  fields.clock = clock;
  fields.selections = {selection};
  fields.pcr_digest = Sha256(joined.buffer());
  quote.attest = EncodeQuote(fields);
  ASSAY_TRY(const Buffer raw, key->key.SignDigest(key->scheme, Sha256(quote.attest)));
  quote.signature = EncodeSignature(key->scheme, raw);
  ASSAY_CHECK_OK(End("Quote"));
  return quote;
}

Status FakeDevice::ExtendPcr(std::uint8_t pcr, const Digest& digest) {
  ASSAY_CHECK_OK(Begin("ExtendPcr"));
  if (pcr >= pcrs.size()) return MakeError(Code::kTpm, "there is no such PCR");
  pcrs[pcr] = Sha256({Bytes(pcrs[pcr]), Bytes(digest)});
  Save();
  return End("ExtendPcr");
}

Result<tpm::ClockInfo> FakeDevice::ReadClock() {
  ASSAY_CHECK_OK(Begin("ReadClock"));
  ASSAY_CHECK_OK(End("ReadClock"));
  return clock;
}

Status FakeDevice::FlushTransient(std::uint32_t handle) {
  ASSAY_CHECK_OK(Begin("FlushTransient"));
  if (handles_.erase(handle) == 0) return NoHandle(handle);
  return End("FlushTransient");
}

Result<Buffer> FakeDevice::Random(std::size_t size) {
  ASSAY_CHECK_OK(Begin("Random"));
  Buffer out(size);
  RandomBytes(out);
  return out;
}

Result<std::vector<std::pair<std::string, std::string>>> FakeDevice::Describe() {
  ASSAY_CHECK_OK(Begin("Describe"));
  return std::vector<std::pair<std::string, std::string>>{
      {"manufacturer", "FAKE"}, {"firmware_version", "1"}, {"in_lockout", "no"}};
}

}  // namespace assay::test
