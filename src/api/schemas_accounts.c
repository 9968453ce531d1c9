/*
 * Schemas of accounts, people, their tokens and secrets, and the site they are on (api/schemas.c).
 */
#include "api/schemas.h"

#define NOTICE_WORDS \
    "[\"start\", \"end\", \"fail\", \"preempt\", \"budget\", \"incident\", \"booking\"]"
#define NOTICE_FIELDS                                                                           \
    "\"name\": {\"type\": \"string\"}, \"account\": {\"type\": \"string\"}, \"by\": "           \
    "{\"type\": \"string\"}, \"on\": {\"type\": \"array\", \"items\": {\"type\": "              \
    "\"string\"}}, \"jobs\": {\"type\": \"string\"}, \"by_way_of\": {\"type\": \"string\"}, "   \
    "\"to\": {\"type\": \"string\", \"description\": \"of a webhook its host\"}, \"created\": " \
    "{\"type\": [\"string\", \"null\"], \"format\": \"date-time\"}"
#define VOLUME                                                                                 \
    "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, \"account\": "  \
    "{\"type\": \"string\", \"description\": \"empty: an account above yours\"}, \"below\": "  \
    "{\"type\": \"string\"}, \"size_mib\": {\"type\": \"integer\"}, \"about\": {\"type\": "    \
    "\"string\"}, \"version\": {\"type\": \"integer\"}, \"created\": {\"type\": [\"string\", " \
    "\"null\"], \"format\": \"date-time\"}, \"by\": {\"type\": \"string\"}"
#define VOLUME_NEEDS "[\"name\", \"account\", \"below\", \"size_mib\", \"about\"]"

