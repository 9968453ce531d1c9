/*
 * Schemas of jobs and what they are written with: sizes, images, rules (api/schemas.c).
 */
#include "api/schemas.h"

#define COST_MOST                                                                                 \
    "\"estimate\": {\"type\": \"string\"}, \"cost_most_udollars\": {\"type\": [\"integer\", "     \
    "\"null\"]}, \"cost_most\": {\"type\": "                                                      \
    "[\"string\", \"null\"], \"description\": \"of a dry run: what the job costs if it runs for " \
    "its whole limit, by the dearest right and type it may get\"}, \"rate\": {\"type\": "         \
    "[\"object\", \"null\"], \"properties\": {\"basis\": {\"type\": \"string\", "                 \
    "\"description\": \"guaranteed, burst, on_demand or booked; of a job that waits, if it "      \
    "comes to borrow\"}, \"type\": {\"type\": \"string\"}, \"gpu_hour_udollars\": {\"type\": "    \
    "\"integer\"}, \"gpu_hour\": {\"type\": \"string\"}}, \"description\": \"of a dry run: what " \
    "a GPU-hour of the job would cost now\"}"

#define MAYBE "{\"type\": [\"number\", \"null\"]}"

const st_schema st_schemas_jobs[] = {
    {"JobSpec",
     "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, "
     "\"account\": {\"type\": \"string\"}, \"user\": {\"type\": \"string\"}, \"tasks\": "
     "{\"type\": \"integer\", \"minimum\": 1, \"description\": \"identical tasks that "
     "start together or not at all\"}, \"gpus\": {\"type\": \"integer\", \"minimum\": 0, "
     "\"description\": \"per task\"}, \"type\": {\"anyOf\": [{\"type\": \"string\"}, "
     "{\"type\": \"array\", \"items\": {\"type\": \"string\"}}]}, \"cpu\": {\"type\": "
     "\"number\"}, \"ram\": {\"type\": [\"string\", \"number\"], \"description\": \"64Gi, "
     "512Mi, or GiB\"}, \"level\": {\"type\": \"string\", \"enum\": [\"whole\", \"mig\", "
     "\"mps\", \"time\"]}, \"profile\": {\"type\": \"string\", \"description\": \"MIG "
     "profile: 1g, 3g, 3g.40gb\"}, \"share\": {\"type\": \"number\"}, \"vram\": "
     "{\"type\": [\"string\", \"number\"], \"description\": \"64Gi, 512Mi, or GiB\"}, "
     "\"topology\": {\"$ref\": \"#/components/schemas/JobTopology\"}, "
     "\"priority\": {\"type\": [\"string\", \"integer\"], \"description\": \"low, normal, "
     "high or a number\"}, \"limit\": {\"type\": [\"string\", \"integer\"], "
     "\"description\": \"90s or 1h30m\"}, \"on_preempt\": {\"type\": \"string\", "
     "\"enum\": [\"checkpoint\", \"pause\", \"requeue\", \"cancel\"]}, \"grace\": {\"type\": "
     "[\"string\", \"integer\"]}, \"on_fault\": "
     "{\"type\": \"string\", \"enum\": [\"requeue\", \"fail\"]}, \"latency_critical\": "
     "{\"type\": \"boolean\"}, \"rdma\": {\"type\": \"boolean\"}, \"terminal\": {\"type\": "
     "\"boolean\"}, \"stdin\": {\"type\": \"boolean\"}, \"hard_share\": {\"type\": "
     "\"boolean\", \"description\": "
     "\"never more than the share\"}, \"gpu_time\": {\"type\": [\"string\", \"integer\"], "
     "\"description\": \"per task: 1h30m\"}, \"pool\": {\"type\": "
     "\"string\"}, \"command\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}, "
     "\"script\": {\"type\": \"string\"}, \"env\": {\"type\": \"object\", \"properties\": "
     "{}, \"additionalProperties\": true, \"description\": \"in answers the values are "
     "null for all but the job's user\"}, \"secrets\": {\"$ref\": "
     "\"#/components/schemas/JobSecrets\"}, \"image\": {\"type\": \"string\"}, \"workdir\": "
     "{\"type\": "
     "\"string\"}, \"network\": {\"type\": \"string\", \"enum\": [\"none\", \"host\", "
     "\"tenant\"]}, \"signal\": {\"type\": [\"string\", \"integer\"]}, \"notify_signal\": "
     "{\"type\": [\"string\", \"integer\"]}, \"booking\": {\"type\": \"string\", "
     "\"description\": \"booking to run in\"}, \"begin\": {\"type\": \"string\", "
     "\"description\": \"not before; a time in zone\"}, \"end_by\": {\"type\": "
     "\"string\", \"description\": \"over by then; a time in zone\"}, \"by\": {\"type\": "
     "\"string\", \"description\": \"deadline; a time in zone\"}, \"hard\": {\"type\": "
     "\"boolean\", \"description\": \"admit the job only if a place in the calendar is "
     "kept for it\"}, \"zone\": {\"type\": \"string\", \"description\": "
     "\"time zone, default UTC\"}, \"slot\": {\"type\": \"string\", \"description\": "
     "\"series of bookings in whose windows it runs\"}, \"workload\": {\"type\": "
     "\"string\"}, \"size\": {\"type\": \"string\"}, "
     "\"node_labels\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}, "
     "\"exclude_nodes\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}, \"labels\": "
     "{\"type\": \"object\", "
     "\"properties\": {}, \"additionalProperties\": true}, \"sim\": {\"$ref\": "
     "\"#/components/schemas/JobSim\"}, \"model\": {\"type\": [\"string\", \"integer\"]}, "
     "\"dtype\": {\"type\": [\"string\", \"integer\"]}, \"context\": {\"type\": "
     "[\"string\", \"integer\"]}, \"method\": {\"type\": [\"string\", \"integer\"]}, "
     "\"attention\": {\"type\": [\"string\", \"integer\"]}, \"frames\": {\"type\": "
     "[\"string\", \"integer\"]}, \"concurrency\": {\"type\": [\"integer\", \"string\"]}, "
     "\"batch_size\": {\"type\": [\"integer\", \"string\"]}, \"chunk\": {\"type\": "
     "[\"integer\", \"string\"]}, \"fps\": {\"type\": [\"integer\", \"string\"]}, "
     "\"comment\": {\"type\": \"string\"}, \"after\": {\"$ref\": "
     "\"#/components/schemas/JobAfter\"}, \"if_never\": {\"type\": \"string\", \"enum\": "
     "[\"cancel\", \"keep\"]}, \"hold\": {\"type\": \"boolean\"}, \"throttle\": "
     "{\"type\": \"integer\", \"minimum\": 1, \"description\": \"of an array: how many of "
     "its jobs run at a time\"}, \"retries\": {\"type\": \"integer\", \"minimum\": 0, "
     "\"maximum\": 100}, \"retry_after\": {\"type\": [\"string\", \"integer\"]}, "
     "\"retry_max\": {\"type\": [\"string\", \"integer\"]}, \"retry_on\": {\"anyOf\": "
     "[{\"type\": \"string\"}, {\"type\": \"array\", \"items\": {\"type\": \"string\", "
     "\"enum\": [\"exit\", \"timeout\"]}}]}, \"duration\": {\"type\": [\"string\", "
     "\"integer\"], \"description\": \"90s, 1h30m, or seconds\"}, \"estimate\": "
     "{\"type\": \"string\"}, \"array\": {\"$ref\": \"#/components/schemas/JobArray\"}}, "
     "\"additionalProperties\": false}"},
    {"JobAfter", "{\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"object\", \"properties\": "
                 "{\"job\": {\"type\": \"string\"}, \"end\": {\"type\": \"string\", \"enum\": "
                 "[\"any\", \"ok\", \"fail\"]}, \"each\": {\"type\": \"boolean\"}, \"only\": "
                 "{\"type\": \"boolean\"}}, \"required\": [\"job\"], \"additionalProperties\": "
                 "false}, {\"type\": \"array\", \"maxItems\": 64, \"items\": {}}], "
                 "\"description\": \"jobs or arrays "
                 "that must end before\"}"},
    {"JobTopology",
     "{\"type\": \"object\", \"properties\": {\"require\": {\"type\": \"string\"}, \"prefer\": "
     "{\"type\": \"string\"}}, \"additionalProperties\": false}"},
    {"JobSecrets",
     "{\"type\": \"object\", \"properties\": {}, \"additionalProperties\": true, "
     "\"description\": \"NAME: SECRET puts the secret into /run/stint/secrets/NAME; NAME: "
     "{secret: SECRET, as: env} also into a variable\"}"},
    {"JobSim", "{\"type\": \"object\", \"properties\": {\"run\": {\"type\": [\"string\", "
               "\"integer\"], \"description\": \"90s, 1h30m, or seconds\"}, \"exit\": {\"type\": "
               "\"integer\"}, \"save\": {\"type\": [\"string\", \"integer\"], \"description\": "
               "\"90s, 1h30m, or seconds\"}}, \"additionalProperties\": true, \"description\": "
               "\"how long and to what end, under the simulated engine\"}"},
    {"JobArray", "{\"anyOf\": [{\"type\": \"object\", \"properties\": {\"count\": {\"type\": "
                 "\"integer\", \"minimum\": 1, \"maximum\": 10000}, \"range\": {\"type\": "
                 "\"string\"}}, \"additionalProperties\": false}, {\"type\": \"string\"}], "
                 "\"description\": \"{count: 100} or 1-100: one job for each\"}"},
    {"Array", "{\"type\": \"object\", \"properties\": {\"array\": {\"type\": \"string\"}, "
              "\"name\": {\"type\": \"string\"}, \"jobs\": {\"type\": \"integer\"}, "
              "\"states\": {\"type\": \"object\", \"properties\": {}, "
              "\"additionalProperties\": {\"type\": \"integer\"}}, \"frames\": {\"type\": "
              "\"integer\"}, \"frames_done\": {\"type\": \"integer\"}}, \"required\": "
              "[\"array\", \"jobs\", \"states\"]}"},
    {"Submitted", "{\"anyOf\": [{\"$ref\": \"#/components/schemas/Job\"}, {\"$ref\": "
                  "\"#/components/schemas/ArrayMade\"}]}"},
    {"SubmitAnswered",
     "{\"anyOf\": [{\"$ref\": \"#/components/schemas/Why\"}, {\"$ref\": "
     "\"#/components/schemas/Job\"}, {\"$ref\": \"#/components/schemas/ArrayMade\"}]}"},
    {"ArrayMade",
     "{\"type\": \"object\", \"properties\": {\"array\": {\"type\": \"string\"}, \"jobs\": "
     "{\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": {\"id\": "
     "{\"type\": \"string\"}}, \"required\": [\"id\"]}}}, \"required\": [\"array\", "
     "\"jobs\"]}"},
    {"ArrayChange", "{\"type\": \"object\", \"properties\": {\"array\": {\"type\": "
                    "\"string\", \"readOnly\": true}, \"throttle\": {\"type\": [\"integer\", "
                    "\"null\"], \"description\": \"how many of its jobs run at a time; null: as "
                    "many as there is room for\"}}, \"required\": [\"throttle\"], "
                    "\"additionalProperties\": false}"},
    {"ArrayCancelled",
     "{\"type\": \"object\", \"properties\": {\"array\": {\"type\": \"string\"}, \"name\": "
     "{\"type\": \"string\"}, \"jobs\": {\"type\": \"integer\"}, \"cancelled\": {\"type\": "
     "\"integer\"}}, \"required\": [\"array\", \"jobs\", \"cancelled\"]}"},
    {"SizeSpec", "{\"type\": \"object\", \"properties\": {\"about\": {\"type\": \"string\"}}, "
                 "\"additionalProperties\": true, \"description\": \"keys of a job: gpus, "
                 "tasks, type, cpu, ram, level, profile, share, vram, limit ...\"}"},
    {"SizeList", "{\"type\": \"object\", \"properties\": {\"sizes\": {\"type\": \"array\", "
                 "\"items\": {\"type\": \"object\", \"properties\": {\"name\": {\"type\": "
                 "\"string\"}, \"account\": {\"type\": \"string\"}, \"builtin\": {\"type\": "
                 "\"boolean\"}, \"version\": {\"type\": \"integer\"}, \"size\": {\"type\": "
                 "\"object\", \"properties\": {}, "
                 "\"additionalProperties\": true}}}}}, \"required\": [\"sizes\"]}"},
    {"ClassSpec",
     "{\"type\": \"object\", \"properties\": {\"lowest\": {\"type\": \"integer\", "
     "\"description\": \"priority\"}, \"highest\": {\"type\": \"integer\"}, \"priority\": "
     "{\"type\": \"integer\", \"description\": \"of jobs that name none\"}, \"preempt\": "
     "{\"type\": \"boolean\", \"description\": \"false: its jobs preempt nobody of their "
     "account, and nobody while they borrow\"}, \"accounts\": {\"type\": [\"string\", "
     "\"array\"], \"items\": {\"type\": \"string\"}, \"description\": \"all, or a list; with "
     "all below them\"}, \"roles\": {\"type\": [\"string\", \"array\"], \"items\": {\"type\": "
     "\"string\"}}, \"about\": {\"type\": \"string\"}}, \"required\": [\"lowest\", "
     "\"highest\", \"priority\"], \"additionalProperties\": false}"},
    {"ClassList",
     "{\"type\": \"object\", \"properties\": {\"classes\": {\"type\": \"array\", \"items\": "
     "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, \"builtin\": "
     "{\"type\": \"boolean\"}, \"version\": {\"type\": \"integer\"}, \"lowest\": {\"type\": "
     "\"integer\"}, \"highest\": {\"type\": \"integer\"}, \"priority\": {\"type\": "
     "\"integer\"}, \"preempt\": {\"type\": \"boolean\"}, \"price\": {\"type\": \"string\", "
     "\"description\": \"of the price book, for its jobs\"}, \"accounts\": {\"type\": "
     "[\"string\", \"array\"], \"items\": {\"type\": \"string\"}, \"description\": \"for the "
     "owner\"}, \"roles\": {\"type\": [\"string\", \"array\"], \"items\": {\"type\": "
     "\"string\"}}, \"about\": {\"type\": \"string\"}}, \"required\": [\"name\", \"builtin\", "
     "\"version\", \"lowest\", \"highest\", \"priority\", \"preempt\", \"price\", "
     "\"roles\"], \"additionalProperties\": false}}}, \"required\": [\"classes\"], "
     "\"additionalProperties\": false}"},
    {"ImageSpec",
     "{\"type\": \"object\", \"properties\": {\"folder\": {\"type\": \"string\", \"description\": "
     "\"a root file system on the nodes\"}, \"layout\": {\"type\": \"string\", \"description\": "
     "\"an OCI image layout on the nodes\"}, \"digest\": {\"type\": \"string\", "
     "\"description\": \"of the layout's manifest: sha256 and 64 hex digits\"}, \"trust\": "
     "{\"type\": \"string\", \"enum\": [\"trusted\", \"untrusted\"]}, \"accounts\": {\"type\": "
     "[\"string\", \"array\"], \"items\": {\"type\": \"string\"}, \"description\": \"who may use "
     "it: "
     "all, or a list of accounts\"}, \"about\": {\"type\": \"string\"}}, \"required\": "
     "[\"accounts\"], \"additionalProperties\": false}"},
    {"Image",
     "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, \"kind\": "
     "{\"type\": "
     "\"string\", \"enum\": [\"folder\", \"layout\"]}, \"trust\": {\"type\": \"string\"}, "
     "\"version\": {\"type\": \"integer\"}, "
     "\"digest\": {\"type\": \"string\"}, \"about\": {\"type\": \"string\"}, \"path\": {\"type\": "
     "\"string\", \"description\": \"for the owner\"}, \"accounts\": {\"type\": [\"string\", "
     "\"array\"], \"items\": {\"type\": \"string\"}, \"description\": \"for the owner\"}}, "
     "\"required\": [\"name\", \"kind\", \"trust\"]}"},
    {"ImageList", "{\"type\": \"object\", \"properties\": {\"images\": {\"type\": \"array\", "
                  "\"items\": {\"$ref\": \"#/components/schemas/Image\"}}}, \"required\": "
                  "[\"images\"]}"},
    {"RuleText", "{\"type\": \"string\", \"description\": \"Lua 5.4: function submit(job, "
                 "who), see the manual of rules\"}"},
    {"RuleList", "{\"type\": \"object\", \"properties\": {\"rules\": {\"type\": \"array\", "
                 "\"items\": {\"type\": \"object\", \"properties\": {\"name\": {\"type\": "
                 "\"string\"}, \"version\": {\"type\": \"integer\"}, \"text\": {\"type\": "
                 "\"string\"}, \"calls\": {\"type\": "
                 "\"integer\"}, \"refused\": {\"type\": \"integer\"}, \"failed\": {\"type\": "
                 "\"integer\"}, \"last_error\": {\"type\": [\"string\", \"null\"]}}}}}, "
                 "\"required\": [\"rules\"]}"},
    {"Job",
     "{\"type\": \"object\", \"properties\": {\"id\": {\"type\": \"string\"}, "
     "\"name\": {\"type\": \"string\"}, \"account\": {\"type\": \"string\"}, "
     "\"user\": {\"type\": \"string\"}, \"state\": {\"type\": \"string\", "
     "\"enum\": [\"pending\", \"running\", \"notified\", \"checkpointing\", "
     "\"paused\", \"stopping\", \"done\", \"failed\", \"timeout\", \"cancelled\"]}, \"class\": "
     "{\"type\": \"string\"}, \"priority\": {\"type\": \"integer\"}, \"priority_class\": "
     "{\"type\": \"string\"}, \"gpus\": "
     "{\"type\": \"number\"}, \"submitted\": {\"type\": [\"string\", \"null\"], "
     "\"format\": \"date-time\"}, \"started\": {\"type\": [\"string\", \"null\"], "
     "\"format\": \"date-time\"}, \"ended\": {\"type\": [\"string\", \"null\"], "
     "\"format\": \"date-time\"}, \"exit_code\": {\"type\": [\"integer\", "
     "\"null\"]}, \"reason\": {\"type\": \"string\"}, \"preemptions\": {\"type\": "
     "\"integer\"}, \"lost_gpu_seconds\": {\"type\": \"number\"}, \"run_seconds\": "
     "{\"type\": \"number\"}, \"limit_seconds\": {\"type\": [\"number\", \"null\"], "
     "\"description\": \"its time limit, if that was changed; null: none\"}, \"deadline\": "
     "{\"type\": \"object\", \"properties\": {\"by\": {\"type\": \"string\", \"format\": "
     "\"date-time\"}, \"hard\": {\"type\": \"boolean\"}, \"state\": {\"type\": \"string\", "
     "\"enum\": [\"open\", \"promised\", \"at_risk\", \"met\", \"missed\"]}}, \"required\": "
     "[\"by\", \"hard\", \"state\"]}, \"on_hold\": {\"type\": \"string\", \"enum\": "
     "[\"user\", \"admin\"], \"description\": \"who holds it back\"}, \"retries_used\": "
     "{\"type\": \"integer\"}, \"retry_at\": {\"type\": \"string\", \"format\": "
     "\"date-time\", \"description\": \"it failed and is tried again then\"}, "
     "\"running_since\": "
     "{\"type\": \"string\", \"format\": "
     "\"date-time\"}, \"array\": "
     "{\"type\": \"string\"}, \"placement\": {\"type\": [\"object\", \"null\"], "
     "\"properties\": {\"stay\": {\"type\": \"integer\"}, \"ran_ms\": {\"type\": "
     "\"integer\"}, \"since_ms\": {\"type\": \"integer\"}, \"limit_ms\": {\"type\": \"integer\"}, "
     "\"held_by\": {\"type\": \"integer\"}, \"tries\": {\"type\": \"integer\"}, "
     "\"retry_ms\": {\"type\": \"integer\"}, "
     "\"by_ms\": {\"type\": \"integer\"}, \"hard\": {\"type\": \"integer\"}, \"at_risk\": "
     "{\"type\": \"integer\"}, "
     "\"type\": {\"type\": "
     "\"string\"}, \"grants\": {\"type\": \"array\", \"items\": {\"type\": "
     "\"object\", \"properties\": {\"node\": {\"type\": \"string\"}, \"gpus\": "
     "{\"type\": \"array\", \"items\": {\"type\": \"integer\"}}, \"mig_start\": "
     "{\"type\": \"integer\"}, \"usage\": {\"type\": \"object\"}, \"scrub\": "
     "{\"type\": \"object\"}}}}, \"usage\": {\"type\": \"object\"}}}, \"spec\": {\"type\": "
     "\"object\", \"properties\": {}, \"additionalProperties\": true}}, \"required\": "
     "[\"id\", \"name\", \"account\", \"user\", \"state\", \"submitted\"]}"},
    {"JobBatch", "{\"type\": \"object\", \"properties\": {\"jobs\": {\"type\": \"array\", "
                 "\"items\": {\"$ref\": \"#/components/schemas/JobSpec\"}, \"minItems\": 1, "
                 "\"maxItems\": 10000}}, \"required\": [\"jobs\"], \"additionalProperties\": "
                 "false}"},
    {"JobBatchResult", "{\"type\": \"object\", \"properties\": {\"jobs\": {\"type\": \"array\", "
                       "\"items\": {\"type\": \"object\", \"properties\": {\"id\": {\"type\": "
                       "\"string\"}, \"code\": {\"type\": \"string\"}, \"detail\": {\"type\": "
                       "\"string\"}}}}, \"array\": {\"type\": \"string\"}}, \"required\": "
                       "[\"jobs\"]}"},
    {"NeighbourList",
     "{\"type\": \"object\", \"properties\": {\"neighbours\": {\"type\": \"array\", "
     "\"items\": {\"type\": \"object\", \"properties\": {\"job\": {\"type\": \"string\"}, "
     "\"name\": {\"type\": \"string\"}, \"account\": {\"type\": \"string\"}, \"side\": "
     "{\"type\": \"string\", \"enum\": [\"slowed\", \"slows\"]}, \"state\": {\"type\": "
     "\"string\", \"enum\": [\"confirmed\", \"acting\", \"held\", \"unsolved\", \"over\", "
     "\"unexplained\"]}, \"action\": {\"type\": \"string\"}, \"node\": {\"type\": "
     "\"string\"}, \"gpu\": {\"type\": \"integer\"}, \"p99_ratio\": {\"type\": \"number\"}, "
     "\"p99_ratio_now\": {\"type\": \"number\"}, \"since\": {\"type\": \"string\", \"format\": "
     "\"date-time\"}, \"last\": {\"type\": \"string\", \"format\": \"date-time\"}, \"times\": "
     "{\"type\": \"integer\"}, \"text\": {\"type\": \"string\"}, \"other\": {\"type\": "
     "\"string\", \"description\": \"the other job, where you see both\"}}, \"required\": "
     "[\"job\", \"side\", \"state\", \"text\"]}}}, \"required\": [\"neighbours\"]}"},
    {"JobList", "{\"type\": \"object\", \"properties\": {\"jobs\": {\"type\": \"array\", "
                "\"items\": {\"$ref\": \"#/components/schemas/Job\"}}, \"next\": {\"type\": "
                "\"string\"}}, \"required\": [\"jobs\"]}"},
    {"JobChange", "{\"type\": \"object\", \"properties\": {\"priority\": {\"type\": "
                  "[\"string\", \"integer\"]}, \"limit\": {\"type\": [\"string\", \"integer\"], "
                  "\"description\": \"90s, 1h30m, or seconds; none\"}, \"hold\": {\"type\": "
                  "\"boolean\", \"description\": \"true holds it, false releases it\"}}, "
                  "\"minProperties\": 1, "
                  "\"maxProperties\": 1, \"additionalProperties\": false}"},
    {"JobUse",
     "{\"type\": \"object\", \"properties\": {\"job\": {\"type\": \"string\"}, \"state\": "
     "{\"type\": \"string\"}, \"at\": {\"type\": \"string\", \"format\": \"date-time\"}, "
     "\"cost\": {\"type\": \"string\"}, \"cost_udollars\": {\"type\": \"integer\"}, \"memory\": "
     "{\"type\": \"object\", \"properties\": {\"asked_mib\": {\"type\": \"integer\", "
     "\"description\": \"GPU memory of one task\"}, \"estimated_mib\": {\"type\": \"integer\", "
     "\"description\": \"what the estimate says of its model today\"}, "
     "\"peak_mib\": {\"type\": \"integer\", "
     "\"description\": \"the most a task had in use at once\"}}}, \"gpu\": {\"type\": \"object\", "
     "\"properties\": {\"busy\": " MAYBE ", \"sm\": " MAYBE ", \"watts\": " MAYBE
     ", \"memory_mib\": " MAYBE ", \"celsius\": " MAYBE "}, \"description\": \"of one GPU, on "
     "average; null: nobody measured it\"}, \"sums\": {\"type\": \"object\", "
     "\"additionalProperties\": {\"type\": \"integer\"}, \"properties\": {}, \"description\": "
     "\"over all tasks: of this start while the job runs, of all of them afterwards\"}, "
     "\"estimate\": {\"type\": \"string\"}, \"suggestions\": {\"type\": \"array\", \"items\": "
     "{\"type\": \"string\"}}}, \"required\": [\"job\", \"state\", \"cost\", \"memory\", "
     "\"gpu\", \"sums\", \"suggestions\"]}"},
    {"Why",
     "{\"type\": \"object\", \"properties\": {\"job\": {\"type\": \"string\"}, "
     "\"state\": {\"type\": \"string\"}, \"reasons\": {\"type\": \"array\", "
     "\"items\": {\"type\": \"object\", \"properties\": {\"code\": {\"type\": "
     "\"string\"}, \"blocks\": {\"type\": \"boolean\"}, \"text\": {\"type\": "
     "\"string\"}, \"until\": {\"type\": [\"string\", \"null\"], \"format\": "
     "\"date-time\"}, \"measure\": {\"type\": \"object\", \"description\": \"the numbers of "
     "the reason: used and asked against the bound\", \"properties\": {\"unit\": {\"type\": "
     "\"string\", \"enum\": [\"gpu\", \"tasks\"]}, \"used\": {\"type\": \"number\"}, "
     "\"asked\": {\"type\": \"number\"}, \"bound\": {\"type\": \"number\"}}, \"required\": "
     "[\"unit\", \"used\", \"asked\", \"bound\"]}}, \"required\": [\"code\", \"blocks\", "
     "\"text\"]}}, \"priority_class\": {\"type\": \"object\", \"properties\": {\"name\": "
     "{\"type\": \"string\"}, \"lowest\": {\"type\": \"integer\"}, \"highest\": {\"type\": "
     "\"integer\"}, \"priority\": {\"type\": \"integer\", \"description\": \"of the job\"}, "
     "\"preempt\": {\"type\": \"boolean\", \"description\": \"whether the job has the right, "
     "as its class was when it was submitted\"}}, \"required\": [\"name\", \"priority\", "
     "\"preempt\"]}, "
     "\"start_estimate\": {\"type\": [\"string\", \"null\"], \"format\": "
     "\"date-time\"}, \"start_earliest\": {\"type\": [\"string\", \"null\"], "
     "\"format\": \"date-time\"}, \"start_latest\": {\"type\": [\"string\", "
     "\"null\"], \"format\": \"date-time\"}, \"estimates_seen\": {\"type\": "
     "\"integer\"}, \"deadline\": {\"type\": \"string\", \"enum\": [\"open\", \"promised\", "
     "\"at_risk\", \"met\", \"missed\"]}, \"deadline_by\": {\"type\": \"string\", \"format\": "
     "\"date-time\"}, \"deadline_odds_percent\": {\"type\": \"integer\", "
     "\"description\": \"of a soft deadline: how likely it is met, if the job runs to its "
     "limit\"}, " COST_MOST "}, \"required\": [\"job\", \"state\", \"reasons\"]}"},
    {"WhatIf",
     "{\"type\": \"object\", \"properties\": {\"job\": {\"$ref\": "
     "\"#/components/schemas/JobSpec\"}, "
     "\"variants\": {\"type\": \"array\", \"minItems\": 1, \"maxItems\": 16, \"description\": "
     "\"fields "
     "of the job that are different, one try for each; without any the job is tried as it is\", "
     "\"items\": {\"type\": \"object\", \"additionalProperties\": true}}, \"accounts\": {\"type\": "
     "\"array\", \"minItems\": 1, \"maxItems\": 64, \"description\": \"changes of accounts that "
     "are made "
     "before each try\", \"items\": {\"$ref\": \"#/components/schemas/AccountSpec\"}}}, "
     "\"additionalProperties\": false}"},
    {"WhatIfAnswer",
     "{\"type\": \"object\", \"properties\": {\"answers\": {\"type\": \"array\", \"items\": "
     "{\"type\": "
     "\"object\", \"properties\": {\"variant\": {\"type\": \"object\", \"additionalProperties\": "
     "true}, "
     "\"job\": {\"type\": \"string\"}, \"state\": {\"type\": \"string\"}, \"reasons\": {\"type\": "
     "\"array\", \"items\": {\"type\": \"object\", \"additionalProperties\": true}}, "
     "\"start_estimate\": {\"type\": [\"string\", \"null\"], \"format\": \"date-time\"}, "
     "\"start_earliest\": {\"type\": [\"string\", \"null\"], \"format\": \"date-time\"}, "
     "\"start_latest\": {\"type\": [\"string\", \"null\"], \"format\": \"date-time\"}, "
     "\"estimates_seen\": {\"type\": \"integer\"}, " COST_MOST
     ", \"displaces\": {\"type\": \"array\", \"items\": "
     "{\"$ref\": \"#/components/schemas/WhatIfJob\"}}, \"code\": {\"type\": \"string\"}, "
     "\"detail\": {\"type\": \"string\"}}, \"required\": [\"variant\", \"state\", \"reasons\"]}}, "
     "\"accounts\": {\"type\": \"object\", \"properties\": {\"starts\": {\"type\": \"array\", "
     "\"items\": {\"$ref\": \"#/components/schemas/WhatIfJob\"}}, \"displaces\": {\"type\": "
     "\"array\", \"items\": {\"$ref\": \"#/components/schemas/WhatIfJob\"}}}, \"required\": "
     "[\"starts\", \"displaces\"]}}, \"required\": [\"answers\"]}"},
    {"WhatIfJob",
     "{\"type\": \"object\", \"properties\": {\"job\": {\"type\": \"string\"}, \"name\": "
     "{\"type\": "
     "\"string\"}, \"account\": {\"type\": \"string\"}}, \"required\": [\"job\", \"name\", "
     "\"account\"]}"},
    {"JobCounts", "{\"type\": \"object\", \"properties\": {\"account\": {\"type\": \"string\"}, "
                  "\"states\": {\"type\": \"object\", \"additionalProperties\": {\"type\": "
                  "\"object\", \"properties\": {\"jobs\": {\"type\": \"integer\"}, \"gpus\": "
                  "{\"type\": \"number\"}}}}, \"by\": {\"type\": \"string\"}, \"groups\": "
                  "{\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": "
                  "{\"key\": {\"type\": \"string\"}, \"jobs\": {\"type\": \"integer\"}, "
                  "\"waiting\": {\"type\": \"integer\"}, \"gpus\": {\"type\": \"number\"}}, "
                  "\"required\": [\"key\", \"jobs\", \"waiting\", \"gpus\"]}}, \"groups_more\": "
                  "{\"type\": \"integer\"}}, \"required\": [\"account\", \"states\"]}"},
    {"TunnelSpec",
     "{\"type\": \"object\", \"properties\": {\"kind\": {\"type\": \"string\", \"enum\": "
     "[\"exec\", \"forward\", \"attach\"]}, \"task\": {\"type\": \"integer\", \"minimum\": 0}, "
     "\"command\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"description\": \"of "
     "exec\"}, \"tty\": {\"type\": \"boolean\", \"description\": \"of exec: give it a terminal\"}, "
     "\"rows\": {\"type\": \"integer\"}, \"cols\": {\"type\": \"integer\"}, \"term\": {\"type\": "
     "\"string\", \"description\": \"its kind, as in TERM\"}, \"port\": {\"type\": \"integer\", "
     "\"minimum\": 1, \"maximum\": 65535, \"description\": \"of forward: on 127.0.0.1 in the "
     "task's "
     "own network\"}, \"read_only\": {\"type\": \"boolean\", \"description\": \"of attach: only "
     "watch\"}, \"from\": {\"type\": \"integer\", \"description\": \"of attach: byte of the output "
     "to "
     "begin at; below 0: so many before its end\"}}, \"required\": [\"kind\"], "
     "\"additionalProperties\": false}"},
    {"Tunnel",
     "{\"type\": \"object\", \"properties\": {\"id\": {\"type\": \"string\"}, \"kind\": {\"type\": "
     "\"string\"}, \"job\": {\"type\": \"string\"}, \"task\": {\"type\": \"integer\"}, \"stay\": "
     "{\"type\": \"integer\"}}, \"required\": [\"id\", \"kind\", \"job\", \"task\", \"stay\"]}"},
    {"TunnelList",
     "{\"type\": \"object\", \"properties\": {\"tunnels\": {\"type\": \"array\", \"items\": "
     "{\"type\": \"object\", \"properties\": {\"id\": {\"type\": \"string\"}, \"kind\": {\"type\": "
     "\"string\"}, \"job\": {\"type\": \"string\"}, \"task\": {\"type\": \"integer\"}, "
     "\"account\": "
     "{\"type\": \"string\"}, \"by\": {\"type\": \"string\"}, \"connections\": {\"type\": "
     "\"integer\"}, \"seconds\": {\"type\": \"integer\"}}}}}, \"required\": [\"tunnels\"]}"},
    {0},
};
