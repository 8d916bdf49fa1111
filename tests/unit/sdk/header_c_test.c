/* SPDX-License-Identifier: Apache-2.0 */
/* The public headers as C11 alone: compiled, and called from header_test.cc. */
#include <assay/client.h>
#include <assay/errors.h>
#include <assay/server.h>
#include <assay/version.h>

int assay_test_from_c(void);

int assay_test_from_c(void) {
  assay_result_options options = {.struct_size = sizeof(options)};
  assay_result result;
  assay_keyset* keys = NULL;
  assay_client* client = NULL;
  if (assay_keyset_parse("[]", 2, &keys) != ASSAY_E_MALFORMED) return 1;
  if (assay_verify_result_token(keys, "a.b.c", 5, &options, &result) != ASSAY_E_ARGUMENT) return 2;
  if (result.code != ASSAY_E_ARGUMENT || result.tier != ASSAY_TIER_NONE) return 3;
  if (assay_client_open(NULL, &client) != ASSAY_OK) return 4;
  assay_client_close(client);
  return assay_version()[0] == '0' ? 0 : 5;
}
