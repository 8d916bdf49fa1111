// SPDX-License-Identifier: Apache-2.0
// Preloaded under a whole daemon: kills it, tears a write or fails one at its n-th call on files of our choice. The
// product has no seam for this. Every call goes to the kernel by syscall(2), so that it works below a sanitizer's own
// wrappers too. ASSAY_FAULT_CONTROL names a file; without that file every call passes. Its text:
//   kill N KINDS          SIGKILL before the N-th call (counted from 1, from the file's appearance)
//   tear N KINDS          the N-th call, when it writes a file, writes half of its bytes; then SIGKILL
//   fail ERRNO N KINDS    from the N-th call on every write and sync fails with ERRNO
// KINDS is a list out of audit (files below a directory audit/), store (store.sqlite and its journals), net (AF_INET
// sockets), reply (what is sent to such a socket behind a sync of the trail). With ASSAY_FAULT_TRACE each counted call appends a line to that file.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum Action { kPass, kKill, kTear, kFail };
struct Order {
  enum Action action;
  int error;
  long at;
  char kinds[64];
};

static atomic_long seen;
static atomic_int trail_synced;  // since there is an order

static int ReadOrder(struct Order* order) {
  const char* path = getenv("ASSAY_FAULT_CONTROL");
  if (path == NULL) return 0;
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[128] = {0};
  const long got = syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  if (got <= 0) return 0;
  order->error = 0;
  if (sscanf(text, "kill %ld %63s", &order->at, order->kinds) == 2) order->action = kKill;
  else if (sscanf(text, "tear %ld %63s", &order->at, order->kinds) == 2) order->action = kTear;
  else if (sscanf(text, "fail %d %ld %63s", &order->error, &order->at, order->kinds) == 3) order->action = kFail;
  else return 0;
  return 1;
}

static const char* KindOf(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  if (length <= 0) return "none";
  path[length] = '\0';
  if (strstr(path, "/audit/") != NULL || (length >= 6 && strcmp(path + length - 6, "/audit") == 0)) return "audit";
  if (strstr(path, "/store.sqlite") != NULL) return "store";
  if (strncmp(path, "socket:", 7) != 0) return "none";
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  if (syscall(SYS_getsockname, fd, &address, &size) != 0) return "none";
  return address.ss_family == AF_INET || address.ss_family == AF_INET6 ? "net" : "none";
}

static void Trace(long number, const char* call, const char* kind) {
  const char* path = getenv("ASSAY_FAULT_TRACE");
  if (path == NULL) return;
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  char line[96];
  const int length = snprintf(line, sizeof line, "%ld %s %s\n", number, call, kind);
  syscall(SYS_write, fd, line, (size_t)length);
  syscall(SYS_close, fd);
}

static void Die(void) {
  syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  for (;;) syscall(SYS_pause);
}

// What is to be done with this call. Nothing is asked of the kernel while there is no order.
static enum Action Judge(int fd, const char* call, int changes_file, int* error) {
  const int saved = errno;
  struct Order order;
  enum Action action = kPass;
  if (ReadOrder(&order)) {
    const char* kind = KindOf(fd);
    if (strcmp(kind, "net") == 0 && strncmp(call, "send", 4) == 0 && strstr(order.kinds, "reply") != NULL &&
        atomic_load(&trail_synced))
      kind = "reply";
    if (strcmp(kind, "audit") == 0 && strcmp(call, "fdatasync") == 0) atomic_store(&trail_synced, 1);
    if (strstr(order.kinds, kind) != NULL) {
      const long number = atomic_fetch_add(&seen, 1) + 1;
      Trace(number, call, kind);
      if (order.action == kKill && number == order.at) Die();
      if (order.action == kTear && number == order.at) action = kTear;
      if (order.action == kFail && number >= order.at && changes_file) action = kFail;
      *error = order.error;
    }
  }
  errno = saved;
  return action;
}

#define REFUSE_OR_PASS(fd, call, changes)                            \
  int fault_error = 0;                                               \
  const enum Action action = Judge(fd, call, changes, &fault_error); \
  if (action == kFail) {                                             \
    errno = fault_error;                                             \
    return -1;                                                       \
  }

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  REFUSE_OR_PASS(fd, "pwrite", 1)
  if (action == kTear) {
    syscall(SYS_pwrite64, fd, bytes, size / 2, at);
    Die();
  }
  return syscall(SYS_pwrite64, fd, bytes, size, at);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) { return pwrite64(fd, bytes, size, at); }

ssize_t write(int fd, const void* bytes, size_t size) {
  REFUSE_OR_PASS(fd, "write", 1)
  if (action == kTear) Die();
  return syscall(SYS_write, fd, bytes, size);
}
int fdatasync(int fd) {
  REFUSE_OR_PASS(fd, "fdatasync", 1)
  if (action == kTear) Die();
  return (int)syscall(SYS_fdatasync, fd);
}
int fsync(int fd) {
  REFUSE_OR_PASS(fd, "fsync", 1)
  if (action == kTear) Die();
  return (int)syscall(SYS_fsync, fd);
}
ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  REFUSE_OR_PASS(fd, "send", 0)
  if (action == kTear) Die();
  return syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
}
ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  REFUSE_OR_PASS(fd, "sendmsg", 0)
  if (action == kTear) Die();
  return syscall(SYS_sendmsg, fd, message, flags);
}
ssize_t recv(int fd, void* bytes, size_t size, int flags) {
  const long got = syscall(SYS_recvfrom, fd, bytes, size, flags, NULL, NULL);
  if (got <= 0) return got;
  REFUSE_OR_PASS(fd, "recv", 0)
  if (action == kTear) Die();
  return got;
}
ssize_t recvmsg(int fd, struct msghdr* message, int flags) {
  const long got = syscall(SYS_recvmsg, fd, message, flags);
  if (got <= 0) return got;
  REFUSE_OR_PASS(fd, "recvmsg", 0)
  if (action == kTear) Die();
  return got;
}
