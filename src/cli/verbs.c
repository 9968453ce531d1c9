/*
 * The one table of verbs of `stint`.
 */
#include "cli/cli.h"

const st_cli_verb st_cli_verbs[] = {
    {"login", "Saves who you are and where stintd is",
     "[--url URL] [--token-file FILE] [OPTION...]",
     "The token is asked for without echo, or read from a file or standard input, never\n"
     "from the command line. It is tried, and kept in ~/.config/stint/config (mode 0600;\n"
     "STINT_CONFIG names another file). STINT_URL, STINT_TOKEN and STINT_CA win over it.\n"
     "On a unix socket (unix:PATH) no token is needed: it is the user who counts.\n",
     .fn = st_cli_login, .options = st_cli_login_options,
     .example = "  stint login --url https://stint.example:7878 --token-file my.token\n"},
    {"logout", "Forgets a login", "[--as NAME]", .fn = st_cli_logout,
     .options = st_cli_logout_options, .example = "  stint logout\n"},
    {"whoami", "Says who you are to stintd", "[OPTION...]", .fn = st_cli_whoami,
     .options = st_cli_whoami_options, .example = "  stint whoami\n"},
    {"submit", "Submits a job", "[OPTION...] [-- COMMAND...]",
     "Prints the job's id. A job that loses its connection on the way is sent again and\n"
     "taken once.\n",
     .fn = st_cli_submit, .options = st_cli_submit_options,
     .example = "  stint submit --name train --gpus 8 --tasks 4 --limit 12h -- python train.py\n"
                "  stint submit -f job.yaml --priority high\n"
                "  stint submit --array 100 --gpus 1 -- ./sweep.sh\n"},
    {"run", "Submits a job and stays with it", "[OPTION...] [-- COMMAND...]",
     "Shows its states and what its first task writes. The exit status is the job's; 124\n"
     "when its time was up, 130 when it was cancelled. Ctrl-C asks, a second one cancels\n"
     "the job; Ctrl-\\ leaves it running.\n",
     .fn = st_cli_run, .options = st_cli_run_options,
     .example = "  stint run --gpus 1 --limit 10m -- nvidia-smi\n"},
    {"ps", "Lists jobs", "[OPTION...]", .fn = st_cli_ps, .options = st_cli_ps_options,
     .example = "  stint ps --state pending --watch\n  stint ps -a --user ada -o csv\n"},
    {"show", "Shows one job", "[OPTION...] ID", .fn = st_cli_show, .options = st_cli_job_options,
     .example = "  stint show jdgq378mt\n"},
    {"array", "Shows how far an array is, by state and by frame", "[OPTION...] ID",
     .fn = st_cli_array, .options = st_cli_job_options, .example = "  stint array jdgq378mt\n"},
    {"why", "Says why a job waits, and when it should start", "[OPTION...] ID", .fn = st_cli_why,
     .options = st_cli_job_options, .example = "  stint why jdgq378mt\n"},
    {"whatif", "Says when variants of a job would start, without submitting any",
     "[OPTION...] [-- COMMAND...]",
     "The options are those of submit. Each --with is one variant, tried by itself; without\n"
     "any the job is tried as it is. --accounts says what would happen with other quotas.\n",
     .fn = st_cli_whatif, .options = st_cli_whatif_options,
     .example = "  stint whatif --gpus 8 --limit 4h --with gpus=4 --with limit=1h,gpus=2\n"
                "  stint whatif --accounts quotas.yaml\n"},
    {"logs", "Prints what a job has written", "[-f] [--task N] ID", .fn = st_cli_logs,
     .options = st_cli_logs_options, .example = "  stint logs -f jdgq378mt\n"},
    {"cancel", "Cancels jobs and arrays", "[OPTION...] ID...",
     "The id of an array cancels all its jobs that are not over; --only cancels its first job.\n",
     .fn = st_cli_cancel, .options = st_cli_cancel_options,
     .example = "  stint cancel jdgq378mt j67a10cca\n"},
    {"priority", "Changes a job's priority", "[OPTION...] ID PRIORITY",
     "The priority is low, normal, high or a number; it counts inside your account.\n",
     .fn = st_cli_priority, .options = st_cli_job_options,
     .example = "  stint priority jdgq378mt high\n"},
    {"top", "Shows accounts, running and waiting jobs as they change", "[OPTION...]",
     "q leaves. Without a terminal everything is printed once.\n", .fn = st_cli_top,
     .options = st_cli_top_options, .example = "  stint top\n"},
    {"quota", "Shows what an account is promised, may reach and holds", "[OPTION...] [ACCOUNT]",
     "GUARANTEE is the account's by right, FLOOR the part of it that current nodes cover,\n"
     "MAX what may be reached by borrowing; of what is HELD, INSIDE is within the guarantee.\n",
     .fn = st_cli_quota, .options = st_cli_quota_options,
     .example = "  stint quota vision\n  stint quota --service\n"},
    {"usage", "Shows what was used this month, and what it cost", "[OPTION...] [ACCOUNT]",
     "From the entries the bill is made of, running jobs included. BUSY is of the time\n"
     "telemetry covers. --recent shows what decides whose turn it is.\n",
     .fn = st_cli_metered, .options = st_cli_usage_options,
     .example = "  stint usage\n  stint usage vision --by job --month 2026-10\n"},
    {"bill", "Shows what a month costs, line by line", "[OPTION...] [MONTH]",
     "The month so far unless one is named. --explain opens a line to its grants.\n",
     .fn = st_cli_bill, .sub = st_cli_bill_verbs, .options = st_cli_bill_options,
     .example = "  stint bill\n  stint bill 2026-10 --explain 3\n"
                "  stint bill 2026-10 -o file --save oct.bill && stint bill verify oct.bill\n"},
    {"budget", "Shows what is spent, on hold, left of a cap, and how the month will end",
     "[OPTION...] [ACCOUNT]",
     "Spent is what the bill says: posted, and what runs as if it ended now. From three whole\n"
     "days on the end of the month comes with an interval that holds eight times in ten where\n"
     "days are alike.\n",
     .fn = st_cli_budget, .options = st_cli_budget_options, .example = "  stint budget vision\n"},
    {"price", "Price books: list, show, publish", "COMMAND ...", .sub = st_cli_price_verbs},
    {"account", "Accounts: list, show, create, set, limit", "COMMAND ...",
     .sub = st_cli_account_verbs},
    {"token", "Tokens: list, create, revoke, remove", "COMMAND ...", .sub = st_cli_token_verbs},
    {"secret", "Secrets of an account: put, list, remove", "COMMAND ...",
     .sub = st_cli_secret_verbs},
    {"user", "Users: list", "COMMAND ...", .sub = st_cli_user_verbs},
    {"node", "Nodes: list, show, drain, ready, fail, add", "COMMAND ...", .sub = st_cli_node_verbs},
    {"pool", "Pools: list, show, add, set", "COMMAND ...", .sub = st_cli_pool_verbs},
    {"type", "GPU types: list, add", "COMMAND ...", .sub = st_cli_type_verbs},
    {"events", "Prints what happens, as it happens", "[-f] [OPTION...]", .fn = st_cli_events,
     .options = st_cli_events_options, .example = "  stint events -f -o json\n"},
    {"audit", "Lists who changed what, newest first", "[OPTION...]", .fn = st_cli_audit,
     .options = st_cli_audit_options,
     .example = "  stint audit --limit 20\n  stint audit --by ada --what token --since 7d\n"
                "  stint audit --verify\n"},
    {"image", "Images: list, show, add, remove", "COMMAND ...", .sub = st_cli_image_verbs},
    {"rule", "Scripts in Lua that every submit goes through", "COMMAND ...",
     .sub = st_cli_rule_verbs},
    {"size", "Names for shapes", "COMMAND ...", .sub = st_cli_size_verbs},
    {"admin",
     "For those who run stintd: backup, rotate-secrets-key, join-token, plan, credit, reconcile, "
     "clock",
     "COMMAND ...", .sub = st_cli_admin_verbs},
    {"completion", "Prints the completion for a shell", "bash|zsh|fish", .fn = st_cli_completion,
     .example = "  . <(stint completion bash)\n"},
    {"sim", "Answers questions about a fleet without having one", "COMMAND ...",
     .sub = st_cli_sim_verbs},
    {0},
};
