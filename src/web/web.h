/*
 * The console's files, built into the program: what web/ was built to (web/dist/), packed. Bytes and their names, nothing
 * else; who serves them, and with which headers, is the API's.
 */
#ifndef ST_WEB_WEB_H
#define ST_WEB_WEB_H

#include <stddef.h>

typedef struct st_web_file {
    const char *name;            /* "app.js" */
    const char *type;            /* its media type */
    const char *tag;             /* of its content */
    const unsigned char *packed; /* gzip */
    size_t packed_len, len;
} st_web_file;

/* In the order of their names; ends with a row without a name. */
extern const st_web_file st_web_files[];

/* NULL: there is none. */
const st_web_file *st_web_find(const char *name);

#endif
