/*
 * Schemas of GPU types, pools, nodes and their agents (api/schemas.c).
 */
#include "api/schemas.h"

/* What pools say of their jobs, in what comes in and in what goes out. */
#define POOL_RULES                                                                                 \
    "\"allow\": {\"type\": \"array\", \"items\": {\"type\": \"string\", \"enum\": "                \
    "[\"host-image\", \"host-network\", \"rdma\"]}}, \"tasks_per_job\": {\"type\": \"integer\"}, " \
    "\"tasks_per_node\": {\"type\": \"integer\"}, "
#define POOL_BOOKING_IN                                                                      \
    "\"booking_horizon\": {\"type\": [\"string\", \"integer\"], \"description\": \"how far " \
    "ahead bookings there may begin: 30d, or seconds; 0: as the policy says\"}, "            \
    "\"booking_share\": {\"type\": \"number\", \"description\": \"part of its GPUs of a "    \
    "type that bookings may have at one time; 0: as the policy says\"}, "
#define POOL_RULES_IN                                                                  \
    POOL_RULES "\"cpu_per_gpu\": {\"type\": \"number\"}, \"ram_per_gpu\": {\"type\": " \
               "[\"string\", \"number\"]}, \"cpu_per_task\": {\"type\": \"number\"}, " \
               "\"ram_per_cpu\": {\"type\": [\"string\", \"number\"]}, "               \
               "\"engine\": {\"type\": \"string\"}, " POOL_BOOKING_IN