const st_schema st_schemas_accounts[] = {
    {"Identity", "{\"type\": \"object\", \"properties\": {\"user\": {\"type\": \"string\"}, "
                 "\"account\": {\"type\": \"string\"}, \"role\": {\"type\": \"string\"}, "
                 "\"version\": {\"type\": \"string\"}}, \"required\": [\"user\", \"account\", "
                 "\"role\", \"version\"]}"},
    {"Roles", "{\"type\": \"object\", \"properties\": {\"roles\": {\"type\": \"array\", "
              "\"items\": {\"type\": \"object\", \"properties\": {\"role\": {\"type\": "
              "\"string\"}, \"may\": {\"type\": \"string\"}}, \"required\": [\"role\", "
              "\"may\"]}}}, \"required\": [\"roles\"]}"},
    {"ViewList",
     "{\"type\": \"object\", \"properties\": {\"views\": {\"type\": \"array\", \"items\": "
     "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, \"page\": "
     "{\"type\": \"string\", \"description\": \"page of the console\"}, \"query\": {\"type\": "
     "\"string\", \"description\": \"what stands behind the ? of its address\"}, \"saved\": "
     "{\"type\": \"string\", \"format\": \"date-time\"}}, \"required\": [\"name\", \"page\", "
     "\"query\", \"saved\"]}}}, \"required\": [\"views\"]}"},
    {"ViewSpec",
     "{\"type\": \"object\", \"properties\": {\"page\": {\"type\": \"string\", \"enum\": "
     "[\"jobs\"]}, \"query\": {\"type\": \"string\", \"maxLength\": 2000, \"description\": "
     "\"what stands behind the ? of the page's address, encoded as there\"}}, \"required\": "
     "[\"page\", \"query\"], \"additionalProperties\": false}"},
    {"AccountSpec",
     "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, "
     "\"parent\": {\"type\": \"string\"}, \"guarantee\": {\"type\": \"object\", "
     "\"properties\": {}, \"additionalProperties\": true}, \"max\": {\"type\": "
     "\"object\", \"properties\": {}, \"additionalProperties\": true}, "
     "\"weight\": {\"type\": \"number\"}, \"priority\": {\"type\": \"integer\"}, "
     "\"limits\": {\"type\": \"object\", \"properties\": {\"job\": {\"type\": "
     "\"object\", \"properties\": {}, \"additionalProperties\": true}, \"user\": "
     "{\"type\": \"object\", \"properties\": {}, \"additionalProperties\": "
     "true}, \"booking\": {\"type\": \"object\", \"description\": \"what it and those "
     "below it may have booked: gpu_hours ahead, concurrent windows, length of one, lead before "
     "it begins; none: no limit\", \"properties\": {}, \"additionalProperties\": true}}, "
     "\"additionalProperties\": false}, \"trust\": {\"type\": \"string\", "
     "\"enum\": [\"inherit\", \"trusted\", \"untrusted\"]}, \"trust_domain\": "
     "{\"type\": \"string\", \"enum\": [\"inherit\", \"own\"]}, \"min_run\": "
     "{\"type\": [\"string\", \"integer\"], \"description\": \"90s, 1h30m, or "
     "seconds\"}, \"force\": {\"type\": \"boolean\", \"description\": \"although the "
     "nodes cannot carry the guarantee, and floors shrink; owners only\"}}, "
     "\"additionalProperties\": false}"},
    {"Account", "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, "
                "\"id\": {\"type\": \"integer\"}, "
                "\"parent\": {\"type\": [\"string\", \"null\"]}, \"guarantee\": {\"type\": "
                "\"object\", \"properties\": {\"gpu\": {\"type\": \"number\"}, \"cpu\": "
                "{\"type\": \"number\"}, \"ram_mib\": {\"type\": \"integer\"}}, "
                "\"additionalProperties\": true, \"description\": \"gpu over all types, and "
                "each type by its name\"}, \"max\": {\"type\": \"object\", \"properties\": "
                "{\"gpu\": {\"type\": \"number\"}, \"cpu\": {\"type\": \"number\"}, "
                "\"ram_mib\": {\"type\": \"integer\"}}, \"additionalProperties\": true, "
                "\"description\": \"gpu over all types, and each type by its name\"}, "
                "\"weight\": {\"type\": \"number\"}, \"priority\": {\"type\": \"integer\"}, "
                "\"limits\": {\"type\": \"object\", \"properties\": {}, "
                "\"additionalProperties\": true}, \"trust\": {\"type\": \"string\"}, "
                "\"trust_domain\": {\"type\": \"string\"}, \"min_run_seconds\": {\"type\": "
                "\"number\"}, \"version\": {\"type\": \"integer\"}}, \"required\": "
                "[\"name\", \"version\"]}"},
    {"AccountRef",
     "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, "
     "\"version\": {\"type\": \"integer\"}, \"floors\": {\"type\": \"array\", "
     "\"description\": \"those that shrink with it\", \"items\": {\"type\": \"object\", "
     "\"properties\": {\"account\": {\"type\": \"string\"}, \"resource\": {\"type\": "
     "\"string\", \"description\": \"gpu, a GPU type, cpu or ram_mib\"}, "
     "\"guarantee\": {\"type\": \"number\"}, \"from\": {\"type\": \"number\"}, \"to\": "
     "{\"type\": \"number\"}}, \"required\": [\"account\", \"resource\", \"guarantee\", "
     "\"from\", \"to\"]}}, \"carried\": {\"type\": \"boolean\", \"description\": \"of a "
     "dry run: whether it would be taken without force\"}, \"detail\": {\"type\": "
     "\"string\", \"description\": \"of a dry run: why not\"}}, \"required\": [\"name\", "
     "\"version\", \"floors\"]}"},
    {"AccountList", "{\"type\": \"object\", \"properties\": {\"accounts\": {\"type\": \"array\", "
                    "\"items\": {\"$ref\": \"#/components/schemas/Account\"}}}, \"required\": "
                    "[\"accounts\"]}"},
    {"ServiceQuota",
     "{\"type\": \"object\", \"properties\": {\"account\": {\"type\": \"string\"}, \"quota\": "
     "{\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": {\"name\": "
     "{\"type\": \"string\"}, \"about\": {\"type\": \"string\"}, \"used\": {\"type\": "
     "\"integer\"}, \"limit\": {\"type\": [\"integer\", \"null\"], \"description\": \"the lowest "
     "of the account and those above it that the caller sees\"}, \"set\": {\"type\": [\"integer\", "
     "\"null\"], \"description\": \"the account's own\"}}, \"required\": [\"name\", \"used\", "
     "\"limit\"]}}}, \"required\": [\"account\", \"quota\"]}"},
    {"ServiceQuotaChange",
     "{\"type\": \"object\", \"properties\": {}, \"additionalProperties\": {\"type\": "
     "[\"integer\", \"string\"]}, \"description\": \"numbers by the names of ServiceQuota; none "
     "takes "
     "the account's own limit away\"}"},
    {"Quota", "{\"type\": \"object\", \"properties\": {\"account\": {\"type\": "
              "\"string\"}, \"guarantee\": {\"type\": \"object\", \"properties\": "
              "{\"gpu\": {\"type\": \"number\"}, \"cpu\": {\"type\": \"number\"}, "
              "\"ram_mib\": {\"type\": \"integer\"}}, \"additionalProperties\": true, "
              "\"description\": \"gpu over all types, and each type by its name\"}, "
              "\"floor\": {\"type\": \"object\", \"properties\": {\"gpu\": {\"type\": "
              "\"number\"}, \"cpu\": {\"type\": \"number\"}, \"ram_mib\": {\"type\": "
              "\"integer\"}}, \"additionalProperties\": true, \"description\": \"gpu over "
              "all types, and each type by its name\"}, \"max\": {\"type\": \"object\", "
              "\"properties\": {\"gpu\": {\"type\": \"number\"}, \"cpu\": {\"type\": "
              "\"number\"}, \"ram_mib\": {\"type\": \"integer\"}}, "
              "\"additionalProperties\": true, \"description\": \"gpu over all types, and "
              "each type by its name\"}, \"held\": {\"type\": \"object\", \"properties\": "
              "{\"gpu\": {\"type\": \"number\"}, \"cpu\": {\"type\": \"number\"}, "
              "\"ram_mib\": {\"type\": \"integer\"}}, \"additionalProperties\": true, "
              "\"description\": \"gpu over all types, and each type by its name\"}, "
              "\"guaranteed\": {\"type\": \"object\", \"properties\": {\"gpu\": {\"type\": "
              "\"number\"}, \"cpu\": {\"type\": \"number\"}, \"ram_mib\": {\"type\": "
              "\"integer\"}}, \"additionalProperties\": true, \"description\": \"gpu over "
              "all types, and each type by its name\"}, \"inside_gpu\": {\"type\": \"number\"}, "
              "\"borrowed_gpu\": {\"type\": "
              "\"number\"}}, \"required\": [\"account\"]}"},
    {"Usage", "{\"type\": \"object\", \"properties\": {\"account\": {\"type\": "
              "\"string\"}, \"half_life_seconds\": {\"type\": \"number\"}, "
              "\"lost_gpu_hours\": {\"type\": \"number\"}, \"users\": {\"type\": "
              "\"array\", \"items\": {\"type\": \"object\", \"properties\": {\"account\": "
              "{\"type\": \"string\"}, \"user\": {\"type\": \"string\"}, \"held_gpu\": "
              "{\"type\": \"number\"}, \"decayed_gpu_hours\": {\"type\": \"number\"}}}}}, "
              "\"required\": [\"account\", \"users\"]}"},
    {"UserList", "{\"type\": \"object\", \"properties\": {\"users\": {\"type\": \"array\", "
                 "\"items\": {\"type\": \"object\", \"properties\": {\"user\": {\"type\": "
                 "\"string\"}, \"account\": {\"type\": \"string\"}, \"role\": {\"type\": "
                 "\"string\"}}}}}, \"required\": [\"users\"]}"},
    {"Login", "{\"type\": \"object\", \"properties\": {\"token\": {\"type\": \"string\"}, "
              "\"code\": {\"type\": \"string\", \"description\": \"of POST /v1/session/code\"}}, "
              "\"additionalProperties\": false}"},
    {"Session", "{\"type\": \"object\", \"properties\": {\"user\": {\"type\": \"string\"}, "
                "\"account\": {\"type\": \"string\"}, \"role\": {\"type\": \"string\"}, "
                "\"until\": {\"type\": \"string\", \"format\": \"date-time\"}}, "
                "\"required\": [\"user\", \"account\", \"role\", \"until\"]}"},
    {"LoginCode", "{\"type\": \"object\", \"properties\": {\"code\": {\"type\": \"string\"}, "
                  "\"expires\": {\"type\": \"string\", \"format\": \"date-time\"}}, "
                  "\"required\": [\"code\", \"expires\"]}"},
    {"Token", "{\"type\": \"object\", \"properties\": {\"id\": {\"type\": \"string\"}, "
              "\"account\": {\"type\": \"string\"}, \"user\": {\"type\": \"string\"}, "
              "\"role\": {\"type\": \"string\"}, \"label\": {\"type\": \"string\"}, "
              "\"created\": {\"type\": [\"string\", \"null\"], \"format\": \"date-time\"}, "
              "\"expires\": {\"type\": [\"string\", \"null\"], \"format\": \"date-time\"}, "
              "\"revoked\": {\"type\": [\"string\", \"null\"], \"format\": \"date-time\"}, "
              "\"last_used\": {\"type\": [\"string\", \"null\"], \"format\": "
              "\"date-time\"}}, \"required\": [\"id\", \"account\", \"user\", \"role\"]}"},
    {"TokenList", "{\"type\": \"object\", \"properties\": {\"tokens\": {\"type\": \"array\", "
                  "\"items\": {\"$ref\": \"#/components/schemas/Token\"}}}, \"required\": "
                  "[\"tokens\"]}"},
    {"TokenSpec", "{\"type\": \"object\", \"properties\": {\"account\": {\"type\": "
                  "\"string\"}, \"user\": {\"type\": \"string\"}, \"role\": {\"type\": "
                  "\"string\", \"enum\": [\"owner\", \"admin\", \"member\", \"viewer\", "
                  "\"auditor\", \"node\"]}, \"label\": {\"type\": \"string\"}, \"expires_in\": "
                  "{\"type\": [\"string\", \"integer\"], \"description\": \"90s, 1h30m, or "
                  "seconds\"}}, \"required\": [\"user\", \"role\"], \"additionalProperties\": "
                  "false}"},
    {"NewToken", "{\"type\": \"object\", \"properties\": {\"id\": {\"type\": \"string\"}, "
                 "\"token\": {\"type\": \"string\"}, \"account\": {\"type\": \"string\"}, "
                 "\"user\": {\"type\": \"string\"}, \"role\": {\"type\": \"string\"}, "
                 "\"expires\": {\"type\": [\"string\", \"null\"], \"format\": "
                 "\"date-time\"}}, \"required\": [\"id\", \"token\"]}"},
    {"NameRef", "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}}, "
                "\"required\": [\"name\"]}"},
    {"AuditList",
     "{\"type\": \"object\", \"properties\": {\"rows\": {\"type\": \"array\", "
     "\"items\": {\"type\": \"object\", \"properties\": {\"id\": {\"type\": "
     "\"string\"}, \"at\": {\"type\": [\"string\", \"null\"], \"format\": "
     "\"date-time\"}, \"actor\": {\"type\": \"string\"}, "
     "\"actor_account\": {\"type\": \"string\"}, \"actor_token\": {\"type\": \"string\"}, "
     "\"account\": {\"type\": "
     "\"string\"}, \"source\": {\"type\": \"string\"}, \"verb\": {\"type\": "
     "\"string\"}, \"target\": {\"type\": \"string\"}, \"detail\": {}}}}, "
     "\"next\": {\"type\": \"string\"}}, \"required\": [\"rows\"]}"},
#define TEXT(key)  "\"" key "\": {\"type\": \"string\"}, "
#define MONEY(key) TEXT(key) "\"" key "_udollars\": {\"type\": \"integer\"}, "
    {"Event",
     "{\"type\": \"object\", \"properties\": {\"id\": {\"type\": \"string\", \"description\": "
     "\"of events since stintd was started: a stream goes on behind it (Last-Event-ID)\"}, "
     "\"at\": {\"type\": \"string\", \"format\": \"date-time\"}, " TEXT("kind") TEXT("job") TEXT(
         "account") TEXT("state") TEXT("name") TEXT("booking") TEXT("by") TEXT("reason")
         TEXT("node") TEXT("then") TEXT("deadline") TEXT("flag") TEXT("incident") TEXT(
             "fault") TEXT("cause") TEXT("user") TEXT("does") TEXT("at_cap") MONEY("cap")
             MONEY("budget") MONEY("spent") MONEY("cost") MONEY(
                 "usual") "\"threshold_percent\": {\"type\": \"number\"}, \"degraded\": {\"type\": "
                          "\"boolean\"}, "
                          "\"until\": {\"type\": \"string\", \"format\": \"date-time\"}, "
                          "\"grants\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}}, "
                          "\"required\": [\"at\", \"kind\"]}"},
#undef TEXT
#undef MONEY
    {"EventList",
     "{\"type\": \"object\", \"properties\": {\"events\": {\"type\": \"array\", \"items\": "
     "{\"$ref\": \"#/components/schemas/Event\"}}, \"next\": {\"type\": \"string\"}}, "
     "\"required\": [\"events\"]}"},
    {"AuditVerdict", "{\"type\": \"object\", \"properties\": {\"rows\": {\"type\": \"integer\"}, "
                     "\"intact\": {\"type\": \"boolean\"}, \"why\": {\"type\": \"string\"}, "
                     "\"head\": {\"type\": \"string\"}}, \"required\": [\"intact\"]}"},
    {"SecretValue", "{\"type\": \"string\", \"description\": \"any bytes, 1 to 65536 of them\"}"},
    {"SecretRef", "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, "
                  "\"account\": {\"type\": \"string\"}, \"version\": {\"type\": \"integer\"}}, "
                  "\"required\": [\"name\", \"account\", \"version\"]}"},
    {"VolumeSpec",
     "{\"type\": \"object\", \"properties\": {\"size\": {\"type\": \"string\", "
     "\"description\": \"how large it may get: 100Gi\"}, \"below\": {\"type\": \"string\", "
     "\"enum\": [\"none\", \"read\", \"write\"], \"description\": \"what jobs of accounts "
     "below may do with it\"}, \"about\": {\"type\": \"string\", \"maxLength\": 200}}, "
     "\"additionalProperties\": false}"},
    {"VolumeRow", VOLUME "}, \"required\": " VOLUME_NEEDS "}"},
    {"Volume",
     VOLUME ", \"used_bytes\": {\"type\": \"integer\"}, \"files\": {\"type\": \"integer\"}, "
            "\"files_max\": {\"type\": \"integer\"}, \"private_folders\": {\"type\": "
            "\"integer\", \"description\": \"folders that could not be counted: jobs have made "
            "them private\"}}, \"required\": " VOLUME_NEEDS "}"},
    {"VolumeList",
     "{\"type\": \"object\", \"properties\": {\"volumes\": {\"type\": \"array\", \"items\": "
     "{\"$ref\": \"#/components/schemas/VolumeRow\"}}}, \"required\": [\"volumes\"]}"},
    {"FileList",
     "{\"type\": \"object\", \"properties\": {\"path\": {\"type\": \"string\"}, \"kind\": "
     "{\"type\": \"string\", \"enum\": [\"file\", \"folder\", \"none\"]}, \"bytes\": {\"type\": "
     "\"integer\"}, \"changed\": {\"type\": [\"string\", \"null\"], \"format\": \"date-time\"}, "
     "\"run\": {\"type\": \"boolean\"}, \"uploaded\": {\"type\": \"integer\"}, \"entries\": "
     "{\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": {\"name\": "
     "{\"type\": \"string\"}, \"kind\": {\"type\": \"string\", \"enum\": [\"file\", \"folder\", "
     "\"link\", \"other\"]}, \"bytes\": {\"type\": \"integer\"}, \"changed\": {\"type\": "
     "[\"string\", \"null\"], \"format\": \"date-time\"}, \"run\": {\"type\": \"boolean\"}}, "
     "\"required\": [\"name\", \"kind\", \"bytes\"]}}, \"next\": {\"type\": [\"string\", "
     "\"null\"]}}, \"required\": [\"path\", \"kind\"]}"},
    {"Bytes", "{\"type\": \"string\", \"description\": \"any bytes\"}"},
    {"ChunksKept", "{\"type\": \"object\", \"properties\": {\"kept\": {\"type\": \"integer\"}}, "
                   "\"required\": [\"kept\"]}"},
    {"FolderSpec",
     "{\"type\": \"object\", \"properties\": {\"files\": {\"type\": \"array\", \"maxItems\": "
     "20000, "
     "\"items\": {\"type\": \"object\", \"properties\": {\"path\": {\"type\": \"string\"}, "
     "\"size\": "
     "{\"type\": \"integer\"}, \"run\": {\"type\": \"boolean\"}, \"chunks\": {\"type\": \"array\", "
     "\"items\": {\"type\": \"string\", \"description\": \"SHA-256 in hex of each 512 KiB\"}}}, "
     "\"required\": [\"path\", \"size\", \"chunks\"], \"additionalProperties\": false}}, "
     "\"folders\": {\"type\": \"array\", \"maxItems\": 20000, \"items\": {\"type\": \"string\"}}}, "
     "\"required\": [\"files\"], \"additionalProperties\": false}"},
    {"Folder",
     "{\"type\": \"object\", \"properties\": {\"folder\": {\"type\": [\"string\", \"null\"], "
     "\"description\": \"what jobs say as `with`; null: chunks are missing\"}, \"missing\": "
     "{\"type\": \"array\", \"items\": {\"type\": \"string\"}}}, \"required\": [\"folder\", "
     "\"missing\"]}"},
    {"PullSpec", "{\"type\": \"object\", \"properties\": {\"from\": {\"type\": \"string\", "
                 "\"description\": \"HOST[:PORT]/NAME[:TAG][@sha256:HEX]\"}}, \"required\": "
                 "[\"from\"], \"additionalProperties\": false}"},
    {"Pull", "{\"type\": \"object\", \"properties\": {\"from\": {\"type\": \"string\"}, \"state\": "
             "{\"type\": \"string\", \"enum\": [\"pulling\", \"done\"]}, \"layout\": {\"type\": "
             "\"string\"}, \"digest\": {\"type\": \"string\"}}, \"required\": [\"from\", "
             "\"state\"]}"},
    {"Uploaded", "{\"type\": \"object\", \"properties\": {\"next\": {\"type\": \"integer\"}, "
                 "\"done\": {\"type\": \"boolean\"}}, \"required\": [\"next\", \"done\"]}"},
    {"SecretList",
     "{\"type\": \"object\", \"properties\": {\"secrets\": {\"type\": \"array\", \"items\": "
     "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, \"account\": "
     "{\"type\": \"string\", \"description\": \"empty: an account above yours\"}, \"below\": "
     "{\"type\": \"boolean\"}, \"version\": {\"type\": \"integer\"}, \"created\": {\"type\": "
     "[\"string\", \"null\"], \"format\": \"date-time\"}, \"changed\": {\"type\": [\"string\", "
     "\"null\"], \"format\": \"date-time\"}, \"by\": {\"type\": \"string\"}}, \"required\": "
     "[\"name\", \"account\", \"below\"]}}}, \"required\": [\"secrets\"]}"},
    {"NoticeSpec",
     "{\"type\": \"object\", \"properties\": {\"webhook\": {\"type\": \"string\", "
     "\"description\": \"an https:// address of a host that the site lists\"}, \"mail\": "
     "{\"type\": \"string\", \"description\": \"or a mail address in a domain that the site "
     "lists\"}, \"on\": {\"type\": \"array\", \"items\": {\"type\": \"string\", "
     "\"enum\": " NOTICE_WORDS
     "}, \"description\": \"default: end, fail and preempt\"}, \"jobs\": {\"type\": "
     "\"string\", \"enum\": [\"mine\", \"all\"], \"description\": \"yours, or all of the account "
     "and those below it; default: mine\"}}, \"additionalProperties\": false}"},
    {"NewNotice",
     "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, \"account\": "
     "{\"type\": \"string\"}, \"secret\": {\"type\": \"string\", \"description\": \"signs "
     "webhooks; shown once\"}}, \"required\": [\"name\", \"account\"]}"},
    {"NoticeTest",
     "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, \"account\": "
     "{\"type\": \"string\"}, \"delivery\": {\"type\": \"string\"}}, \"required\": [\"name\", "
     "\"account\", \"delivery\"]}"},
    {"NoticeList",
     "{\"type\": \"object\", \"properties\": {\"notices\": {\"type\": \"array\", \"items\": "
     "{\"type\": \"object\", \"properties\": {" NOTICE_FIELDS "}, \"required\": [\"name\", "
     "\"account\", \"on\", \"to\"]}}}, \"required\": [\"notices\"]}"},
    {"Notice",
     "{\"type\": \"object\", \"properties\": {" NOTICE_FIELDS
     ", \"deliveries\": {\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": "
     "{\"id\": {\"type\": \"string\"}, \"state\": {\"type\": \"string\", \"enum\": "
     "[\"delivered\", \"waiting\", \"failed\", \"dropped\"]}, \"tries\": {\"type\": "
     "\"integer\"}, \"status\": {\"type\": \"integer\", \"description\": \"of the answer; 0: "
     "there was none\"}, \"text\": {\"type\": \"string\"}, \"changed\": {\"type\": "
     "[\"string\", \"null\"], \"format\": \"date-time\"}}, \"required\": [\"id\", \"state\", "
     "\"tries\"]}}}, \"required\": [\"name\", \"account\", \"on\", \"to\", \"deliveries\"]}"},
    {"Rotated", "{\"type\": \"object\", \"properties\": {\"key\": {\"type\": \"string\", "
                "\"description\": \"the new key's id, not the key\"}, \"documents\": {\"type\": "
                "\"integer\"}}, \"required\": [\"key\", \"documents\"]}"},
    {"Reloaded",
     "{\"type\": \"object\", \"properties\": {\"changed\": {\"type\": \"array\", \"items\": "
     "{\"type\": \"string\"}}, \"restart_needed\": {\"type\": \"array\", \"items\": {\"type\": "
     "\"string\"}, \"description\": \"keys that count from the next start on\"}}, \"required\": "
     "[\"changed\", \"restart_needed\"]}"},
    {"BackupSpec", "{\"type\": \"object\", \"properties\": {\"file\": {\"type\": \"string\"}}, "
                   "\"additionalProperties\": false}"},
    {"BackupResult", "{\"type\": \"object\", \"properties\": {\"file\": {\"type\": \"string\"}}, "
                     "\"required\": [\"file\"]}"},
    {"Clock",
     "{\"type\": \"object\", \"properties\": {\"now\": {\"type\": \"string\", \"format\": "
     "\"date-time\"}, \"machine\": {\"type\": \"string\", \"format\": \"date-time\"}, "
     "\"ahead_seconds\": {\"type\": \"integer\", \"description\": \"the machine's clock before "
     "stintd's\"}, \"believed\": {\"type\": \"boolean\"}}, \"required\": [\"now\", "
     "\"machine\", \"ahead_seconds\", \"believed\"], \"additionalProperties\": false}"},
    {"ClockAccept",
     "{\"type\": \"object\", \"properties\": {\"ahead_seconds\": {\"type\": \"integer\", "
     "\"minimum\": -9007199254740991, \"maximum\": 9007199254740991, \"description\": \"as "
     "it "
     "was shown: one that has changed by more than a minute since is refused\"}}, "
     "\"required\": "
     "[\"ahead_seconds\"], \"additionalProperties\": false}"},
    {"Restore",
     "{\"type\": \"object\", \"properties\": {\"state\": {\"type\": \"string\", \"enum\": "
     "[\"none\", "
     "\"waiting\", \"accepted\"]}, \"from\": {\"type\": \"string\", \"description\": \"the file "
     "that "
     "was restored\"}, \"restored_at\": {\"type\": [\"string\", \"null\"], \"format\": "
     "\"date-time\"}, "
     "\"backup_at\": {\"type\": \"string\", \"format\": \"date-time\", \"description\": \"the last "
     "moment that the store knows of\"}, \"position\": {\"type\": \"integer\"}, \"valid_tokens\": "
     "{\"type\": \"integer\"}, \"waiting_jobs\": {\"type\": \"integer\"}, \"plan\": {\"type\": "
     "\"string\", \"description\": \"stands for all of what follows\"}, \"nodes\": {\"type\": "
     "\"array\", "
     "\"items\": {\"type\": \"object\", \"properties\": {\"node\": {\"type\": \"string\"}, "
     "\"heard\": "
     "{\"type\": \"boolean\"}, \"clear\": {\"type\": \"boolean\", \"description\": \"nothing is "
     "there "
     "that the store does not know\"}, \"lease_seconds\": {\"type\": \"integer\"}, \"tasks\": "
     "{\"type\": "
     "\"array\", \"items\": {\"type\": \"object\", \"properties\": {\"job\": {\"type\": "
     "\"string\"}, "
     "\"stay\": {\"type\": \"integer\"}, \"task\": {\"type\": \"integer\"}, \"becomes\": "
     "{\"type\": "
     "\"string\", \"enum\": [\"adopted\", \"over\", \"ended\", \"forgotten\"]}, \"why\": "
     "{\"type\": "
     "\"string\"}}, \"required\": [\"job\", \"stay\", \"task\", \"becomes\"], "
     "\"additionalProperties\": false}}}, \"required\": [\"node\", \"heard\", \"clear\", "
     "\"lease_seconds\", \"tasks\"], \"additionalProperties\": false}}, \"jobs\": {\"type\": "
     "\"array\", "
     "\"items\": {\"type\": \"object\", \"properties\": {\"job\": {\"type\": \"string\"}, "
     "\"name\": "
     "{\"type\": \"string\"}, \"account\": {\"type\": \"string\"}, \"becomes\": {\"type\": "
     "\"string\", "
     "\"enum\": [\"adopted\", \"again\", \"stops\"]}, \"why\": {\"type\": \"string\"}}, "
     "\"required\": "
     "[\"job\", \"name\", \"account\", \"becomes\"], \"additionalProperties\": false}}}, "
     "\"required\": "
     "[\"state\", \"from\", \"restored_at\"], \"additionalProperties\": false}"},
    {"RestoreAccept",
     "{\"type\": \"object\", \"properties\": {\"plan\": {\"type\": \"string\", \"maxLength\": 64, "
     "\"description\": \"as it was shown: another one is refused\"}}, \"required\": [\"plan\"], "
     "\"additionalProperties\": false}"},
    {0},
};
