// SPDX-License-Identifier: Apache-2.0
// Enrollment tickets: what comes back from an endpoint, and the plain content under the seal.
#include <cstdint>
#include <cstdlib>

#include "verifier/enrollment/ticket.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace assay;
  using namespace assay::enrollment;
  static const TicketSealer sealer;
  const Bytes input(data, size);
  if (sealer.Open(input, 0).outcome == TicketOutcome::kOpened) std::abort();  // nobody else has the key
  const Result<TicketContent> content = DecodeTicketContent(input);
  if (!content.ok()) return 0;
  if (!Equal(EncodeTicketContent(*content), input)) std::abort();  // one encoding
  const Result<Buffer> sealed = sealer.Seal(*content);
  if (!sealed.ok()) return 0;
  const OpenedTicket opened = sealer.Open(*sealed, INT64_MIN);
  if (opened.outcome != TicketOutcome::kOpened || !Equal(EncodeTicketContent(opened.content), input)) std::abort();
  return 0;
}
