/*
 * System functions for raw_status.c, on Windows and Linux: maps a file while other programs write to it, checks whether a
 * byte of it is locked, and reads the clock that counts from boot. Include this file first.
 */
#ifndef MAPPED_H
#define MAPPED_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_OFD_GETLK */
#endif
#include "portable.h"

#include <stdio.h>

#ifdef _WIN32

typedef struct {
    HANDLE handle;
    uint64_t size; /* 0: not a regular file */
} mapped_file;

/* Opens a file for reading, whatever other programs do with it. Prints the reason if that fails. The path is UTF-8. */
static inline int open_file(const char *path, mapped_file *file)
{
    wchar_t wide[4096];
    LARGE_INTEGER size;
    DWORD shared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, 4096);
    file->handle = CreateFileW(wide, GENERIC_READ, shared, NULL, OPEN_EXISTING, 0, NULL);
    if (file->handle == INVALID_HANDLE_VALUE || !GetFileSizeEx(file->handle, &size))
        return fprintf(stderr, "%s: error %lu\n", path, GetLastError()), 0;
    file->size = GetFileType(file->handle) == FILE_TYPE_DISK ? (uint64_t)size.QuadPart : 0;
    return 1;
}

/* Maps the file; NULL if that fails. */
static inline const void *map_file(const mapped_file *file, size_t length)
{
    HANDLE mapping = CreateFileMappingW(file->handle, NULL, PAGE_READONLY, 0, 0, NULL);
    return mapping == NULL ? NULL : MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, length);
}

/* Windows does not report the holder of a lock. So this function tries to take a shared lock for a moment. */
static inline int is_locked(const mapped_file *file, uint64_t byte)
{
    OVERLAPPED place = {0};
    place.Offset = (DWORD)byte;
    place.OffsetHigh = (DWORD)(byte >> 32);
    if (!LockFileEx(file->handle, LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &place))
        return 1;
    UnlockFileEx(file->handle, 0, 1, 0, &place);
    return 0;
}

/* The performance counter counts from boot. */
static inline uint64_t boot_ns(void) { return now_ns(); }

#else

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

typedef struct {
    int handle;
    uint64_t size;
} mapped_file;

static inline int open_file(const char *path, mapped_file *file)
{
    struct stat facts;
    file->handle = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->handle < 0 || fstat(file->handle, &facts) != 0)
        return perror(path), 0;
    file->size = S_ISREG(facts.st_mode) ? (uint64_t)facts.st_size : 0;
    return 1;
}

static inline const void *map_file(const mapped_file *file, size_t length)
{
    const void *map = mmap(NULL, length, PROT_READ, MAP_SHARED, file->handle, 0);
    return map == MAP_FAILED ? NULL : map;
}

/* Queries the lock without taking it. */
static inline int is_locked(const mapped_file *file, uint64_t byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
    return fcntl(file->handle, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static inline uint64_t boot_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
#endif
