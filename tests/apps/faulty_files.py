"""Makes one write of this process fail, whoever makes it: Python, SQLite, another thread.

Loaded in front of the C library, it counts what is written below one folder, and lets the write of
a given number fail once: a full disk, a broken one, an interrupted call, or half a write.
"""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

KINDS = {"full": 28, "broken": 5, "interrupted": 4, "half": 0}
"""What happens, with the number of the error; half a write is none."""
_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
static char folder[4096]; static long at, seen; static int error;
void faults_arm(const char *where, long number, int how)
{ strncpy(folder, where, sizeof folder - 1); at = number; error = how;
  __atomic_store_n(&seen, 0, __ATOMIC_SEQ_CST); }
long faults_seen(void) { return __atomic_load_n(&seen, __ATOMIC_SEQ_CST); }
static int below(const char *name)
{ return folder[0] && strncmp(name, folder, strlen(folder)) == 0; }
static int hit(int file) {
  char link[64], name[4096]; ssize_t n;
  if (!folder[0]) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  if ((n = readlink(link, name, sizeof name - 1)) <= 0) return 0;
  name[n] = 0;
  return below(name) && __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST) == at; }
#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)
#define FAULT(n, half) if (error) { errno = error; return -1; } if (n > 1) return half
ssize_t write(int f, const void *b, size_t n)
{ REAL(write); if (hit(f)) { FAULT(n, real(f, b, n / 2)); } return real(f, b, n); }
ssize_t pwrite(int f, const void *b, size_t n, off_t o)
{ REAL(pwrite); if (hit(f)) { FAULT(n, real(f, b, n / 2, o)); } return real(f, b, n, o); }
ssize_t pwrite64(int f, const void *b, size_t n, off64_t o)
{ REAL(pwrite64); if (hit(f)) { FAULT(n, real(f, b, n / 2, o)); } return real(f, b, n, o); }
int fsync(int f)
{ REAL(fsync); if (hit(f)) { FAULT(0, 0); } return real(f); }
int fdatasync(int f)
{ REAL(fdatasync); if (hit(f)) { FAULT(0, 0); } return real(f); }
int ftruncate(int f, off_t n)
{ REAL(ftruncate); if (hit(f)) { FAULT(0, 0); } return real(f, n); }
int ftruncate64(int f, off64_t n)
{ REAL(ftruncate64); if (hit(f)) { FAULT(0, 0); } return real(f, n); }
int rename(const char *a, const char *b)
{ REAL(rename);
  if (below(a) && __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST) == at) { FAULT(0, 0); }
  return real(a, b); }
"""


def built(folder: Path) -> Path:
    """Return the library, built with the C compiler of this machine."""
    source, library = folder / "faults.c", folder / "faults.so"
    source.write_text(_SOURCE)
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def run_with(library: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module with the library in front of the C library."""
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), str(root / "tests"), *sys.path])
    env = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": paths}
    return subprocess.run(
        [sys.executable, *arguments], env=env, capture_output=True, text=True, check=False
    )


class Faults:
    """The counter in this process, which was started with the library."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.faults_seen.restype = ctypes.c_long

    def arm(self, folder: Path | None, number: int = 0, kind: str = "full") -> None:
        """Count writes below a folder from now on, and let one of them fail."""
        where = b"" if folder is None else os.fsencode(folder)
        self._library.faults_arm(where, ctypes.c_long(number), KINDS[kind])

    @property
    def seen(self) -> int:
        """Writes so far."""
        return int(self._library.faults_seen())
