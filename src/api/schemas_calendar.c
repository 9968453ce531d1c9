/*
 * Schemas of the calendar: windows, series (api/schemas.c).
 */
#include "api/schemas.h"

#define S(more)     "{\"type\": \"string\"" more "}"
#define SAID(about) ", \"description\": \"" about "\""

const st_schema st_schemas_calendar[] = {
    {"Repeat",
     "{\"type\": \"object\", \"properties\": {"
     "\"every\": {\"type\": \"string\", \"enum\": [\"day\", \"week\", \"month\"]}, "
     "\"interval\": {\"type\": \"integer\", \"minimum\": 1" SAID(
         "every so many; default 1") "}, "
                                     "\"on\": " S(SAID(
                                         "weekly: mon,wed or weekdays; monthly: 15, last, 2nd "
                                         "tuesday")) ", "
                                                     "\"until\": " S(SAID(
                                                         "the last day one may begin on: "
                                                         "2027-03-31")) ", "
                                                                        "\"count\": {\"type\": "
                                                                        "\"integer\", \"minimum\": "
                                                                        "1" SAID(
                                                                            "or so many") "}, "
                                                                                          "\"except"
                                                                                          "\": "
                                                                                          "{\"type"
                                                                                          "\": "
                                                                                          "\"array"
                                                                                          "\", "
                                                                                          "\"items"
                                                                                          "\": "
                                                                                          "{\"type"
                                                                                          "\": "
                                                                                          "\"string"
                                                                                          "\""
                                                                                          "}" SAID(
                                                                                              "days"
                                                                                              " tha"
                                                                                              "t "
                                                                                              "are "
                                                                                              "left"
                                                                                              " ou"
                                                                                              "t") "}, "
                                                                                                   "\"gap\": {\"type\": \"string\", \"enum\": [\"shift\", \"skip\"]" SAID(
                                                                                                       "what becomes of a start that clocks skip; default shift") "}, "
                                                                                                                                                                  "\"length\": {\"type\": \"string\", \"enum\": [\"elapsed\", \"wall\"]" SAID(
                                                                                                                                                                      "whether `for` is time that passes or what the clock shows; with `to` it is wall") "}}, "
                                                                                                                                                                                                                                                         "\"required\": [\"every\"], \"additionalProperties\": false}"},
    {"WindowsSpec",
     "{\"type\": \"object\", \"properties\": {"
     "\"from\": " S(SAID(
         "2026-12-01 09:00, 2026-12-01T09:00:00Z, tomorrow 09:00, "
         "now or +2h")) ", "
                        "\"to\": " S(SAID(
                            "the end, in the same forms; or "
                            "`for`")) ", "
                                      "\"for\": " S(SAID(
                                          "the length: 3d, "
                                          "90m")) ", "
                                                  "\"zone\":"
                                                  " " S(SAID(
                                                      "IANA "
                                                      "name of "
                                                      "the "
                                                      "time "
                                                      "zone; "
                                                      "default "
                                                      "UTC")) ", "
                                                              "\"repeat\": {\"$ref\": "
                                                              "\"#/components/schemas/Repeat\"}}, "
                                                              "\"required\": [\"from\"], "
                                                              "\"additionalProperties\": false}"},
    {"Windows",
     "{\"type\": \"object\", \"properties\": {"
     "\"zone\": {\"type\": \"string\"}, "
     "\"tzdata\": " S(
         SAID("release of the time zone database")) ", "
                                                    "\"windows\": {\"type\": \"array\", \"items\": "
                                                    "{\"type\": \"object\", \"properties\": {"
                                                    "\"from\": " S(SAID(
                                                        "with the zone's offset")) ", \"to\": "
                                                                                   "{\"type\": "
                                                                                   "\"string\"}, "
                                                                                   "\"shifted\": "
                                                                                   "{\"type\": "
                                                                                   "\"boolean"
                                                                                   "\"" SAID(
                                                                                       "clocks "
                                                                                       "skip its "
                                                                                       "start that "
                                                                                       "day") "}}, "
                                                                                              "\"re"
                                                                                              "quir"
                                                                                              "ed\""
                                                                                              ": "
                                                                                              "[\"f"
                                                                                              "rom"
                                                                                              "\", "
                                                                                              "\"to"
                                                                                              "\", "
                                                                                              "\"sh"
                                                                                              "ifte"
                                                                                              "d\"]"
                                                                                              ", "
                                                                                              "\"ad"
                                                                                              "diti"
                                                                                              "onal"
                                                                                              "Prop"
                                                                                              "erti"
                                                                                              "es\""
                                                                                              ": "
                                                                                              "fals"
                                                                                              "e}}}"
                                                                                              ", "
                                                                                              "\"re"
                                                                                              "quir"
                                                                                              "ed\""
                                                                                              ": "
                                                                                              "[\"z"
                                                                                              "one"
                                                                                              "\", "
                                                                                              "\"tz"
                                                                                              "data"
                                                                                              "\", "
                                                                                              "\"wi"
                                                                                              "ndow"
                                                                                              "s\"]"
                                                                                              ", "
                                                                                              "\"ad"
                                                                                              "diti"
                                                                                              "onal"
                                                                                              "Prop"
                                                                                              "erti"
                                                                                              "es\""
                                                                                              ": "
                                                                                              "fals"
                                                                                              "e}"},
    {0},
};
