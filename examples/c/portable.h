/*
 * System functions for the examples: arguments, time, sockets and the standard input, on Windows and other systems.
 * Include this file first. On Windows link with -lws2_32.
 */
#ifndef PORTABLE_H
#define PORTABLE_H

#ifdef _WIN32

#define __USE_MINGW_ANSI_STDIO 1 /* the printf of the standard instead of the Microsoft one */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <io.h>
#include <shellapi.h>
#include <stdint.h>
#include <stdlib.h>

typedef SOCKET socket_handle;
#define NO_SOCKET INVALID_SOCKET
#define MSG_NOSIGNAL 0

/* The arguments of main as UTF-8, which the library requires. Windows does not pass UTF-8 to main. */
static inline char **utf8_arguments(char **arguments)
{
    int count;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
    char **texts = (char **)calloc((size_t)count + 1, sizeof *texts);
    for (int i = 0; wide != NULL && texts != NULL && i < count; i++) {
        int room = WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, NULL, 0, NULL, NULL);
        texts[i] = (char *)malloc((size_t)room);
        if (texts[i] == NULL)
            return arguments;
        WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, texts[i], room, NULL, NULL);
    }
    return wide != NULL && texts != NULL ? texts : arguments;
}

static inline uint64_t now_ns(void)
{
    LARGE_INTEGER now, second;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&second);
    uint64_t whole = (uint64_t)(now.QuadPart / second.QuadPart), part = (uint64_t)(now.QuadPart % second.QuadPart);
    return whole * 1000000000u + part * 1000000000u / (uint64_t)second.QuadPart;
}

static inline void sleep_ns(uint64_t ns) { Sleep((DWORD)((ns + 999999) / 1000000)); }

static inline int start_sockets(void)
{
    WSADATA about;
    return WSAStartup(MAKEWORD(2, 2), &about);
}

static inline void close_socket(socket_handle handle) { closesocket(handle); }

/* Sets the time limit of one send or receive. */
static inline void set_patience(socket_handle handle, int seconds)
{
    DWORD patience = (DWORD)seconds * 1000;
    setsockopt(handle, SOL_SOCKET, SO_RCVTIMEO, (const char *)&patience, sizeof patience);
    setsockopt(handle, SOL_SOCKET, SO_SNDTIMEO, (const char *)&patience, sizeof patience);
}

static inline int was_interrupted(void) { return WSAGetLastError() == WSAEINTR; }
static inline int has_timed_out(void) { return WSAGetLastError() == WSAETIMEDOUT; }

/* Whether there is input, or the end of input, within that time. A pipe can be peeked at, but not waited for. */
static inline int input_within(unsigned milliseconds)
{
    HANDLE input = GetStdHandle(STD_INPUT_HANDLE);
    if (GetFileType(input) != FILE_TYPE_PIPE)
        return WaitForSingleObject(input, milliseconds) == WAIT_OBJECT_0;
    for (;;) {
        DWORD bytes = 0;
        int is_open = PeekNamedPipe(input, NULL, 0, NULL, &bytes, NULL) || GetLastError() != ERROR_BROKEN_PIPE;
        if (!is_open || bytes > 0)
            return 1;
        if (milliseconds == 0)
            return 0;
        unsigned part = milliseconds < 10 ? milliseconds : 10;
        Sleep(part);
        milliseconds -= part;
    }
}

static inline int read_input(char *text, size_t room) { return _read(0, text, (unsigned)room); }

#else

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef int socket_handle;
#define NO_SOCKET (-1)

static inline char **utf8_arguments(char **arguments) { return arguments; }

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A signal ends the sleep early. */
static inline void sleep_ns(uint64_t ns)
{
    struct timespec time;
    time.tv_sec = (time_t)(ns / 1000000000u);
    time.tv_nsec = (long)(ns % 1000000000u);
    nanosleep(&time, NULL);
}

static inline int start_sockets(void) { return 0; }
static inline void close_socket(socket_handle handle) { close(handle); }

static inline void set_patience(socket_handle handle, int seconds)
{
    struct timeval patience;
    patience.tv_sec = seconds;
    patience.tv_usec = 0;
    setsockopt(handle, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(handle, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

static inline int was_interrupted(void) { return errno == EINTR; }
/* connect(2) returns the last one. */
static inline int has_timed_out(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINPROGRESS; }

static inline int input_within(unsigned milliseconds)
{
    struct pollfd input;
    input.fd = STDIN_FILENO;
    input.events = POLLIN;
    return poll(&input, 1, (int)milliseconds) > 0;
}

static inline int read_input(char *text, size_t room) { return (int)read(STDIN_FILENO, text, room); }

#endif
#endif
