/*
 * Who speaks for a node (engine/voices.h). Pure.
 */
#include "engine/voices.h"

#include <stdio.h>
#include <string.h>

#define WINDOW 64

static bool is(const char *a, const char *b)
{
    return a[0] && strcmp(a, b) == 0;
}

static void say_goodbye(st_voices *v, st_voice *voice)
{
    if (voice->boot[0])
        memcpy(v->gone[v->ngone++ % ST_VOICES_GONE], voice->boot, sizeof voice->boot);
    *voice = (st_voice){0};
}

static bool is_gone(const st_voices *v, const char *boot)
{
    for (int i = 0; i < v->ngone && i < ST_VOICES_GONE; i++)
        if (is(v->gone[i], boot))
            return true;
    return false;
}

static void renew(st_voice *voice, const char *boot, const char *session, int64_t now)
{
    *voice = (st_voice){.heard_ms = now};
    snprintf(voice->boot, sizeof voice->boot, "%s", boot);
    snprintf(voice->session, sizeof voice->session, "%s", session);
}

static void promote(st_voices *v)
{
    st_voice next = v->other;

    say_goodbye(v, &v->now);
    v->now = next;
    v->other = (st_voice){0};
}

bool st_voices_tick(st_voices *v, int64_t silence_ms, int64_t now)
{
    if (v->two || !v->other.boot[0] || now < v->now.heard_ms + silence_ms)
        return false;
    promote(v);
    return true;
}

void st_voices_open(st_voices *v, const char *boot, const char *session, int64_t silence_ms,
                    int64_t now)
{
    st_voices_tick(v, silence_ms, now);
    if (is(v->now.boot, boot)) {
        v->two = v->two || v->other.boot[0];
        renew(&v->now, boot, session, now);
    } else if (is(v->other.boot, boot)) {
        renew(&v->other, boot, session, now);
    } else if (!v->two && !is_gone(v, boot) && now >= v->now.heard_ms + silence_ms) {
        say_goodbye(v, &v->now);
        renew(&v->now, boot, session, now);
    } else {
        v->two = v->two || is_gone(v, boot);
        say_goodbye(v, &v->other);
        renew(&v->other, boot, session, now);
    }
}

/* Each number once, and in the order of sending give or take a few: an agent has several requests under way. */
static bool count(st_voice *voice, uint64_t n)
{
    uint64_t back;

    if (n == 0)
        return false;
    if (n > voice->top) {
        uint64_t ahead = n - voice->top;

        voice->seen = ahead < WINDOW ? voice->seen << ahead | 1 : 1;
        voice->top = n;
        return true;
    }
    back = voice->top - n;
    if (back >= WINDOW || voice->seen >> back & 1)
        return false;
    voice->seen |= UINT64_C(1) << back;
    return true;
}

st_hearing st_voices_hear(st_voices *v, const char *boot, const char *session, uint64_t n,
                          int64_t silence_ms, int64_t now)
{
    bool mine, others;

    st_voices_tick(v, silence_ms, now);
    mine = is(v->now.boot, boot) && is(v->now.session, session);
    others = is(v->other.boot, boot) && is(v->other.session, session);
    if (!mine && !others)
        return ST_STALE;
    if (!count(mine ? &v->now : &v->other, n))
        return ST_REPLAY;
    /* It may have been on its way since before the other came: only a fresh proof tells. */
    if (mine && v->other.boot[0] && !v->two)
        return ST_STALE;
    if (mine)
        v->now.heard_ms = now;
    else
        v->other.heard_ms = now;
    return mine ? ST_HEARD : ST_WAITING;
}

bool st_voices_believes(const st_voices *v, const char *boot)
{
    return is(v->now.boot, boot);
}

void st_voices_freeze(st_voices *v, const char *boot)
{
    if (!v->two && boot && boot[0] && !v->now.boot[0])
        snprintf(v->now.boot, sizeof v->now.boot, "%s", boot);
    v->two = true;
}

/* If both are still there, they are found out again before anything is given to the other. */
void st_voices_thaw(st_voices *v)
{
    v->two = false;
    v->other = (st_voice){0};
    v->ngone = 0;
}

void st_voices_forget(st_voices *v)
{
    *v = (st_voices){0};
}
