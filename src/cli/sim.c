/*
 * `stint sim`: the table of its verbs.
 */
#include "cli/cli.h"

const st_cli_verb st_cli_sim_verbs[] = {
    {"exhaust", "Play every order of every event in a small world", "[--events N] [--world NAME]",
     "The world has 2 nodes with 2 GPUs each, three accounts and three jobs. Jobs come, end,\n"
     "are cancelled and save; nodes fail, drain and return; a minute goes by; a priority and\n"
     "quotas change: in every order, up to --events events. After every step all invariants\n"
     "are checked, and from every state all must come to rest.\n"
     "  --events N     up to 8 (default: 3); each takes about ten times as long\n"
     "  --world NAME   plain, alone (as_if_alone), agents or swap (default: all)\n"
     "A failure is told with the events that lead to it, and written as a scenario.\n"
     "The exit status is 0 when all held, 1 when something broke, 2 for bad arguments.\n",
     .fn = st_cli_sim_exhaust},
    {"fragmentation", "Fill a fleet from a trace and report what stays unused",
     "--nodes FILE --pods FILE [--seed N] [--policy NAME] [-o table|json]",
     "The files are CSV lists in the openb format: nodes with cpu_milli, memory_mib, gpu and\n"
     "model; pods with cpu_milli, memory_mib, num_gpu, gpu_milli and gpu_spec (models joined\n"
     "by |; may be left out). The pods arrive in random order, one at a time, and stay; one\n"
     "that does not fit is dropped. The answer is the GPU left when as much has been asked\n"
     "for as there is, and the GPU in use at the end, in per cent of all.\n"
     "  --seed N        the order of arrivals and nodes (default: 42)\n"
     "  --policy NAME   stint (the scheduler itself), fgd, bestfit or random (default: stint)\n"
     "doc/dev/placement.md describes the policies and has results.\n",
     .fn = st_cli_sim_fragmentation},
    {"fuzz", "Play random worlds and check every rule after every step",
     "[-v] [-o table|json] [--seeds A-B | --seed S] [--steps N]",
     "Each seed gives a fleet, a tree of accounts, a policy and events, which are played\n"
     "through the scheduler itself. After every step all invariants are checked from\n"
     "outside; a saved and reloaded scheduler runs beside it and must decide alike.\n"
     "  --seeds A-B   the seeds to play (default: 1-100)\n"
     "  --steps N     events per seed (default: 200)\n"
     "  -v            prints every event and effect\n"
     "  --closely     looks at everything after every step; slower by far\n"
     "  --guided      keeps what met something new and plays it again, changed, every other\n"
     "                turn; the seeds are the turns\n"
     "  --no-shrink   leaves a failing seed as it is\n"
     "A seed that fails ends the run: the broken rule is told, with the command that plays\n"
     "it again, and a short scenario for `stint sim run` is written to fuzz-SEED.yaml.\n"
     "The exit status is 0 when all held, 1 when something broke, 2 for bad arguments.\n"
     "doc/dev/testing.md describes what is checked.\n",
     .fn = st_cli_sim_fuzz},
    {"gen", "Generate a fleet and a workload from a seed",
     "[--gpus N] [--teams N] [--users N] [--jobs N] [--seed N] [--days N] [--load N] [-d DIR]",
     "The fleet has nodes of eight H100, A100 or H200 in racks, blocks and zones; the teams\n"
     "have guarantees for 80 to 90 per cent of it. Gangs train on 8 to 512 GPUs and make up\n"
     "most of the GPU time; sweeps, fine-tuning, debugging, notebooks and services on shares\n"
     "make up most of the jobs. Days, weeks and deadlines have their rhythm.\n"
     "  --gpus N    GPUs, rounded down to whole nodes (default: 1024)\n"
     "  --teams N   teams (default: 24)\n"
     "  --users N   users; a few of them submit most jobs (default: 200)\n"
     "  --jobs N    jobs (default: 5000)\n"
     "  --days N    days during which people submit (default: 7)\n"
     "  --load N    GPU time of the jobs, in per cent of the fleet's (default: 95)\n"
     "  --seed N    the same numbers give the same files (default: 42)\n"
     "  -d DIR      writes DIR/world.yaml and DIR/jobs.csv; without it nothing is written\n"
     "What was made is told in two tables. To play it:\n"
     "  stint sim trace --format csv --jobs DIR/jobs.csv --world DIR/world.yaml --html run.html\n"
     "doc/reference/gen.md says what it imitates.\n",
     .fn = st_cli_sim_gen},
    {"replay", "Replay recorded demand under other settings and compare",
     "--store PATH | --backup FILE [OPTION...]",
     "The demand of a real cluster (submits, cancels, real run times, failures of nodes,\n"
     "changes by people) is played through the scheduler again, with what the options\n"
     "change. The report puts what happened and what would have happened side by side:\n"
     "waits, utilisation, preemptions, lost work, fairness, bills, and who is better or worse\n"
     "off. Without changes it reproduces what happened, decision by decision.\n"
     "  --store PATH             the store of a stintd, which may be running\n"
     "  --backup FILE            a copy made by `stint admin backup`\n"
     "  --from T, --to T         what is counted: 2026-11-01 or \"2026-11-01 07:00:00\", in UTC;\n"
     "                           (default: all that the log has)\n"
     "  --policy KEY=VALUE,...   the scheduler's knobs, as in a scenario, with order and basis\n"
     "  --accounts FILE          a document with the key accounts, as in a scenario: who is\n"
     "                           named has these quotas, others keep theirs\n"
     "  --fleet FILE             a document with the keys fleet, pools and types, as in a\n"
     "                           scenario: these are all nodes there are\n"
     "  --prices FILE            a price book, as for `stint price publish`\n"
     "  --anonymous DIR          also writes the demand to DIR/world.yaml and DIR/jobs.csv with\n"
     "                           numbers for names, for `stint sim trace`\n"
     "  -o json                  prints every figure as one JSON document\n"
     "Only reads the store. doc/run/simulate.md describes the figures and the assumptions.\n",
     .fn = st_cli_sim_replay,
     .example = "  stint sim replay --backup monday.db --policy swap=true,min_run=5m\n"},
    {"run", "Play scenarios and check what they expect", "[-v] [-o table|json] FILE...",
     "Each FILE is a YAML document with a fleet, a tree of accounts and a timeline of\n"
     "jobs, failures and changes, and what is expected to come of it. It is played\n"
     "through the scheduler itself. What differs is printed with its line.\n"
     "A file that expects nothing is a question: it is answered with a timeline and a\n"
     "table of who runs, who had to yield and why the rest waits.\n"
     "  -v        prints the timeline and the table always\n"
     "  -o json   prints every decision as one JSON document\n"
     "  --reload  saves and loads the scheduler's state before every entry\n"
     "The exit status is 0 when all held, 1 when something differed, 2 for a bad file.\n"
     "doc/reference/scenarios.md describes every key.\n",
     .fn = st_cli_sim_run},
    {"shares", "Divide capacity over a tree of accounts", "[-o table|json] FILE",
     "FILE is YAML, or JSON when its name ends in .json; - is standard input. It gives\n"
     "the capacity of each resource, the accounts with their guarantees, ceilings,\n"
     "weights, priorities and demands, and the basis on which weights count. The answer\n"
     "is what each account would hold, exactly and in whole units, and what is left.\n"
     "doc/reference/shares.md has the rules and an example.\n",
     .fn = st_cli_sim_shares},
    {"trace", "Play the jobs of a trace through the scheduler and report on them",
     "--format openb|muri|philly|csv [--nodes FILE] [--world FILE] [OPTION...] JOBS",
     "The jobs come from a public trace or from a CSV file of one's own, with the moment\n"
     "they came and the time they really need; the fleet and the accounts from --nodes or,\n"
     "for csv, from a scenario document in --world; with --world the format is csv unless\n"
     "given. --jobs FILE says the same as JOBS.\n"
     "  --policy KEY=VALUE,...   the scheduler's knobs, as in a scenario, with order and basis\n"
     "  --declare WHAT           the time limits users declare: exact, none, or a factor of\n"
     "                           the run time (default: as in the trace)\n"
     "  --scale-time FACTOR      makes all run times that much longer\n"
     "  --save-cost DUR          what leaving costs a preempted job: 30s, or 200ms/GiB\n"
     "  --restore-cost DUR       what coming back costs it\n"
     "  --divide N               philly: each cluster has an Nth of its nodes, rounded up\n"
     "  --from DAY, --to DAY     philly: jobs that came from then on, and before then\n"
     "  --quota floors|none      philly: whether a cluster's nodes are its guarantee\n"
     "  --bookings SHARE%|FILE   of the GPU time, or of jobs named in a file, so much is known "
     "ahead\n"
     "  --bookings-as HOW        booked (a booking each), fenced (GPUs kept and idle until then) "
     "or\n"
     "                           jobs, like all others (default: booked)\n"
     "  --bookings-lead TIME     how long ahead (default: 1d)\n"
     "  --compare-private        plays the jobs also under plain rules, each account alone on\n"
     "                           its own nodes and all in one queue, and says who is later\n"
     "  --until DUR              stops there\n"
     "  --sample DUR             looks at the state that often\n"
     "  --tell DUR               tells waiting jobs that often when they should start, and\n"
     "                           counts what became of it\n"
     "  --csv-jobs FILE, --csv-samples FILE, --html FILE   what to write besides\n"
     "doc/reference/traces.md describes the formats and every figure.\n",
     .fn = st_cli_sim_trace},
    {0},
};
