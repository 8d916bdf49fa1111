// SPDX-License-Identifier: Apache-2.0
#include "enroll/certificates.h"

#include <algorithm>

#include "sdk/config/files.h"
#include "sdk/core/limits.h"

namespace assay::enroll {
namespace {

constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
constexpr std::size_t kMaxFile = 256U << 10;
constexpr std::size_t kPemLine = 64;  // RFC 7468 section 2

// The text between the armour lines. RFC 4648 section 4 to the URL-safe alphabet that the decoder takes.
Result<Buffer> DecodeBlock(std::string_view block) {
  std::string text;
  for (const char c : block) {
    if (c == '\n' || c == '\r' || c == ' ' || c == '\t' || c == '=') continue;
    text += c == '+' ? '-' : c == '/' ? '_' : c == '-' || c == '_' ? '!' : c;
  }
  return FromBase64Url(text);
}

}  // namespace

std::vector<Buffer> SplitCertificates(Bytes concatenated) {
  std::vector<Buffer> out;
  Reader reader(concatenated);
  while (out.size() < limits::kIntermediates && reader.remaining() >= 4) {
    const Bytes rest = reader.Rest();
    if (rest[0] != 0x30 || rest[1] != 0x82) break;  // a certificate is over 255 bytes: the two-octet form
    const std::size_t size = 4 + (static_cast<std::size_t>(rest[2]) << 8) + rest[3];
    if (size > reader.remaining() || size > limits::kCertificate) break;
    out.push_back(ToBuffer(reader.Take(size)));
  }
  return out;
}

Result<std::vector<Buffer>> ReadCertificateFile(const std::string& path) {
  ASSAY_TRY(const Buffer content, config::ReadFile(path, kMaxFile));
  std::string_view text = AsText(content);
  std::vector<Buffer> out;
  while (true) {
    const std::size_t begin = text.find(kBegin);
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin + kBegin.size());
    const std::size_t end = text.find(kEnd);
    Result<Buffer> der =
        end == std::string_view::npos ? MakeError(Code::kMalformed, "no end line") : DecodeBlock(text.substr(0, end));
    if (!der.ok())
      return MakeError(Code::kMalformed, path + ": certificate " + std::to_string(out.size() + 1) + " is no PEM (" +
                                             der.error().detail + ")");
    out.push_back(std::move(*der));
    text.remove_prefix(end + kEnd.size());
  }
  if (out.empty() && !content.empty() && (content[0] == 0x30 || content[0] == 0x10)) out.push_back(content);
  if (out.empty()) return MakeError(Code::kMalformed, path + ": neither PEM nor DER");
  return out;
}

std::string CertificatePem(Bytes der) {
  const std::string text = ToBase64(der);
  std::string pem(kBegin);
  for (std::size_t at = 0; at < text.size(); at += kPemLine) pem += "\n" + text.substr(at, kPemLine);
  return pem + "\n" + std::string(kEnd) + "\n";
}

}  // namespace assay::enroll
