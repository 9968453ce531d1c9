/*
 * Schemas of what a submit answers, and of arrays as a whole (api/schemas.c).
 */
#ifndef ST_API_SCHEMAS_ARRAY_H
#define ST_API_SCHEMAS_ARRAY_H

/* clang-format off */
#define ST_ARRAY_SCHEMAS \
    {"Submitted", "{\"anyOf\": [{\"$ref\": \"#/components/schemas/Job\"}, {\"$ref\": " \
                  "\"#/components/schemas/ArrayMade\"}]}"}, \
    {"SubmitAnswered", \
     "{\"anyOf\": [{\"$ref\": \"#/components/schemas/Why\"}, {\"$ref\": " \
     "\"#/components/schemas/Job\"}, {\"$ref\": \"#/components/schemas/ArrayMade\"}]}"}, \
    {"ArrayMade", \
     "{\"type\": \"object\", \"properties\": {\"array\": {\"type\": \"string\"}, \"jobs\": " \
     "{\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": {\"id\": " \
     "{\"type\": \"string\"}}, \"required\": [\"id\"]}}}, \"required\": [\"array\", " \
     "\"jobs\"]}"}, \
    {"ArrayCancelled", \
     "{\"type\": \"object\", \"properties\": {\"array\": {\"type\": \"string\"}, \"name\": " \
     "{\"type\": \"string\"}, \"jobs\": {\"type\": \"integer\"}, \"cancelled\": {\"type\": " \
     "\"integer\"}}, \"required\": [\"array\", \"jobs\", \"cancelled\"]}"}
/* clang-format on */

#endif
