/*
 * Files by name (web/web.h). There are a handful.
 */
#include "web/web.h"

#include <string.h>

const st_web_file *st_web_find(const char *name)
{
    for (const st_web_file *f = st_web_files; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}
