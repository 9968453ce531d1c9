/*
 * What may be a name (base/names.h). ASCII, whatever the locale.
 */
#include "base/names.h"

#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS  "0123456789"

static bool made_of(const char *s, size_t max, const char *first, const char *rest)
{
    size_t n = strnlen(s, max + 1);

    return n >= 1 && n <= max && strchr(first, s[0]) && strspn(s, rest) == n;
}

bool st_plain_name(const char *s, size_t max)
{
    return made_of(s, max, LETTERS DIGITS, LETTERS DIGITS ".-");
}

bool st_variable_name(const char *s, size_t max)
{
    return made_of(s, max, LETTERS, LETTERS DIGITS);
}
