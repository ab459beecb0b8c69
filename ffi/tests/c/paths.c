/* Directories with any names: strings are UTF-8 on every system, whatever encoding the system itself uses. Usage:
   paths DIRECTORY */
#include "check.h"

static void a_directory_of_that_name(const char *parent, const char *name)
{
    char directory[1024], file[1100];
    shmlimit_limiter *limiter, *other;
    shmlimit_grant grant;
    const shmlimit_names *names;
    const shmlimit_snapshot *snapshot;
    SIZED(shmlimit_options, options);
    snprintf(directory, sizeof directory, "%s" SEPARATOR "%s", parent, name);
    snprintf(file, sizeof file, "%s" SEPARATOR "api.shm", directory);
    CHECK(!exists(file));
    limiter = make(directory, "api", ONE_AT_A_TIME);
    CHECK(exists(file)); /* as the system sees it */
    IS(shmlimit_try_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_OK);

    /* The same name leads to the same limiter, and the library returns the name as it was given. */
    options.directory = directory;
    options.flags = SHMLIMIT_OPEN_EXISTING;
    IS(shmlimit_open("api", &options, &other), SHMLIMIT_OK);
    CHECK(in_flight(other) == 1);
    IS(shmlimit_list(directory, &names), SHMLIMIT_OK);
    CHECK(names->count == 1 && strcmp(names->names[0], "api") == 0 && strcmp(names->directory, directory) == 0);
    shmlimit_names_free(names);
    IS(shmlimit_snapshot_take(other, &snapshot), SHMLIMIT_OK);
    CHECK(snapshot->in_flight == 1);
    shmlimit_snapshot_free(snapshot);
    IS(shmlimit_open("nobody", &options, &limiter), SHMLIMIT_UNKNOWN_LIMITER);
    SAYS(name);
    IS(shmlimit_release(grant), SHMLIMIT_OK);
    IS(shmlimit_close(other), SHMLIMIT_OK);
}

static void not_utf8(const char *parent, const char *name)
{
    char directory[1024];
    shmlimit_limiter *limiter;
    const shmlimit_names *names;
    SIZED(shmlimit_options, options);
    snprintf(directory, sizeof directory, "%s" SEPARATOR "%s", parent, name);
    options.directory = directory;
    options.config = "concurrency = 1\n";
    IS(shmlimit_open("api", &options, &limiter), SHMLIMIT_NOT_UTF8);
    SAYS("directory");
    IS(shmlimit_list(directory, &names), SHMLIMIT_NOT_UTF8);
    CHECK(limiter == NULL && names == NULL);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    a_directory_of_that_name(argv[1], "plain");
    a_directory_of_that_name(argv[1], "with space");
    a_directory_of_that_name(argv[1], "Gr\xc3\xb6\xc3\x9f" "e \xe9\x99\x90"); /* two and three bytes per letter */
    a_directory_of_that_name(argv[1], "\xf0\x9f\x8e\xac"); /* four bytes, which are a surrogate pair in UTF-16 */
    not_utf8(argv[1], "caf\xe9");
    not_utf8(argv[1], "\xc0\xaf"); /* an overlong encoding of a slash */
    not_utf8(argv[1], "\xed\xa0\xbd"); /* half a surrogate pair */
    return 0;
}
