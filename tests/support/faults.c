/* A library to preload: one chosen system call on files below a folder fails, is cut short, or ends the process.
 *
 * Calls are counted from fault_arm on, in the process that called it alone. On names and file descriptors of other
 * places, and before that, everything is as without this library.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <dirent.h>
#include <unistd.h>

enum { NOTHING, FAIL, KILL, HALF, HALF_KILL };
enum { FILES = 4096, CALLS = 65536 };

static char root[PATH_MAX];
static char below[FILES];          /* which file descriptors are of files below the folder */
static const char *names[CALLS];   /* of the calls so far */
static pid_t armed;
static long count, target;
static int kind, failure;

__attribute__((constructor)) static void alone(void) { unsetenv("LD_PRELOAD"); }

void fault_arm(const char *folder, long number, int what, int error) {
    snprintf(root, sizeof root, "%s", folder);
    memset(below, 0, sizeof below);
    count = 0;
    target = number;
    kind = what;
    failure = error;
    armed = getpid();
}

void fault_disarm(void) { armed = 0; }

long fault_count(void) { return count; }

const char *fault_name(long number) { return number < CALLS ? names[number] : "?"; }

static int ours(const char *path) {
    return armed == getpid() && path != NULL && strncmp(path, root, strlen(root)) == 0;
}

static int ours_open(int fd) { return fd >= 0 && fd < FILES && below[fd] && armed == getpid(); }

/* Counts a call; whether it is the one that fails. */
static int fails(const char *name) {
    if (count < CALLS) names[count] = name;
    if (count++ != target) return 0;
    if (kind == KILL) raise(SIGKILL);
    if (kind != FAIL) return 0;
    errno = failure;
    return 1;
}

/* How many of some bytes the call that was just counted moves. */
static size_t part(size_t bytes) {
    return count - 1 == target && (kind == HALF || kind == HALF_KILL) ? (bytes + 1) / 2 : bytes;
}

static void cut(void) {
    if (count - 1 == target && kind == HALF_KILL) raise(SIGKILL);
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int opened(int fd, const char *path) {
    if (fd >= 0 && fd < FILES) below[fd] = (char)ours(path);
    return fd;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = va_arg(more, mode_t); \
        va_end(more); \
        if (ours(path) && fails(flags & O_CREAT ? "create" : "open")) return -1; \
        return opened(real(path, flags, mode), path); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        REAL(name); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = va_arg(more, mode_t); \
        va_end(more); \
        if (ours(path) && fails(flags & O_CREAT ? "create" : "open")) return -1; \
        return opened(real(folder, path, flags, mode), path); \
    }
OPENAT(openat)
OPENAT(openat64)

DIR *opendir(const char *path) {
    REAL(opendir);
    return ours(path) && fails("list") ? NULL : real(path);
}

#define ON_PATH(type, name, label, parameters, ...) \
    type name parameters { \
        REAL(name); \
        return ours(path) && fails(label) ? -1 : real(__VA_ARGS__); \
    }
ON_PATH(int, mkdir, "mkdir", (const char *path, mode_t mode), path, mode)
ON_PATH(int, rename, "rename", (const char *path, const char *to), path, to)
ON_PATH(int, link, "link", (const char *path, const char *to), path, to)
ON_PATH(int, unlink, "unlink", (const char *path), path)
ON_PATH(int, rmdir, "rmdir", (const char *path), path)
ON_PATH(int, chmod, "chmod", (const char *path, mode_t mode), path, mode)
ON_PATH(int, access, "access", (const char *path, int mode), path, mode)
ON_PATH(int, stat, "stat", (const char *path, struct stat *found), path, found)
ON_PATH(int, stat64, "stat", (const char *path, struct stat64 *found), path, found)
ON_PATH(int, lstat, "stat", (const char *path, struct stat *found), path, found)
ON_PATH(int, lstat64, "stat", (const char *path, struct stat64 *found), path, found)
ON_PATH(ssize_t, readlink, "stat", (const char *path, char *to, size_t bytes), path, to, bytes)

int renameat(int from, const char *path, int folder, const char *to) {
    REAL(renameat);
    return ours(path) && fails("rename") ? -1 : real(from, path, folder, to);
}

int unlinkat(int folder, const char *path, int flags) {
    REAL(unlinkat);
    return ours(path) && fails("unlink") ? -1 : real(folder, path, flags);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    REAL(mkdirat);
    return ours(path) && fails("mkdir") ? -1 : real(folder, path, mode);
}

#define ON_FILE(type, name, label, parameters, ...) \
    type name parameters { \
        REAL(name); \
        return ours_open(fd) && fails(label) ? -1 : real(__VA_ARGS__); \
    }
ON_FILE(int, fstat, "fstat", (int fd, struct stat *found), fd, found)
ON_FILE(int, fstat64, "fstat", (int fd, struct stat64 *found), fd, found)
ON_FILE(int, fsync, "fsync", (int fd), fd)
ON_FILE(int, fdatasync, "fsync", (int fd), fd)
ON_FILE(int, ftruncate, "truncate", (int fd, off_t bytes), fd, bytes)
ON_FILE(int, ftruncate64, "truncate", (int fd, off64_t bytes), fd, bytes)
ON_FILE(int, fchmod, "chmod", (int fd, mode_t mode), fd, mode)
ON_FILE(int, fchown, "chmod", (int fd, uid_t owner, gid_t group), fd, owner, group)
ON_FILE(int, flock, "lock", (int fd, int operation), fd, operation)

int close(int fd) { /* Linux has closed the file also where it reports an error */
    REAL(close);
    int known = ours_open(fd), failed = known && fails("close"), error = errno;
    if (known) below[fd] = 0;
    int status = real(fd);
    if (!failed) return status;
    errno = error;
    return -1;
}

#define MOVE(name, label, parameters, ...) \
    ssize_t name parameters { \
        REAL(name); \
        if (!ours_open(fd)) return real(__VA_ARGS__); \
        if (fails(label)) return -1; \
        bytes = part(bytes); \
        ssize_t moved = real(__VA_ARGS__); \
        cut(); \
        return moved; \
    }
MOVE(write, "write", (int fd, const void *from, size_t bytes), fd, from, bytes)
MOVE(pwrite, "write", (int fd, const void *from, size_t bytes, off_t at), fd, from, bytes, at)
MOVE(pwrite64, "write", (int fd, const void *from, size_t bytes, off64_t at), fd, from, bytes, at)
MOVE(read, "read", (int fd, void *to, size_t bytes), fd, to, bytes)
MOVE(pread, "read", (int fd, void *to, size_t bytes, off_t at), fd, to, bytes, at)
MOVE(pread64, "read", (int fd, void *to, size_t bytes, off64_t at), fd, to, bytes, at)

static int locks(int command) { return command == F_SETLK || command == F_SETLKW; }

#define CONTROL(name) \
    int name(int fd, int command, ...) { \
        REAL(name); \
        va_list more; \
        va_start(more, command); \
        void *argument = va_arg(more, void *); \
        va_end(more); \
        return ours_open(fd) && locks(command) && fails("lock") ? -1 : real(fd, command, argument); \
    }
CONTROL(fcntl)
CONTROL(fcntl64)

#define MAP(name, offset) \
    void *name(void *at, size_t bytes, int access, int flags, int fd, offset from) { \
        REAL(name); \
        return ours_open(fd) && fails("mmap") ? MAP_FAILED : real(at, bytes, access, flags, fd, from); \
    }
MAP(mmap, off_t)
MAP(mmap64, off64_t)
