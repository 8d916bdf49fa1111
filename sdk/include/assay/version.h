/* SPDX-License-Identifier: Apache-2.0 */
/* Version of the headers, and of the library that is loaded. One soname a major version. */
#ifndef ASSAY_VERSION_H
#define ASSAY_VERSION_H

#define ASSAY_VERSION_MAJOR 0
#define ASSAY_VERSION_MINOR 1
#define ASSAY_VERSION_PATCH 0
#define ASSAY_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#define ASSAY_API __attribute__((visibility("default")))
#else
#define ASSAY_API
#endif

#ifdef __cplusplus
#define ASSAY_NOEXCEPT noexcept
extern "C" {
#else
#define ASSAY_NOEXCEPT
#endif

/* "MAJOR.MINOR.PATCH" of the library. Static storage: never freed. */
ASSAY_API const char* assay_version(void) ASSAY_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
