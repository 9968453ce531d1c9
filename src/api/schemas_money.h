/* Rows of the table in schemas.c: the clock, and entries of books. Private to src/api. */
#ifndef ST_API_SCHEMAS_MONEY_H
#define ST_API_SCHEMAS_MONEY_H

#define ST_MONEY_SCHEMAS                                                                           \
    {"Clock",                                                                                      \
     "{\"type\": \"object\", \"properties\": {\"now\": {\"type\": \"string\", \"format\": "        \
     "\"date-time\"}, \"machine\": {\"type\": \"string\", \"format\": \"date-time\"}, "            \
     "\"ahead_seconds\": {\"type\": \"integer\", \"description\": \"the machine's clock before "   \
     "stintd's\"}, \"believed\": {\"type\": \"boolean\"}}, \"required\": [\"now\", "               \
     "\"machine\", \"ahead_seconds\", \"believed\"], \"additionalProperties\": false}"},           \
        {"ClockAccept",                                                                            \
         "{\"type\": \"object\", \"properties\": {\"ahead_seconds\": {\"type\": \"integer\", "     \
         "\"minimum\": -9007199254740991, \"maximum\": 9007199254740991, \"description\": \"as "   \
         "it "                                                                                     \
         "was shown: one that has changed by more than a minute since is refused\"}}, "            \
         "\"required\": "                                                                          \
         "[\"ahead_seconds\"], \"additionalProperties\": false}"},                                 \
    {                                                                                              \
        "Entry",                                                                                   \
            "{\"type\": \"object\", \"properties\": {\"seq\": {\"type\": \"integer\"}, \"at\": "   \
            "{\"type\": \"integer\"}, \"kind\": {\"type\": \"string\"}, \"account\": {\"type\": "  \
            "\"string\"}, \"child\": {\"type\": \"string\"}, \"period\": {\"type\": "              \
            "\"string\"}, \"zone\": {\"type\": \"string\"}, \"from\": {\"type\": "                 \
            "\"integer\"}, \"to\": {\"type\": \"integer\"}, \"chargeback\": {\"type\": "           \
            "\"integer\"}, \"discount_bp\": {\"type\": \"integer\"}, \"fixes\": "                  \
            "{\"type\": \"integer\"}, \"job\": {\"type\": \"string\"}, \"user\": {\"type\": "      \
            "\"string\"}, \"workload\": {\"type\": \"string\"}, \"stay\": {\"type\": "             \
            "\"integer\"}, \"piece\": {\"type\": \"integer\"}, \"gpu\": {\"type\": \"string\"}, "  \
            "\"level\": {\"type\": \"string\"}, \"profile\": {\"type\": \"string\"}, \"basis\": "  \
            "{\"type\": \"string\"}, \"topo\": {\"type\": \"string\"}, \"tasks\": {\"type\": "     \
            "\"integer\"}, \"cut\": {\"type\": \"string\"}, \"gpu_m\": {\"type\": \"integer\"}, "  \
            "\"share\": {\"type\": \"integer\"}, \"held\": {\"type\": \"integer\"}, \"cpu\": "     \
            "{\"type\": \"integer\"}, \"ram\": {\"type\": \"integer\"}, \"seen\": {\"type\": "     \
            "\"integer\"}, \"busy\": {\"type\": \"integer\"}, \"energy_mj\": {\"type\": "          \
            "\"integer\"}, \"lost\": {\"type\": \"integer\"}, \"capped\": {\"type\": "             \
            "\"integer\"}, \"charged\": {\"type\": \"integer\"}, \"credited\": "                   \
            "{\"type\": \"integer\"}, \"pieces\": {\"type\": "                                     \
            "\"integer\"}, \"amount\": {\"type\": \"integer\"}, \"reason\": {\"type\": "           \
            "\"string\"}, \"by\": {\"type\": \"string\"}, \"grants\": {\"type\": \"array\", "      \
            "\"items\": {\"type\": \"array\", \"items\": {\"type\": [\"string\", \"integer\"]}}, " \
            "\"description\": \"[node, mask of devices, first slice, tasks]\"}, \"lines\": "       \
            "{\"type\": \"array\", \"items\": {\"type\": \"array\", \"items\": {\"type\": "        \
            "[\"string\", \"integer\"]}}, \"description\": \"[component, quantity, rate, factor, " \
            "carried in, amount, carried on]\"}, \"doc\": {\"type\": \"object\", \"properties\": " \
            "{}, \"additionalProperties\": true}}, \"required\": [\"seq\", \"at\", \"kind\", "     \
            "\"account\"], \"additionalProperties\": false, \"description\": \"a line of an "      \
            "account's book, as it is hashed: integers, ms, micro-dollars\"}"                      \
    }

#endif
