// SPDX-License-Identifier: Apache-2.0
// Every HTTP message: the first byte picks the decoder; what decodes must encode to the same bytes.
#include <cstdlib>

#include "sdk/core/protocol.h"

namespace {
template <typename Decode, typename Encode>
void Check(assay::Bytes input, Decode decode, Encode encode) {
  const auto decoded = decode(input);
  if (decoded.ok() && !assay::Equal(encode(*decoded), input)) std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const assay::Bytes input(data + 1, size - 1);
  switch (data[0] % 8) {
    case 0: Check(input, assay::DecodeErrorReply, assay::EncodeErrorReply); break;
    case 1: Check(input, assay::DecodeChallengeRequest, assay::EncodeChallengeRequest); break;
    case 2: Check(input, assay::DecodeChallenge, assay::EncodeChallenge); break;
    case 3: Check(input, assay::DecodeAttestReply, assay::EncodeAttestReply); break;
    case 4: Check(input, assay::DecodeEnrollBegin, assay::EncodeEnrollBegin); break;
    case 5: Check(input, assay::DecodeEnrollChallenge, assay::EncodeEnrollChallenge); break;
    case 6: Check(input, assay::DecodeEnrollComplete, assay::EncodeEnrollComplete); break;
    default: Check(input, assay::DecodeEnrollResult, assay::EncodeEnrollResult); break;
  }
  return 0;
}
