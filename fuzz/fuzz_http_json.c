/*
 * Fuzzes the reader of JSON bodies: a value that can be written again, or one
 * sentence that names the line.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "http/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *value = NULL;
    st_err err = {0};
    char *text;

    if (st_json_parse("body", (const char *)data, size, &value, &err) < 0) {
        ST_ASSERT(value == NULL && err.code == ST_EPARSE);
        ST_ASSERT(strncmp(err.msg, "body:", 5) == 0 && !strchr(err.msg, '\n'));
        return 0;
    }
    text = json_dumps(value, JSON_COMPACT);
    ST_ASSERT(text);
    free(text);
    json_decref(value);
    return 0;
}
