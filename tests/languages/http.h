/* One HTTP call as a small program makes it: connect, send a request, read the head of the answer. For C and C++. */
#ifndef SHMLIMIT_TEST_HTTP_H
#define SHMLIMIT_TEST_HTTP_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Calls http://127.0.0.1:PORT/PATH and stores the answer in `answer`. Returns its bytes; 0 without answer. */
static size_t http_get(int port, const char *path, char *answer, size_t size)
{
    struct sockaddr_in address;
    char ask[512];
    size_t have = 0;
    int stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (stream < 0)
        return 0;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int length = snprintf(ask, sizeof ask, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    if (connect(stream, (const struct sockaddr *)&address, sizeof address) == 0
        && send(stream, ask, (size_t)length, MSG_NOSIGNAL) == length) {
        ssize_t got;
        while (have < size && (got = recv(stream, answer + have, size - have, 0)) > 0)
            have += (size_t)got;
    }
    close(stream);
    return have;
}

#endif
