/* Calls a server as fast as a limiter allows, one call after the other, until a file appears.
 *
 *   worker NAME PORT PATH STOP
 */
#define _DEFAULT_SOURCE
#include "http.h"
#include "shmlimit.h"

#include <stdlib.h>

static int failed(const char *what, int32_t code)
{
    fprintf(stderr, "worker.c: %s: %s: %s\n", what, shmlimit_code_name(code), shmlimit_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    shmlimit_limiter *limiter;
    shmlimit_options options = {.size = sizeof options, .flags = SHMLIMIT_OPEN_EXISTING};
    if (argc != 5)
        return fputs("usage: worker NAME PORT PATH STOP\n", stderr), 2;
    int32_t code = shmlimit_open(argv[1], &options, &limiter);
    if (code != SHMLIMIT_OK)
        return failed("open", code);
    while (access(argv[4], F_OK) != 0) {
        shmlimit_grant grant;
        char answer[4096];
        if ((code = shmlimit_acquire(limiter, NULL, &grant, NULL)) != SHMLIMIT_OK)
            return failed("acquire", code);
        size_t length = http_get(atoi(argv[2]), argv[3], answer, sizeof answer);
        shmlimit_outcome outcome = {.size = sizeof outcome, .head = answer, .head_length = length};
        if (length == 0)
            outcome.error = SHMLIMIT_ERROR_CONNECTION;
        if ((code = shmlimit_record(grant, &outcome, NULL)) != SHMLIMIT_OK)
            return failed("record", code);
    }
    code = shmlimit_close(limiter);
    return code == SHMLIMIT_OK ? 0 : failed("close", code);
}
