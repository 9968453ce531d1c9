/*
 * The one table of verbs of `stint`.
 */
#include "cli/cli.h"

const st_cli_verb st_cli_verbs[] = {
    {"login", "Save a token and the address of stintd",
     "[--url URL] [--token-file FILE] [OPTION...]",
     "stint asks for the token without echo, or reads it from a file or standard input. It\n"
     "never takes a token from the command line. It tries the token and saves it in\n"
     "~/.config/stint/config (mode 0600; STINT_CONFIG names another file). STINT_URL,\n"
     "STINT_TOKEN and STINT_CA override the file. On a unix socket (unix:PATH) root and\n"
     "stintd's own user need no token.\n",
     .fn = st_cli_login, .options = st_cli_login_options,
     .example = "  stint login --url https://stint.example:7878 --token-file my.token\n"},
    {"logout", "Remove a saved login", "[--as NAME]", .fn = st_cli_logout,
     .options = st_cli_logout_options, .example = "  stint logout\n"},
    {"whoami", "Show your user, account and role", "[OPTION...]", .fn = st_cli_whoami,
     .options = st_cli_whoami_options, .example = "  stint whoami\n"},
    {"console", "Print a link that opens the console in a browser", "[--url URL]",
     "The link logs you in once, within five minutes, in a browser on stintd's machine.\n",
     .fn = st_cli_console, .options = st_cli_console_options, .example = "  stint console\n"},
    {"submit", "Submit a job", "[OPTION...] SCRIPT [ARGUMENT...] | -- COMMAND...",
     "Prints the job's id. If the connection breaks, stint sends the job again; stintd\n"
     "accepts it once. SCRIPT is a file of this machine that begins with #!. Its lines\n"
     "#STINT OPTION... are options, and its #SBATCH lines are translated; options before\n"
     "its name override them.\n",
     .fn = st_cli_submit, .options = st_cli_submit_options,
     .example = "  stint submit --name train --gpus 8 --tasks 4 --limit 12h -- python train.py\n"
                "  stint submit -f job.yaml --priority high\n"
                "  stint submit --gpus 4 train.sh --epochs 3\n"
                "  stint submit --array 100%8 --gpus 1 -- ./sweep.sh\n"
                "  stint submit --after-ok jdgq378mt --retries 3 -- python evaluate.py\n"},
    {"run", "Submit a job and follow it until it ends",
     "[OPTION...] SCRIPT [ARGUMENT...] | -- COMMAND...",
     "Shows the job's states and the output of its first task. Exits with the job's status;\n"
     "124 at the time limit, 130 when it was cancelled. Ctrl-C asks, a second Ctrl-C cancels\n"
     "the job; Ctrl-\\ leaves it running. With -it the job has a terminal, which is joined to "
     "this\n"
     "one: Ctrl-C goes to the job, ~. at the beginning of a line leaves it running.\n",
     .fn = st_cli_run, .options = st_cli_run_options,
     .example = "  stint run --gpus 1 --limit 10m -- nvidia-smi\n"
                "  stint run -it --gpus 1 --limit 2h --image torch -- bash\n"},
    {"ps", "List jobs", "[OPTION...]",
     "Columns: id, name, account, user, state, class, gpus, age, took, where, deadline,\n"
     "priority_class, on_hold, retry_at, retries, priority, submitted, started, ended, exit,\n"
     "reason, type, tasks, limit, preemptions, image, labels, comment, array, index.\n",
     .fn = st_cli_ps, .options = st_cli_ps_options,
     .example = "  stint ps --state pending --watch\n  stint ps -a --user ada -o csv\n"
                "  stint ps --since 1d --columns id,name,state,ended,exit\n"},
    {"show", "Show one job", "[OPTION...] ID", .fn = st_cli_show, .options = st_cli_job_options,
     .example = "  stint show jdgq378mt\n"},
    {"array", "Show the progress of an array, or change how many of its jobs run at a time",
     "[OPTION...] ID", "Shows the jobs by state and by frame.\n", .fn = st_cli_array,
     .options = st_cli_array_options,
     .example = "  stint array jdgq378mt\n  stint array jdgq378mt --throttle 4\n"},
    {"why", "Show why a job waits and when it should start", "[OPTION...] ID", .fn = st_cli_why,
     .options = st_cli_job_options, .example = "  stint why jdgq378mt\n"},
    {"whatif", "Show when variants of a job would start; submit nothing",
     "[OPTION...] [-- COMMAND...]",
     "Takes the options of submit. Each --with is one variant; without any, the job is tried\n"
     "as it is. --accounts assumes other quotas.\n",
     .fn = st_cli_whatif, .options = st_cli_whatif_options,
     .example = "  stint whatif --gpus 8 --limit 4h --with gpus=4 --with limit=1h,gpus=2\n"
                "  stint whatif --accounts quotas.yaml\n"},
    {"logs", "Print the output of a job", "[OPTION...] ID", .fn = st_cli_logs,
     .options = st_cli_logs_options,
     .example = "  stint logs -f jdgq378mt\n  stint logs --all --tail 20 jdgq378mt\n"},
    {"exec", "Run a command in a running job", "[OPTION...] ID -- COMMAND...",
     "The command runs beside the job's own, with its user, files, GPUs and limits, and nothing\n"
     "more. stint exits with its status; 127 where it is not found there. On a terminal, ~. at\n"
     "the beginning of a line leaves. A command whose stint is gone is hung up on.\n",
     .fn = st_cli_exec, .options = st_cli_exec_options,
     .example = "  stint exec jdgq378mt -- bash\n  stint exec --task 3 jdgq378mt -- nvidia-smi\n"
                "  tar c data | stint exec jdgq378mt -- tar x -C /data\n"},
    {"attach", "Join a running job's own terminal, or watch what it writes", "[OPTION...] ID",
     "Several can be joined to a job at a time. What is typed goes to a job that has a terminal "
     "or\n"
     "standard input (--terminal, --stdin, `stint run -it`); any other job is watched, and so is\n"
     "one that is not yours. ~. at the beginning of a line leaves, Ctrl-C where a job is watched;\n"
     "the job goes on. stint exits with the status of the task.\n",
     .fn = st_cli_attach, .options = st_cli_attach_options,
     .example = "  stint attach jdgq378mt\n  stint attach --read-only --task 3 jdgq378mt\n"},
    {"forward", "Lead a port of this machine to a port of a running job",
     "[OPTION...] ID [LOCAL:]PORT",
     "Listens on 127.0.0.1 until Ctrl-C or the job's end. Each connection goes through stintd and\n"
     "the node's agent to 127.0.0.1 in the task's own network, and nowhere else.\n",
     .fn = st_cli_forward, .options = st_cli_forward_options,
     .example = "  stint forward jdgq378mt 8888\n  stint forward jdgq378mt 9000:8888\n"},
    {"notebook", "Start a notebook and lead a port of this machine to it",
     "[OPTION...] [-- COMMAND [ARG...]]",
     "The notebook is a service with one replica, called notebook or what --name says. Without a\n"
     "command it is Jupyter of the image. The address that is printed works until Ctrl-C; the\n"
     "notebook goes on until nobody has used it for --idle, and the same command leads to it "
     "again.\n",
     .fn = st_cli_notebook, .options = st_cli_notebook_options,
     .example = "  stint notebook --image torch --level mps --share 0.25 --idle 2h\n"},
    {"wait", "Wait until jobs and arrays have ended", "[OPTION...] ID...",
     "Exits with the status of the first of them, in this order, that did not end well: its own,\n"
     "124 at the time limit, 130 when it was cancelled. Of an array it is 0 when all jobs are "
     "done.\n"
     "Ctrl-C ends the wait, not the jobs.\n",
     .fn = st_cli_wait, .options = st_cli_wait_options,
     .example = "  stint wait jdgq378mt j67a10cca && echo both are done\n"},
    {"cancel", "Cancel jobs and arrays", "[OPTION...] [ID...]",
     "The id of an array cancels all its jobs that have not ended; --only cancels its first.\n"
     "Instead of ids, options choose among the jobs that have not ended; stint asks before it\n"
     "cancels those.\n",
     .fn = st_cli_cancel, .options = st_cli_cancel_options,
     .example =
         "  stint cancel jdgq378mt j67a10cca\n  stint cancel --name sweep --state pending\n"},
    {"priority", "Change the priority of jobs and arrays", "[OPTION...] [ID...] PRIORITY",
     "The priority is low, normal, high or a number; it counts inside your account. The id of an\n"
     "array changes all its jobs that have not ended; --only changes its first. Instead of ids,\n"
     "options choose among the jobs that have not ended; stint asks before it changes those.\n",
     .fn = st_cli_priority, .options = st_cli_priority_options,
     .example = "  stint priority jdgq378mt high\n  stint priority --name sweep low --yes\n"},
    {"hold", "Hold jobs and arrays that wait, until they are released", "[OPTION...] [ID...]",
     "Only jobs that wait can be held; they keep no place meanwhile. What an admin holds only an\n"
     "admin of that account, or of one above it, releases. The id of an array holds all its jobs\n"
     "that wait; --only holds its first. Options choose jobs as for cancel.\n",
     .fn = st_cli_hold, .options = st_cli_hold_options,
     .example = "  stint hold jdgq378mt\n  stint hold --name sweep --state pending --yes\n"},
    {"release", "Release jobs and arrays that are on hold", "[OPTION...] [ID...]",
     .fn = st_cli_release, .options = st_cli_hold_options,
     .example = "  stint release jdgq378mt\n"},
    {"limit", "Change a job's time limit", "[OPTION...] ID DURATION",
     "Whoever may cancel the job can shorten the limit, down to what the job has run. An admin of\n"
     "its account can lengthen it, within the limits and the spend cap of its accounts, unless\n"
     "somebody who was promised its place would start later. `none` removes the limit.\n",
     .fn = st_cli_limit, .options = st_cli_job_options, .example = "  stint limit jdgq378mt 6h\n"},
    {"stats", "Show what jobs do with their GPUs, and what they cost so far", "[OPTION...] ID...",
     "BUSY: part of the time with a kernel running. SM: part of the GPU that had work. MEMORY, "
     "POWER,\n"
     "HEAT: of one GPU, on average. PEAK: the most GPU memory of a task at once. ASKED: what a "
     "task\n"
     "has. With --watch they are those since the last look; agents measure twice a minute.\n",
     .fn = st_cli_stats, .options = st_cli_stats_options,
     .example = "  stint stats jdgq378mt\n  stint stats -w jdgq378mt j67a10cca\n"},
    {"top", "Watch accounts, running jobs and waiting jobs", "[OPTION...]",
     "Press q to leave. Without a terminal, stint prints everything once.\n", .fn = st_cli_top,
     .options = st_cli_top_options, .example = "  stint top\n"},
    {"series", "Show what was: GPUs held, queue, utilisation, cost over time", "[OPTION...]",
     "One line for each bucket of a minute, ten minutes or an hour; a dash is not known, which is\n"
     "not 0. HELD, RUNNING, WAITING: on average. ASKED: GPUs that waiting jobs ask for. BUSY: "
     "part\n"
     "of measured time with a kernel running. WATTS, MEMORY: of one GPU. MONTH: spent since the\n"
     "month began.\n",
     .fn = st_cli_series, .options = st_cli_series_options,
     .example = "  stint series --since 6h --step 10m\n  stint series --job jdgq378mt\n"},
    {"quota", "Show an account's guarantee, maximum and use", "[OPTION...] [ACCOUNT]",
     "FLOOR: guarantee that current nodes cover. MAX: most that the account may hold with\n"
     "borrowing. INSIDE: part of HELD that is within the guarantee.\n",
     .fn = st_cli_quota, .options = st_cli_quota_options,
     .example = "  stint quota vision\n  stint quota --service\n"},
    {"usage", "Show what was used this month and what it cost", "[OPTION...] [ACCOUNT]",
     "Counts running jobs too. BUSY: share of measured time the GPU worked. --recent shows\n"
     "the recent use that decides whose turn it is.\n",
     .fn = st_cli_metered, .options = st_cli_usage_options,
     .example = "  stint usage\n  stint usage vision --by job --month 2026-10\n"},
    {"bill", "Show the bill of a month", "[OPTION...] [MONTH]",
     "Default: the month so far. --explain shows the intervals and grants behind a line.\n",
     .fn = st_cli_bill, .sub = st_cli_bill_verbs, .options = st_cli_bill_options,
     .example = "  stint bill\n  stint bill 2026-10 --explain 3\n"
                "  stint bill 2026-10 -o file --save oct.bill && stint bill verify oct.bill\n"},
    {"book", "Book GPUs for a window or a series", "[OPTION...]",
     "Prints the id of the booking. A series is booked whole or not at all; where a window does\n"
     "not fit, stint shows what would fit instead. --hold keeps it for ten minutes.\n",
     .fn = st_cli_book, .sub = st_cli_book_verbs, .options = st_cli_book_options,
     .example =
         "  stint book --gpus 64 --type h100 --topology block --from \"2026-12-01 09:00\" \\\n"
         "    --for 3d --zone Europe/Berlin --dry-run\n"},
    {"calendar", "Show what is booked, and when windows and series are", "[OPTION...]",
     .fn = st_cli_calendar, .sub = st_cli_calendar_verbs, .options = st_cli_calendar_options,
     .example = "  stint calendar --from monday --zone Europe/Berlin\n"},
    {"invoice", "List, print and issue invoices", "COMMAND ...", .sub = st_cli_invoice_verbs},
    {"budget", "Show what is spent, on hold and left under a cap, and how the month will end",
     "[OPTION...] [ACCOUNT]",
     "Spent is what the bill says: posted, and what runs as if it ended now. From three whole\n"
     "days on the end of the month comes with an interval that holds eight times in ten where\n"
     "days are alike.\n",
     .fn = st_cli_budget, .options = st_cli_budget_options, .example = "  stint budget vision\n"},
    {"price", "Manage price books", "COMMAND ...", .sub = st_cli_price_verbs},
    {"account", "Manage accounts and quotas", "COMMAND ...", .sub = st_cli_account_verbs},
    {"token", "Manage tokens", "COMMAND ...", .sub = st_cli_token_verbs},
    {"notice", "Be told by webhook or mail what jobs, budgets and bookings do", "COMMAND ...",
     .sub = st_cli_notice_verbs},
    {"volume", "Manage volumes, which jobs share", "COMMAND ...", .sub = st_cli_volume_verbs},
    {"cp", "Copy files to and from volumes, and from the folders of jobs",
     "[OPTION...] SOURCE TARGET",
     "What is in a volume is VOLUME:PATH, what a job that came with a folder has is JOB:PATH; a\n"
     "local name with a colon is written ./NAME. A copy that was broken off goes on where it "
     "stood,\n"
     "and every piece is checked.\n",
     .fn = st_cli_cp, .options = st_cli_cp_options,
     .example = "  stint cp -r ./images sets:train\n  stint cp sets:run7/model.pt .\n"},
    {"secret", "Manage the secrets of an account", "COMMAND ...", .sub = st_cli_secret_verbs},
    {"user", "List users", "COMMAND ...", .sub = st_cli_user_verbs},
    {"fleet", "Show what the fleet cost and where it was idle (owners)", "COMMAND ...",
     .sub = st_cli_fleet_verbs},
    {"node", "Manage nodes", "COMMAND ...", .sub = st_cli_node_verbs},
    {"pool", "Manage pools", "COMMAND ...", .sub = st_cli_pool_verbs},
    {"type", "Manage GPU types", "COMMAND ...", .sub = st_cli_type_verbs},
    {"incidents", "List what is wrong with nodes and why, as far as your jobs were on them",
     "[OPTION...] [ID]",
     "An incident has one cause: hardware, software, network, configuration or user. It is over\n"
     "when all its nodes are, and nothing more was found for a while. With an ID it is shown with\n"
     "its nodes and your jobs on them. Where too many nodes of a pool have the same, the others\n"
     "are held back: they go on with their jobs and take no new ones until an owner has looked\n"
     "and says so with --reset.\n",
     .fn = st_cli_incidents, .options = st_cli_incidents_options,
     .example = "  stint incidents\n  stint incidents --all --node node07\n"},
    {"neighbours", "List jobs that a neighbour on a shared GPU slows, and those that slow one",
     "[OPTION...]",
     "Each side is shown by itself: what happened to the job, and what was done. Nothing is said "
     "of\n"
     "the other job, unless you see it too.\n",
     .fn = st_cli_neighbours, .options = st_cli_neighbours_options,
     .example = "  stint neighbours\n  stint neighbours --all -o json\n"},
    {"events", "Print events as they happen, or past ones", "[-f] [OPTION...]",
     "With --since, --until or --limit it prints past events, the oldest first; with -f as well "
     "it\n"
     "goes on from there. They are kept for 30 days or what the configuration says "
     "(events_keep).\n",
     .fn = st_cli_events, .options = st_cli_events_options,
     .example = "  stint events -f -o json\n  stint events --since 2d --kind node --kind incident\n"
                "  stint events --since 1h -f --account vision\n"},
    {"audit", "List who changed what, newest first", "[OPTION...]", .fn = st_cli_audit,
     .options = st_cli_audit_options,
     .example = "  stint audit --limit 20\n  stint audit --by ada --what token --since 7d\n"
                "  stint audit --verify\n"},
    {"service", "Run services: replicas behind one address, kept healthy", "COMMAND ...",
     .sub = st_cli_service_verbs},
    {"image", "Manage the image catalogue", "COMMAND ...", .sub = st_cli_image_verbs},
    {"class", "Manage priority classes", "COMMAND ...", .sub = st_cli_class_verbs},
    {"rule", "Manage Lua scripts that check every submit", "COMMAND ...", .sub = st_cli_rule_verbs},
    {"size", "Manage named sizes of jobs", "COMMAND ...", .sub = st_cli_size_verbs},
    {"admin", "Operate stintd: backups, keys, join tokens, plans, credits", "COMMAND ...",
     .sub = st_cli_admin_verbs},
    {"completion", "Print completion for a shell", "[--list KIND] bash|zsh|fish",
     "Shells offer verbs, options, words and the names of accounts, bookings, classes, images,\n"
     "jobs, nodes, pools and types. Names with characters that a shell could act on are left "
     "out.\n",
     .fn = st_cli_completion, .options = st_cli_completion_options,
     .example = "  . <(stint completion bash)\n"},
    {"sim", "Simulate a fleet: scenarios, traces, shares, replay", "COMMAND ...",
     .sub = st_cli_sim_verbs},
    {0},
};
