/* A C program that uses nothing but the header. */
#include "shmlimit.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
    const char *version = shmlimit_version();
    if (version == NULL || strlen(version) == 0) {
        fputs("no version\n", stderr);
        return 1;
    }
    if (strcmp(version, SHMLIMIT_VERSION) != 0) {
        fputs("header and library disagree about the version\n", stderr);
        return 1;
    }
    if (shmlimit_layout_version() != SHMLIMIT_LAYOUT_VERSION) {
        fputs("header and library disagree about the layout version\n", stderr);
        return 1;
    }
    if (shmlimit_segment_size() != SHMLIMIT_SEGMENT_SIZE) {
        fputs("header and library disagree about the size of a segment\n", stderr);
        return 1;
    }
    printf("%s %u %llu\n", version, (unsigned)shmlimit_layout_version(),
           (unsigned long long)shmlimit_segment_size());
    return 0;
}