const st_schema st_schemas_fleet[] = {
    {"TypeSpec", "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, "
                 "\"vram\": {\"type\": [\"string\", \"number\"], \"description\": \"64Gi, "
                 "512Mi, or GiB\"}, \"mig\": {\"type\": \"string\"}}, \"required\": "
                 "[\"name\"], \"additionalProperties\": false}"},
    {"TypeList", "{\"type\": \"object\", \"properties\": {\"types\": {\"type\": \"array\", "
                 "\"items\": {\"type\": \"object\", \"properties\": {\"name\": {\"type\": "
                 "\"string\"}, \"vram_mib\": {\"type\": \"integer\"}, \"mig\": {\"type\": "
                 "[\"string\", \"null\"]}}}}}, \"required\": [\"types\"]}"},
    {"PoolSpec",
     "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, " POOL_RULES_IN
     "\"levels\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}, "
     "\"oversubscribe\": {\"type\": \"number\"}}, \"required\": [\"name\"], "
     "\"additionalProperties\": false}"},
    {"PoolChange",
     "{\"type\": \"object\", \"properties\": {" POOL_RULES_IN "\"levels\": {\"type\": \"array\", "
     "\"items\": {\"type\": \"string\", \"enum\": [\"whole\", \"mig\", \"mps\", "
     "\"time\"]}}, \"oversubscribe\": {\"type\": \"number\", \"minimum\": 1, "
     "\"maximum\": 4}}, \"additionalProperties\": false}"},
    {"Pool", "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, " POOL_RULES
             "\"cpu_per_gpu\": {\"type\": [\"number\", \"null\"]}, \"ram_per_gpu_mib\": {\"type\": "
             "[\"integer\", \"null\"]}, \"cpu_per_task\": {\"type\": \"number\"}, "
             "\"ram_per_cpu_mib\": {\"type\": [\"integer\", \"null\"]}, "
             "\"booking_horizon_seconds\": {\"type\": [\"number\", \"null\"]}, "
             "\"booking_share\": {\"type\": [\"number\", \"null\"]}, "
             "\"engine\": {\"type\": \"string\", \"description\": \"auto: each node's own\"}, "
             "\"yields\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}, "
             "\"levels\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}, "
             "\"oversubscribe\": {\"type\": \"number\"}, \"nodes\": {\"type\": "
             "\"integer\"}, \"gpus\": {\"type\": \"integer\"}, \"gpus_ready\": {\"type\": "
             "\"integer\"}}, \"required\": [\"name\"]}"},
    {"PoolChanged",
     "{\"type\": \"object\", \"description\": \"with dry_run also what it would be\", "
     "\"properties\": {\"name\": {\"type\": \"string\"}, "
     "\"before\": {\"$ref\": \"#/components/schemas/Pool\"}, "
     "\"after\": {\"$ref\": \"#/components/schemas/Pool\"}, "
     "\"starts\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}, \"description\": "
     "\"jobs that would start at once\"}, "
     "\"displaces\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}, \"description\": "
     "\"jobs that would have to leave\"}, "
     "\"bookings_degraded\": {\"type\": \"integer\", \"description\": \"bookings that would lose "
     "their place\"}}, \"required\": [\"name\"]}"},
    {"PoolList", "{\"type\": \"object\", \"properties\": {\"pools\": {\"type\": \"array\", "
                 "\"items\": {\"$ref\": \"#/components/schemas/Pool\"}}}, \"required\": "
                 "[\"pools\"]}"},
    {"NodeSpec", "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, "
                 "\"pool\": {\"type\": \"string\"}, \"gpu\": {\"type\": \"string\"}, "
                 "\"gpus\": {\"type\": \"integer\"}, \"nvlink\": {\"type\": \"integer\"}, "
                 "\"nvlink_domain\": {\"type\": \"string\"}, \"cpu\": {\"type\": \"number\"}, "
                 "\"ram\": {\"type\": [\"string\", \"number\"], \"description\": \"64Gi, "
                 "512Mi, or GiB\"}, \"rack\": {\"type\": \"string\"}, \"block\": {\"type\": "
                 "\"string\"}, \"zone\": {\"type\": \"string\"}}, \"required\": [\"name\"], "
                 "\"additionalProperties\": false}"},
    {"NodeLabels", "{\"type\": \"object\", \"properties\": {\"set\": {\"type\": \"object\", "
                   "\"properties\": {}, \"additionalProperties\": {\"type\": \"string\"}, "
                   "\"description\": \"names and values of 1 to 63 letters, digits and . _ - / + "
                   ":\"}, \"remove\": {\"type\": \"array\", \"items\": {\"type\": "
                   "\"string\"}}}, \"additionalProperties\": false}"},
    {"NodeChange", "{\"type\": \"object\", \"properties\": {\"state\": {\"type\": \"string\", "
                   "\"enum\": [\"ready\", \"draining\", \"failed\", \"suspect\", \"testing\", "
                   "\"repair\", \"retired\"]}, \"reason\": {\"type\": "
                   "\"string\"}, \"by\": {\"type\": \"string\", \"description\": \"of draining: "
                   "when its jobs must be off it\"}, \"zone\": {\"type\": \"string\", "
                   "\"description\": \"time zone of by (default: UTC)\"}, \"within\": {\"type\": "
                   "\"string\", \"description\": \"instead of by: 2h\"}, \"then\": {\"type\": "
                   "\"string\", \"enum\": [\"wait\", \"requeue\", \"pause\"]}, \"gpu\": "
                   "{\"type\": \"integer\", \"description\": \"of ready, draining, failed and "
                   "retired: this GPU alone\"}}, \"required\": "
                   "[\"state\"], \"additionalProperties\": false}"},
    {"Node", "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, "
             "\"pool\": {\"type\": \"string\"}, \"type\": {\"type\": [\"string\", "
             "\"null\"]}, \"gpus\": {\"type\": \"integer\"}, \"cpu\": {\"type\": "
             "\"number\"}, \"ram_mib\": {\"type\": \"integer\"}, \"state\": {\"type\": "
             "\"string\"}, \"reason\": {\"type\": \"string\"}, \"since\": {\"type\": \"string\", "
             "\"format\": \"date-time\"}, \"by\": {\"type\": \"string\"}, \"passed\": {\"type\": "
             "\"string\", "
             "\"format\": \"date-time\"}, \"test_at\": {\"type\": \"string\", \"format\": "
             "\"date-time\"}, \"tested\": {\"type\": \"boolean\"}, \"drain_by\": {\"type\": "
             "\"string\", \"format\": \"date-time\"}, \"drain_then\": {\"type\": \"string\", "
             "\"enum\": [\"wait\", \"requeue\", \"pause\"]}, \"rack\": "
             "{\"type\": \"string\"}, "
             "\"block\": {\"type\": "
             "\"string\"}, \"zone\": {\"type\": \"string\"}, \"labels\": {\"type\": "
             "\"object\", \"properties\": {}, \"additionalProperties\": {\"type\": "
             "\"string\"}}, \"gpus_free\": {\"type\": "
             "\"integer\"}, \"key\": {\"type\": \"string\"}, \"may_rejoin\": {\"type\": "
             "\"boolean\"}, \"flags\": {\"type\": \"array\", \"items\": {\"type\": "
             "\"object\", \"properties\": {\"flag\": {\"type\": \"string\"}, \"reason\": "
             "{\"type\": \"string\"}, \"since\": {\"type\": \"string\"}, \"last\": "
             "{\"type\": \"string\"}}}}, "
             "\"next\": {\"type\": \"string\"}, \"gpus_out\": {\"type\": \"array\", "
             "\"items\": {\"type\": \"object\", \"properties\": {\"gpu\": {\"type\": "
             "\"integer\"}, \"state\": {\"type\": \"string\"}, \"fault\": {\"type\": "
             "\"string\"}, \"cause\": {\"type\": \"string\"}, \"reason\": {\"type\": "
             "\"string\"}, \"by\": {\"type\": \"string\"}, \"since\": {\"type\": \"string\", "
             "\"format\": \"date-time\"}, \"next\": {\"type\": \"string\"}}, \"required\": "
             "[\"gpu\", \"state\", \"next\"]}}, "
             "\"jobs\": {\"type\": \"array\", \"items\": {\"type\": "
             "\"string\"}}}, \"required\": [\"name\", \"pool\", \"state\"]}"},
    {"NodeTests",
     "{\"type\": \"object\", \"properties\": {\"tests\": {\"type\": \"array\", \"items\": "
     "{\"type\": \"object\", \"properties\": {\"at\": {\"type\": \"string\", \"format\": "
     "\"date-time\"}, \"test\": {\"type\": \"integer\"}, \"level\": {\"type\": \"string\"}, "
     "\"with\": {\"type\": \"string\", \"description\": \"the libraries or programs that "
     "measured\"}, \"broken\": {\"type\": \"boolean\", \"description\": \"the test itself "
     "failed; it says nothing of the node\"}, "
     "\"version\": {\"type\": \"integer\"}, \"passed\": {\"type\": \"boolean\"}, \"reason\": "
     "{\"type\": \"string\"}, \"ms\": {\"type\": \"integer\"}, \"results\": {\"type\": "
     "\"array\", \"items\": {\"type\": \"object\", \"properties\": {\"check\": {\"type\": "
     "\"string\"}, \"gpu\": {\"type\": \"integer\"}, \"verdict\": {\"type\": \"string\"}, "
     "\"value\": {\"type\": \"integer\"}, \"limit\": {\"type\": \"integer\"}, \"unit\": "
     "{\"type\": \"string\"}}}}}}}}, \"required\": [\"tests\"]}"},
    {"NodeTest", "{\"type\": \"object\", \"properties\": {\"level\": {\"type\": \"string\", "
                 "\"enum\": [\"quick\", \"short\", \"long\", \"burn\"]}}, "
                 "\"additionalProperties\": false}"},
    {"TestLimits",
     "{\"type\": \"object\", \"properties\": {\"type\": {\"type\": \"string\"}, \"limits\": "
     "{\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": {\"limit\": "
     "{\"type\": \"string\"}, \"value\": {\"type\": \"integer\"}, \"default\": {\"type\": "
     "\"integer\"}, \"unit\": {\"type\": \"string\"}, \"about\": {\"type\": \"string\"}}}}}, "
     "\"required\": [\"type\", \"limits\"]}"},
    {"TestLimitsChange",
     "{\"type\": \"object\", \"properties\": {}, \"additionalProperties\": {\"type\": "
     "[\"integer\", \"null\"]}, \"description\": \"limits by name; null: as it was\"}"},
    {"FleetHealth",
     "{\"type\": \"object\", \"properties\": {\"from\": {\"type\": \"string\", \"format\": "
     "\"date-time\", \"description\": \"the oldest incident that is kept; none: there was "
     "none\"}, \"parts\": {\"type\": \"array\", \"items\": {\"type\": \"object\", "
     "\"properties\": {\"pool\": {\"type\": \"string\"}, \"type\": {\"type\": [\"string\", "
     "\"null\"]}, \"nodes\": {\"type\": \"integer\"}, \"nodes_out\": {\"type\": "
     "\"integer\"}, \"gpus\": {\"type\": \"integer\"}, \"gpus_ready\": {\"type\": "
     "\"integer\"}, \"gpus_out\": {\"type\": \"integer\"}, \"spare_nodes\": {\"type\": "
     "\"integer\", \"description\": \"ready, and nobody has or booked anything there\"}, "
     "\"failures\": {\"type\": \"integer\", \"description\": \"of hardware, since from\"}, "
     "\"node_hours_between_failures\": {\"type\": \"number\"}, \"out_for\": {\"type\": "
     "\"object\", \"properties\": {}, \"additionalProperties\": {\"type\": "
     "\"integer\"}, \"description\": \"nodes by cause, now\"}}}}, \"causes\": {\"type\": "
     "\"array\", \"items\": {\"type\": \"object\", \"properties\": {\"cause\": {\"type\": "
     "\"string\"}, \"incidents\": {\"type\": \"integer\"}, \"nodes\": {\"type\": "
     "\"integer\"}, \"node_hours_out\": {\"type\": \"number\"}, \"seconds_to_return\": "
     "{\"type\": \"number\"}}}}}, \"required\": [\"parts\", \"causes\"]}"},
    {"NodeHistory",
     "{\"type\": \"object\", \"properties\": {\"history\": {\"type\": \"array\", \"items\": "
     "{\"type\": \"object\", \"properties\": {\"at\": {\"type\": \"string\", \"format\": "
     "\"date-time\"}, \"state\": {\"type\": \"string\"}, \"by\": {\"type\": \"string\"}, "
     "\"gpu\": {\"type\": \"integer\"}, \"reason\": {\"type\": \"string\"}}, \"required\": "
     "[\"at\", \"state\"]}}}, \"required\": "
     "[\"history\"]}"},
    {"NodeRemedies",
     "{\"type\": \"object\", \"properties\": {\"remedies\": {\"type\": \"array\", \"items\": "
     "{\"type\": \"object\", \"properties\": {\"at\": {\"type\": \"string\", \"format\": "
     "\"date-time\"}, \"incident\": {\"type\": \"string\"}, \"remedy\": {\"type\": \"string\", "
     "\"enum\": [\"reset\", \"reboot\", \"inspect\"]}, \"fault\": {\"type\": \"string\"}, \"gpu\": "
     "{\"type\": \"integer\"}, \"state\": {\"type\": \"string\", \"enum\": [\"running\", \"done\", "
     "\"failed\", \"timeout\", \"broken\", \"said\", \"lost\"]}, \"text\": {\"type\": \"string\"}, "
     "\"took_ms\": {\"type\": \"integer\"}}}}}, \"required\": [\"remedies\"]}"},
    {"Incident",
     "{\"type\": \"object\", \"properties\": {\"id\": {\"type\": \"string\"}, \"state\": "
     "{\"type\": \"string\", \"enum\": [\"open\", \"over\"]}, \"cause\": {\"type\": \"string\", "
     "\"enum\": [\"hardware\", \"software\", \"network\", \"configuration\", \"user\"]}, "
     "\"fault\": {\"type\": \"string\"}, \"about\": {\"type\": \"string\"}, \"scope\": {\"type\": "
     "\"string\", \"enum\": [\"gpu\", \"node\", \"rack\", \"switch\", \"pool\"]}, \"pool\": "
     "{\"type\": \"string\"}, \"opened\": {\"type\": \"string\", \"format\": \"date-time\"}, "
     "\"closed\": {\"type\": \"string\", \"format\": \"date-time\"}, \"last\": {\"type\": "
     "\"string\", \"format\": \"date-time\"}, \"times\": {\"type\": \"integer\"}, \"breaker\": "
     "{\"type\": \"boolean\"}, \"reason\": {\"type\": \"string\"}, \"nodes_out\": {\"type\": "
     "\"integer\"}, \"jobs_unlisted\": {\"type\": \"integer\"}, \"nodes\": {\"type\": "
     "\"array\", \"items\": {\"type\": \"object\", \"properties\": {\"node\": {\"type\": "
     "\"string\"}, \"gpu\": {\"type\": \"integer\"}, \"code\": {\"type\": \"integer\"}, "
     "\"state\": {\"type\": \"string\"}, \"found\": {\"type\": \"string\", \"format\": "
     "\"date-time\"}, \"over\": {\"type\": \"boolean\"}, \"held\": {\"type\": \"boolean\"}, "
     "\"out_seconds\": {\"type\": \"integer\"}, \"test_at\": {\"type\": \"string\", "
     "\"format\": \"date-time\"}}, \"required\": [\"node\", \"state\", \"over\"]}}, \"jobs\": "
     "{\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": {\"job\": "
     "{\"type\": \"string\"}, \"node\": {\"type\": \"string\"}}}}}, \"required\": [\"id\", "
     "\"state\", \"cause\", \"fault\", \"scope\", \"opened\", \"nodes\", \"jobs\"]}"},
    {"IncidentList",
     "{\"type\": \"object\", \"properties\": {\"incidents\": {\"type\": \"array\", \"items\": "
     "{\"$ref\": \"#/components/schemas/Incident\"}}}, \"required\": [\"incidents\"]}"},
    {"DeviceMap",
     "{\"type\": \"object\", \"properties\": {\"runs\": {\"type\": \"array\", \"items\": "
     "{\"type\": \"array\", \"description\": \"GPU type, GPUs of a node, nodes in a row\", "
     "\"items\": {\"type\": [\"string\", \"integer\"]}, \"minItems\": 3, \"maxItems\": 3}}, "
     "\"nodes\": {\"type\": \"array\", \"items\": {\"type\": "
     "\"string\"}}, \"devices\": {\"type\": \"string\"}}, \"required\": [\"runs\", "
     "\"nodes\", \"devices\"]}"},
    {"DeviceAccounts",
     "{\"type\": \"object\", \"properties\": {\"accounts\": {\"type\": \"array\", \"items\": "
     "{\"type\": \"string\"}}, \"devices\": {\"type\": \"string\", \"description\": \"two digits "
     "of "
     "A-Z, a-z, 0-9, - and _ for each device: 0 nobody of yours, 1 several accounts, from 2 on "
     "the accounts as they are listed\"}}, \"required\": [\"accounts\", \"devices\"]}"},
    {"DeviceUse",
     "{\"type\": \"object\", \"properties\": {\"figure\": {\"type\": \"string\"}, \"unit\": "
     "{\"type\": \"string\"}, \"most\": {\"type\": \"integer\", \"description\": \"in that "
     "unit, what 64 stands for\"}, \"since\": {\"type\": [\"string\", \"null\"], \"format\": "
     "\"date-time\"}, \"until\": {\"type\": [\"string\", \"null\"], \"format\": \"date-time\"}, "
     "\"devices\": {\"type\": \"string\", \"description\": \"two hexadecimal digits for each "
     "device, from 00 to 64 (100 hundredths); -- where nothing is known\"}}, \"required\": "
     "[\"figure\", \"unit\", \"most\", \"since\", \"until\", \"devices\"]}"},
    {"Series",
     "{\"type\": \"object\", \"properties\": {\"of\": {\"type\": \"string\"}, \"name\": "
     "{\"type\": \"string\"}, \"since\": {\"type\": \"string\", \"format\": \"date-time\"}, "
     "\"until\": {\"type\": \"string\", \"format\": \"date-time\"}, \"step_seconds\": "
     "{\"type\": \"number\"}, \"figures\": {\"type\": \"object\", \"description\": \"a value "
     "for each bucket from since on; null: not known. A figure that is known nowhere is left "
     "out\", \"additionalProperties\": {\"type\": \"array\", \"items\": {\"type\": "
     "[\"number\", \"null\"]}}}}, \"required\": [\"of\", \"name\", \"since\", \"until\", "
     "\"step_seconds\", \"figures\"]}"},
    {"PastJob",
     "{\"type\": \"object\", \"properties\": {\"job\": {\"type\": \"string\"}, \"name\": "
     "{\"type\": \"string\"}, \"account\": {\"type\": \"string\"}, \"user\": {\"type\": "
     "\"string\"}, \"gpus\": {\"type\": \"number\"}, \"state\": {\"type\": \"string\"}, "
     "\"priority\": {\"type\": \"integer\"}, \"submitted\": {\"type\": \"string\", \"format\": "
     "\"date-time\"}, \"since\": {\"type\": [\"string\", \"null\"], \"format\": \"date-time\", "
     "\"description\": \"on its devices, or waiting\"}, \"until\": {\"type\": \"string\", "
     "\"format\": \"date-time\", \"description\": \"when it has to be gone\"}, \"for\": {\"type\": "
     "\"string\", \"description\": \"job that it yields to, where you may see it\"}, \"for_name\": "
     "{\"type\": \"string\"}, \"for_account\": {\"type\": \"string\"}}, \"required\": [\"job\", "
     "\"name\", \"account\", \"user\", \"gpus\", \"state\", \"priority\", \"submitted\", "
     "\"since\"]}"},
    {"PastEvent",
     "{\"type\": \"object\", \"properties\": {\"at\": {\"type\": \"string\", \"format\": "
     "\"date-time\"}, \"what\": {\"type\": \"string\"}, \"state\": {\"type\": \"string\", "
     "\"description\": \"of the job or the node afterwards\"}, \"node\": {\"type\": \"string\"}, "
     "\"job\": {\"type\": \"string\"}, \"name\": {\"type\": \"string\"}, \"account\": {\"type\": "
     "\"string\"}, \"user\": {\"type\": \"string\"}, \"gpus\": {\"type\": \"number\"}, "
     "\"lost_gpu_seconds\": {\"type\": \"number\"}, \"for\": {\"type\": \"string\"}, "
     "\"for_name\": {\"type\": \"string\"}, \"for_account\": {\"type\": \"string\"}}, "
     "\"required\": [\"at\", \"what\", \"state\"]}"},
    {"History",
     "{\"type\": \"object\", \"properties\": {\"at\": {\"type\": \"string\", \"format\": "
     "\"date-time\"}, \"from\": {\"type\": \"string\", \"format\": \"date-time\", "
     "\"description\": \"the first moment that can be asked for\"}, \"to\": {\"type\": \"string\", "
     "\"format\": \"date-time\"}, \"exact\": {\"type\": \"boolean\", \"description\": \"false: "
     "another version wrote the log, and this one decides some of it otherwise\"}, \"runs\": "
     "{\"type\": \"array\", \"items\": {\"type\": \"array\", \"description\": \"as in "
     "DeviceMap\", \"items\": {\"type\": [\"string\", \"integer\"]}, \"minItems\": 3, "
     "\"maxItems\": 3}}, \"nodes\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}, "
     "\"devices\": {\"type\": \"string\"}, \"states\": {\"type\": \"object\", \"properties\": "
     "{}, \"additionalProperties\": {\"type\": \"object\", \"properties\": {\"jobs\": {\"type\": "
     "\"integer\"}, \"gpus\": {\"type\": \"number\"}}, \"required\": [\"jobs\", \"gpus\"]}}, "
     "\"waiting\": {\"type\": \"array\", \"items\": {\"$ref\": "
     "\"#/components/schemas/PastJob\"}}, \"waiting_more\": {\"type\": \"integer\"}, "
     "\"leaving\": {\"type\": \"array\", \"items\": {\"$ref\": "
     "\"#/components/schemas/PastJob\"}}, \"leaving_more\": {\"type\": \"integer\"}, \"closed\": "
     "{\"type\": \"array\", \"description\": \"nodes that were not ready\", \"items\": {\"type\": "
     "\"object\", \"properties\": {\"name\": {\"type\": \"string\"}, \"state\": {\"type\": "
     "\"string\"}}, \"required\": [\"name\", \"state\"]}}, \"events_since\": {\"type\": "
     "\"string\", \"format\": \"date-time\"}, \"events\": {\"type\": \"array\", \"items\": "
     "{\"$ref\": \"#/components/schemas/PastEvent\"}}, \"events_more\": {\"type\": \"integer\"}}, "
     "\"required\": [\"at\", \"from\", \"to\", \"exact\", \"runs\", \"nodes\", \"devices\", "
     "\"states\", \"waiting\", \"waiting_more\", \"leaving\", \"leaving_more\", \"closed\", "
     "\"events_since\", \"events\", \"events_more\"]}"},
    {"NodeList", "{\"type\": \"object\", \"properties\": {\"nodes\": {\"type\": \"array\", "
                 "\"items\": {\"$ref\": \"#/components/schemas/Node\"}}}, \"required\": "
                 "[\"nodes\"]}"},
    {"JoinTokenSpec", "{\"type\": \"object\", \"properties\": {\"pool\": {\"type\": \"string\"}, "
                      "\"label\": {\"type\": \"string\"}, \"uses\": {\"type\": \"integer\", "
                      "\"minimum\": 1}, \"expires_in\": {\"type\": [\"string\", \"integer\"], "
                      "\"description\": \"90s, 1h30m, or seconds\"}, \"new_types\": "
                      "{\"type\": \"boolean\"}}, \"additionalProperties\": false}"},
    {"JoinToken", "{\"type\": \"object\", \"properties\": {\"id\": {\"type\": \"string\"}, "
                  "\"token\": {\"type\": \"string\"}, \"pool\": {\"type\": \"string\"}, "
                  "\"uses\": {\"type\": \"integer\"}, \"new_types\": {\"type\": \"boolean\"}, "
                  "\"expires\": {\"type\": [\"string\", \"null\"], \"format\": \"date-time\"}}, "
                  "\"required\": [\"id\", \"token\", "
                  "\"uses\"]}"},
    {"Challenge", "{\"type\": \"object\", \"properties\": {\"challenge\": {\"type\": "
                  "\"string\"}, \"agent_port\": {\"type\": \"integer\"}}, \"required\": "
                  "[\"challenge\"]}"},
    {"NodeRegistration",
     "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, "
     "\"key\": {\"type\": \"string\", \"description\": \"public key, Ed25519, hexadecimal\"}, "
     "\"machine_id\": {\"type\": \"string\"}, \"address\": {\"type\": "
     "\"string\"}, \"version\": {\"type\": \"string\"}, \"driver\": {\"type\": "
     "\"string\"}, \"cpu\": {\"type\": \"number\"}, \"ram\": {\"type\": "
     "[\"string\", \"number\"], \"description\": \"64Gi, 512Mi, or GiB\"}, "
     "\"gpu\": {\"type\": \"object\", \"properties\": {\"type\": {\"type\": "
     "\"string\"}, \"count\": {\"type\": \"integer\"}, \"vram\": {\"type\": "
     "[\"string\", \"number\"], \"description\": \"64Gi, 512Mi, or GiB\"}, "
     "\"mig\": {\"type\": \"string\"}, \"uuids\": {\"type\": \"array\", "
     "\"items\": {\"type\": \"string\"}}}, \"required\": [\"type\", \"count\"], "
     "\"additionalProperties\": false}, \"topology\": {\"type\": \"object\", "
     "\"properties\": {\"rack\": {\"type\": \"string\"}, \"block\": {\"type\": "
     "\"string\"}, \"zone\": {\"type\": \"string\"}, \"nvlink\": {\"type\": "
     "\"integer\"}, \"nvlink_domain\": {\"type\": \"string\"}}, "
     "\"additionalProperties\": false}, \"labels\": {\"type\": \"object\", "
     "\"properties\": {}, \"additionalProperties\": true}}, \"required\": "
     "[\"name\", \"machine_id\", \"cpu\", \"ram\"], \"additionalProperties\": "
     "false}"},
    {"NodeTerms", "{\"type\": \"object\", \"properties\": {\"node\": {\"type\": \"string\"}, "
                  "\"pool\": {\"type\": \"string\"}, \"session\": {\"type\": \"string\"}, "
                  "\"taken\": {\"type\": \"boolean\"}, "
                  "\"epoch\": {\"type\": \"integer\"}, \"revision\": {\"type\": \"integer\"}, "
                  "\"now_ms\": {\"type\": \"integer\"}, \"lease_ms\": {\"type\": "
                  "\"integer\"}, \"at_lease_end\": {\"type\": \"string\", \"enum\": "
                  "[\"kill\", \"keep\"]}, \"interval_ms\": {\"type\": \"integer\"}, "
                  "\"wait_ms\": {\"type\": \"integer\"}, \"log_chunk_bytes\": {\"type\": "
                  "\"integer\"}, \"state\": {\"type\": \"string\"}}, \"required\": "
                  "[\"epoch\", \"now_ms\", \"lease_ms\", \"at_lease_end\"]}"},
    {"NodeStatus",
     "{\"type\": \"object\", \"properties\": {\"epoch\": {\"type\": "
     "\"integer\"}, \"revision\": {\"type\": \"integer\"}, \"now_ms\": "
     "{\"type\": \"integer\"}, \"tasks\": {\"type\": \"array\", \"items\": "
     "{\"type\": \"object\", \"properties\": {\"job\": {\"type\": \"string\"}, "
     "\"stay\": {\"type\": \"integer\"}, \"task\": {\"type\": \"integer\"}, "
     "\"state\": {\"type\": \"string\", \"enum\": [\"starting\", \"running\", "
     "\"checkpointed\", \"paused\", \"exited\", \"failed-to-start\"]}, "
     "\"exit_code\": {\"type\": \"integer\"}, \"signal\": {\"type\": "
     "\"integer\"}, \"reason\": {\"type\": \"string\"}, \"fault\": {\"type\": "
     "\"string\", \"enum\": [\"node\"], \"description\": \"it did not start for a reason "
     "of the node\"}, \"started_ms\": "
     "{\"type\": \"integer\"}, \"ended_ms\": {\"type\": \"integer\"}}, "
     "\"required\": [\"job\", \"stay\", \"task\", \"state\"]}}, \"node\": "
     "{\"type\": \"object\", \"properties\": {\"health\": {\"type\": \"string\", "
     "\"enum\": [\"ok\", \"hold\", \"failed\"]}, \"reason\": {\"type\": \"string\"}}}, "
     "\"neighbours\": {\"type\": \"array\", \"items\": {}}, "
     "\"images\": {\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": "
     "{\"image\": {\"type\": \"string\", \"description\": \"its digest, or its path\"}, "
     "\"ready\": {\"type\": \"boolean\"}, \"reason\": {\"type\": \"string\"}}, "
     "\"required\": [\"image\", \"ready\"]}}, "
     "\"gpus\": {\"type\": \"array\", \"items\": {}}}, \"required\": [\"tasks\"]}"},
    {"DesiredState", "{\"type\": \"object\", \"properties\": {\"node\": {\"type\": \"string\"}, "
                     "\"epoch\": {\"type\": \"integer\"}, \"revision\": {\"type\": \"integer\"}, "
                     "\"now_ms\": {\"type\": \"integer\"}, \"state\": {\"type\": \"string\"}, "
                     "\"jobs\": {\"type\": \"array\", \"items\": {\"type\": \"object\", "
                     "\"properties\": {\"job\": {\"type\": \"string\"}, \"stay\": {\"type\": "
                     "\"integer\"}, \"want\": {\"type\": \"string\", \"enum\": [\"run\", "
                     "\"notify\", \"checkpoint\", \"pause\", \"stop\"]}, \"until_ms\": "
                     "{\"type\": \"integer\"}, \"deadline_ms\": {\"type\": \"integer\"}, "
                     "\"account\": {\"type\": \"string\"}, \"gpu\": {\"type\": \"string\"}, "
                     "\"level\": {\"type\": \"string\"}, \"share\": {\"type\": \"number\"}, "
                     "\"vram_mib\": {\"type\": \"integer\"}, \"cpu\": {\"type\": \"number\"}, "
                     "\"ram_mib\": {\"type\": \"integer\"}, \"on_preempt\": {\"type\": "
                     "\"string\"}, \"world_size\": {\"type\": \"integer\"}, \"hosts\": "
                     "{\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": "
                     "{\"node\": {\"type\": \"string\"}, \"address\": {\"type\": \"string\"}, "
                     "\"inside\": {\"type\": \"string\"}}}}, \"segment\": {\"type\": \"integer\"}, "
                     "\"document\": {\"type\": \"object\", \"properties\": {}, "
                     "\"additionalProperties\": true}, \"tasks\": {\"type\": \"array\", "
                     "\"items\": {\"type\": \"object\", \"properties\": {\"task\": {\"type\": "
                     "\"integer\"}, \"rank\": {\"type\": \"integer\"}, \"local_rank\": "
                     "{\"type\": \"integer\"}, \"over\": {\"type\": \"boolean\"}, \"devices\": "
                     "{\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": "
                     "{\"index\": {\"type\": \"integer\"}, \"uuid\": {\"type\": \"string\"}}}}, "
                     "\"mig\": {\"type\": \"object\", \"properties\": {\"profile\": {\"type\": "
                     "\"string\"}, \"start\": {\"type\": \"integer\"}}}}}}}, \"required\": "
                     "[\"job\", \"stay\", \"want\", \"world_size\", \"hosts\", \"document\", "
                     "\"tasks\"]}}}, \"required\": [\"node\", \"epoch\", \"revision\", "
                     "\"now_ms\", \"jobs\"]}"},
    {"LogReceipt", "{\"type\": \"object\", \"properties\": {\"next\": {\"type\": \"integer\"}, "
                   "\"dropped\": {\"type\": \"integer\"}}, \"required\": [\"next\", "
                   "\"dropped\"]}"},
    {0},
};
