/* The system services that the C tests need, on Windows and elsewhere: processes, the resources of this process,
   and files. */
#ifndef PLATFORM_H
#define PLATFORM_H

#ifdef _WIN32

#define WIN32_LEAN_AND_MEAN
#include <windows.h>
/* After windows.h, which it needs. */
#include <psapi.h>

typedef HANDLE process;
/* The separator in paths that the library returns. */
#define SEPARATOR "\\"

/* Starts this program again with the same directory and a role. */
static inline process start(const char *program, const char *directory, const char *role)
{
    char line[2048];
    STARTUPINFOA how;
    PROCESS_INFORMATION started;
    memset(&how, 0, sizeof how);
    how.cb = sizeof how;
    snprintf(line, sizeof line, "\"%s\" \"%s\" %s", program, directory, role);
    CHECK(CreateProcessA(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &how, &started));
    CloseHandle(started.hThread);
    return started.hProcess;
}

/* Waits until the child has ended, and returns its exit code. */
static inline int exit_code(process child)
{
    DWORD code;
    CHECK(WaitForSingleObject(child, INFINITE) == WAIT_OBJECT_0 && GetExitCodeProcess(child, &code));
    CloseHandle(child);
    return (int)code;
}

static inline void kill_process(process child)
{
    CHECK(TerminateProcess(child, 99));
    CHECK(exit_code(child) == 99);
}

/* The number of open files, and of other resources that the system counts with them. */
static inline size_t descriptors(void)
{
    DWORD count;
    CHECK(GetProcessHandleCount(GetCurrentProcess(), &count));
    return count;
}

static inline size_t resident_kib(void)
{
    PROCESS_MEMORY_COUNTERS counters;
    CHECK(K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters));
    return counters.WorkingSetSize / 1024;
}

/* Whether a file with this name exists. The name is UTF-8. */
static inline int exists(const char *path)
{
    wchar_t wide[1024];
    CHECK(MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, 1024) > 0);
    return GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES;
}

#else

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

typedef pid_t process;
#define SEPARATOR "/"

static inline process start(const char *program, const char *directory, const char *role)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        execl(program, program, directory, role, (char *)NULL);
        _exit(98);
    }
    return child;
}

static inline int exit_code(process child)
{
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static inline void kill_process(process child)
{
    int status = 0;
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

static inline size_t descriptors(void)
{
    size_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    CHECK(directory != NULL);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

static inline size_t resident_kib(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%*s %zu", &pages) == 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

static inline int exists(const char *path) { return access(path, F_OK) == 0; }

#endif
#endif
