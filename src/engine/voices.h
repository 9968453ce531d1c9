/*
 * Who speaks for a node. An agent has one voice from its start to its end, told by its boot id; stintd listens to
 * one voice of a node at a time.
 *
 * Rules:
 *  1 A voice is opened by a proof over a fresh challenge, and given a session. Each message of a session has a
 *    number; a number is taken once, and not much later than larger ones.
 *  2 A new voice waits until the one before it has been silent for `silence_ms`: it is answered, but what it says
 *    is not taken and no list goes out to it. An agent that was restarted loses a few seconds by that.
 *  3 A voice that others have followed, or that another waits for, and that opens afresh is alive beside them:
 *    two agents have the node's key. From then on the node is frozen: the voice that was believed stays so and is
 *    given no new work; others are answered, and not believed. Only an owner ends it.
 *
 * Pure: time comes in. One per node, under its owner's lock.
 */
#ifndef ST_ENGINE_VOICES_H
#define ST_ENGINE_VOICES_H

#include "base/err.h"
#include "model/proof.h"

#define ST_VOICES_GONE 16 /* voices of the past that are remembered */

typedef struct st_voice {
    char boot[ST_BOOT_TEXT];       /* "": nobody */
    char session[ST_SESSION_TEXT]; /* "": to be opened again */
    uint64_t top, seen;            /* the largest number, and which of the 64 up to it were taken */
    int64_t heard_ms;
} st_voice;

typedef struct st_voices {
    st_voice now;   /* believed */
    st_voice other; /* waits, or speaks beside it */
    char gone[ST_VOICES_GONE][ST_BOOT_TEXT];
    int ngone; /* ever */
    bool two;
} st_voices;

typedef enum st_hearing {
    ST_HEARD,   /* take what it says */
    ST_WAITING, /* answer it, and that is all */
    ST_STALE,   /* not this session any more: it must open a new one */
    ST_REPLAY,  /* that number was taken, or is long past */
} st_hearing;

/* A voice has proved itself afresh and gets this session. */
void st_voices_open(st_voices *v, const char *boot, const char *session, int64_t silence_ms,
                    int64_t now);
/* A message whose signature is good. */
st_hearing st_voices_hear(st_voices *v, const char *boot, const char *session, uint64_t n,
                          int64_t silence_ms, int64_t now);
/* Time has passed: true when another voice is believed now. */
bool st_voices_tick(st_voices *v, int64_t silence_ms, int64_t now);
/* Whether this voice is the one that is believed. */
bool st_voices_believes(const st_voices *v, const char *boot);
/* It is frozen, as was written down; `boot` is who was believed then. */
void st_voices_freeze(st_voices *v, const char *boot);
/* An owner has seen to it: whoever was believed goes on, if it is still there. */
void st_voices_thaw(st_voices *v);
/* Nobody is known any more: another key. */
void st_voices_forget(st_voices *v);

#endif
