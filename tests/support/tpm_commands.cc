// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tpm_commands.h"

namespace assay::test {
namespace {

constexpr std::uint16_t kNoSessions = 0x8001, kSessions = 0x8002;
constexpr std::uint32_t kPassword = 0x40000009, kOwner = 0x40000001, kLockout = 0x4000000A;

// Part 1, section 18: header, handles, authorization area, parameters.
Buffer Encode(std::uint32_t code, std::uint32_t authorized_by, Bytes parameters) {
  Writer body;
  if (authorized_by != UINT32_MAX) {
    body.U32Be(authorized_by);
    body.U32Be(9);  // one authorization: handle, empty nonce, attributes, empty password
    body.U32Be(kPassword);
    body.U16Be(0);
    body.U8(0);
    body.U16Be(0);
  }
  body.Put(parameters);
  Writer out;
  out.U16Be(authorized_by != UINT32_MAX ? kSessions : kNoSessions);
  out.U32Be(static_cast<std::uint32_t>(10 + body.size()));
  out.U32Be(code);
  out.Put(body.buffer());
  return std::move(out).Take();
}

// The answer's parameters; empty for an answer with sessions, whose parameters nobody here wants.
Result<Buffer> Run(const Swtpm& tpm, const Buffer& command) {
  ASSAY_TRY(const Buffer answer, tpm.Transmit(command));
  Reader in(answer);
  in.Skip(6);
  const std::uint32_t rc = in.U32Be();
  if (!in.ok()) return MakeError(Code::kMalformed, "a TPM's answer is shorter than a header");
  if (rc != 0) return MakeError(Code::kTpm, "the TPM refused a test's command", rc);
  return ToBuffer(in.Rest());
}

}  // namespace

Status TpmShutdown(const Swtpm& tpm) {
  Writer parameters;
  parameters.U16Be(0);  // TPM_SU_CLEAR
  ASSAY_CHECK_OK(Run(tpm, Encode(0x145, UINT32_MAX, parameters.buffer())));
  return Ok();
}

Result<std::vector<std::uint32_t>> TpmHandles(const Swtpm& tpm, std::uint32_t range) {
  Writer parameters;
  parameters.U32Be(1);  // TPM_CAP_HANDLES
  parameters.U32Be(range);
  parameters.U32Be(64);
  ASSAY_TRY(const Buffer answer, Run(tpm, Encode(0x17A, UINT32_MAX, parameters.buffer())));
  Reader in(answer);
  in.Skip(1 + 4);  // moreData, capability
  std::vector<std::uint32_t> handles;
  for (std::uint32_t left = in.U32Be(); left > 0 && in.ok(); --left) handles.push_back(in.U32Be());
  ASSAY_CHECK_OK(in.Finish("TPMS_CAPABILITY_DATA"));
  return handles;
}

Status TpmExtend(const Swtpm& tpm, std::uint8_t pcr, const Digest& digest) {
  Writer parameters;
  parameters.U32Be(1);
  parameters.U16Be(0x000B);
  parameters.Put(digest);
  ASSAY_CHECK_OK(Run(tpm, Encode(0x182, pcr, parameters.buffer())));
  return Ok();
}

Status TpmClockSet(const Swtpm& tpm, std::uint64_t clock_ms) {
  Writer parameters;
  parameters.U64Be(clock_ms);
  ASSAY_CHECK_OK(Run(tpm, Encode(0x128, kOwner, parameters.buffer())));
  return Ok();
}

Status TpmClear(const Swtpm& tpm) {
  ASSAY_CHECK_OK(Run(tpm, Encode(0x126, kLockout, {})));
  return Ok();
}

}  // namespace assay::test
