/*
 * Schemas of services (api/schemas.c).
 */
#include "api/schemas.h"

#define TIME "{\"type\": [\"string\", \"integer\"]}"
/* What is wanted of one, in what comes in and in what goes out. */
#define WANTED                                                                                    \
    "\"about\": {\"type\": \"string\"}, \"replicas\": {\"type\": \"integer\"}, \"min\": "         \
    "{\"type\": \"integer\"}, \"max\": {\"type\": \"integer\"}, \"port\": {\"type\": "            \
    "\"integer\", \"description\": \"that the program listens on, in its container\"}, "          \
    "\"health\": {\"type\": \"string\", \"enum\": [\"none\", \"tcp\", \"http\"]}, \"path\": "     \
    "{\"type\": \"string\", \"description\": \"that a health check asks for\"}, "                 \
    "\"interval\": " TIME ", \"timeout\": " TIME                                                  \
    ", \"failures\": {\"type\": \"integer\", \"description\": "                                   \
    "\"checks in a row that fail before a replica is replaced\"}, \"start\": " TIME               \
    ", \"surge\": {\"type\": \"integer\", \"description\": \"replicas more than wanted while "    \
    "some are replaced\"}, \"unavailable\": {\"type\": \"integer\", \"description\": \"and "      \
    "fewer\"}, \"wait\": " TIME ", \"wait_max\": " TIME ", \"drain\": " TIME ", \"scale\": "      \
    "{\"type\": \"string\", \"enum\": [\"none\", \"requests\", \"queue\", \"latency\"]}, "        \
    "\"target\": {\"type\": \"integer\", \"description\": \"requests or queue for each replica, " \
    "or milliseconds of latency\"}, \"up\": " TIME ", \"down\": " TIME ", \"idle\": " TIME

#define SUMMARY                                                                                    \
    "\"name\": {\"type\": \"string\"}, \"account\": {\"type\": \"string\"}, \"user\": {\"type\": " \
    "\"string\"}, \"port\": {\"type\": \"integer\"}, \"revision\": {\"type\": \"integer\"}, "      \
    "\"created\": {\"type\": \"string\"}, \"state\": {\"type\": \"string\", \"enum\": "            \
    "[\"starting\", \"ready\", \"degraded\", \"updating\", \"failing\", \"ending\", \"idle\", "    \
    "\"removing\"]}, \"ready\": {\"type\": \"integer\"}, \"target\": {\"type\": \"integer\"}, "    \
    "\"requests\": {\"type\": \"integer\"}, \"replicas\": {\"type\": \"array\", \"items\": "       \
    "{\"$ref\": \"#/components/schemas/ServiceReplica\"}}, \"trouble\": {\"type\": \"string\"}, "  \
    "\"trouble_at\": {\"type\": [\"string\", \"null\"]}, \"next_start\": {\"type\": \"string\"}"

const st_schema st_schemas_services[] = {
    {"ServiceSpec",
     "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, \"account\": "
     "{\"type\": \"string\"}, \"job\": {\"$ref\": \"#/components/schemas/JobSpec\"}, " WANTED
     "}, \"required\": [\"name\", \"job\", \"port\"], \"additionalProperties\": false}"},
    {"ServiceChange",
     "{\"type\": \"object\", \"description\": \"null is the default again\", \"properties\": "
     "{\"job\": {\"type\": \"object\", \"description\": \"keys of the job that change; null takes "
     "one away\"}, " WANTED "}, \"additionalProperties\": false}"},
    {"ServiceReplica",
     "{\"type\": \"object\", \"properties\": {\"replica\": {\"type\": \"integer\"}, \"job\": "
     "{\"type\": \"string\"}, \"state\": {\"type\": \"string\", \"enum\": [\"waiting\", "
     "\"starting\", \"ready\", \"sick\", \"leaving\", \"over\"]}, \"since\": {\"type\": "
     "[\"string\", \"null\"]}, \"revision\": {\"type\": \"integer\"}, \"node\": {\"type\": "
     "\"string\"}, \"requests\": {\"type\": \"integer\"}, \"moving\": {\"type\": \"boolean\"}, "
     "\"trouble\": {\"type\": \"string\"}}, \"required\": [\"replica\", \"job\", \"state\"]}"},
    {"Service", "{\"type\": \"object\", \"properties\": {" SUMMARY
                ", \"wanted\": {\"type\": \"object\"}, \"job\": {\"type\": \"object\"}}, "
                "\"required\": [\"name\", \"account\", \"state\", \"replicas\", \"wanted\"]}"},
    {"ServiceList", "{\"type\": \"object\", \"properties\": {\"services\": {\"type\": \"array\", "
                    "\"items\": {\"type\": \"object\", \"properties\": {" SUMMARY
                    "}, \"required\": [\"name\", \"account\", \"state\"]}}}, \"required\": "
                    "[\"services\"]}"},
    {"ServiceFigures",
     "{\"type\": \"object\", \"properties\": {\"queue\": {\"type\": \"integer\"}, \"latency_ms\": "
     "{\"type\": \"integer\"}}, \"additionalProperties\": false}"},
    {0},
};
