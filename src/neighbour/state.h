/* What the files of neighbour have for each other. */
#ifndef ST_NEIGHBOUR_STATE_H
#define ST_NEIGHBOUR_STATE_H

#include "neighbour/neighbour.h"

#define NB_LOADS 40 /* a usual value for each doubling of the requests a second */
#define NB_PAST  16
#define NB_PAIRS 64
#define NB_NOTES 256

/* What is usual under some load. */
typedef struct nb_usual {
    double p99_ns, p90_ns;
    double late; /* of all requests, those beyond the limit */
    int64_t windows;
} nb_usual;

/* A window that is over. */
typedef struct nb_past {
    int64_t at_ms;
    double ratio;       /* of p99 to what is usual; 0: that is not known */
    double late, count; /* requests beyond the limit, of so many */
    double above;       /* requests beyond the usual p90 */
    double usual;       /* part that is late by itself */
    double by_chance;   /* that so many are late */
    bool slow;
} nb_past;

typedef enum nb_verdict { NB_UNCLEAR, NB_BETTER, NB_SLOW, NB_NEITHER } nb_verdict;

typedef struct nb_task {
    uint64_t id;
    int64_t came_ms;
    int share_pm;
    bool latency, capable, has_times, gone;
    /* GPU time, of 1000: lately and before that */
    uint64_t gpu_ns;
    int64_t gpu_ms;
    double fast_pm, slow_pm;
    int64_t busy_ms; /* when it last had more than a little of the GPU */
    int64_t grew_ms; /* when it arrived or grew; -1: long ago */
    /* requests */
    uint64_t before[ST_NB_TIMES];
    uint32_t window[ST_NB_TIMES];
    int64_t window_ms, count;
    nb_usual usual[NB_LOADS];
    nb_past past[NB_PAST]; /* newest first */
    int64_t incident_ms;   /* none before; -1: any time */
    int64_t slow_windows;
} nb_task;

typedef enum nb_step {
    NB_WATCH,
    NB_PAUSED, /* the suspect is paused */
    NB_LET_GO, /* and let go */
    NB_AGAIN,  /* and paused again */
    NB_ACTED,  /* an action was taken, and is looked at */
    NB_HELD,   /* it helped */
} nb_step;

/* Victim and suspect, as they were found before. */
typedef struct nb_pair {
    uint64_t victim, suspect;
    int64_t pardoned_ms; /* not tested before then */
    int64_t hold_ms;     /* 0: never confirmed */
    st_nb_rung rung;
    bool wished; /* that they be apart */
} nb_pair;

struct st_nb {
    st_nb_policy policy;
    nb_task task[ST_NB_TASKS];
    int ntask;
    /* the case */
    nb_step step;
    uint64_t victim, suspect;
    st_nb_rung rung;
    double ratio, late, above; /* with the suspect at large: of p99, and parts of the requests */
    int64_t until_ms, free_ms;
    nb_pair pair[NB_PAIRS];
    int npair;
    st_nb_note note[NB_NOTES];
    size_t nnote;
};

/* ---- signal.c: what is usual for a job, and whether it is slow ---- */
void st_nb_see(st_nb *nb, nb_task *t, const st_nb_sample *s, int64_t now);
/* True: a window has ended. */
bool st_nb_window(st_nb *nb, nb_task *t, int64_t now);
nb_verdict st_nb_verdict(const st_nb *nb, const nb_task *t, int64_t now);
/* Whether there are requests enough to judge an action by, and its ratio. */
bool st_nb_enough(const st_nb *nb, const nb_task *t, int64_t now, double *ret_ratio);
void st_nb_fresh_window(nb_task *t, int64_t now);
bool st_nb_is_slow(const st_nb *nb, const nb_task *t);
void st_nb_forget(nb_task *t);

/* ---- case.c: from a suspicion to a cure ---- */
/* Who may have slowed it: arrived or grew lately; NULL: nobody. */
nb_task *st_nb_suspect(st_nb *nb, const nb_task *victim, int64_t now);
/* A window of somebody has ended. */
void st_nb_case_window(st_nb *nb, nb_task *t, int64_t now);
/* Time has gone on. */
void st_nb_case_tick(st_nb *nb, int64_t now);

/* ---- neighbour.c ---- */
nb_task *st_nb_find(st_nb *nb, uint64_t id);
void st_nb_say(st_nb *nb, st_nb_kind kind, uint64_t victim, uint64_t suspect, double ratio,
               int64_t now);

#endif
