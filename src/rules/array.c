/*
 * From one document to many: frames in chunks, and plain arrays (rules/workload.h).
 *
 * A piece is the document with a name of its own, its place in `array` and the same in its
 * environment. What the pieces have in common is written once (st_rules_jobs):
 *   frames   array {index, count, frames: [first, last], step?}; STINT_FRAME_START,
 *            STINT_FRAME_END, STINT_FRAME_STEP, STINT_CHUNK (from 0), STINT_CHUNKS
 *   plain    array {index, count}; STINT_ARRAY_INDEX, STINT_ARRAY_COUNT
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "model/types.h"
#include "rules/frames.h"
#include "rules/values.h"
#include "rules/workload.h"

#define FPS_MAX_M      (INT64_C(1000) * 1000)
#define FPS_DEFAULT_M  (INT64_C(24) * 1000)
#define VIDEO_CHUNK_MS 10000

typedef struct pieces {
    st_frames_vec v; /* of a plain array: the indices, one each */
    bool frames;
} pieces;

static void pieces_done(pieces *p)
{
    st_vec_free(&p->v);
}

/* ---- frames --------------------------------------------------------------------------------- */

static int read_frames(const json_t *job, st_frames_vec *ret, st_err *err)
{
    char buf[ST_VALUE_TEXT];
    const char *text = st_value_text(json_object_get(job, "frames"), buf);

    if (!text)
        return st_fail(err, ST_EINVAL, "frames: a list like 1-240 or 1-240,300-310x2 is wanted");
    if (st_frames_parse(text, ret, err) < 0)
        return st_fail_prefix(err, "frames: ");
    return 0;
}

/* Frames 0 to n - 1 of a piece of film; a last frame that is begun counts. */
static int read_duration(const json_t *job, int64_t fps_m, st_frames_vec *ret, st_err *err)
{
    int64_t ms = 0, n;
    int r = st_value_duration_ms(job, "duration", &ms, err);

    if (r < 0)
        return r;
    n = (int64_t)(((st_i128)ms * fps_m + 999999) / 1000000);
    if (n < 1 || n > ST_FRAME_MAX)
        return st_fail(err, ST_ERANGE,
                       "duration: that is %" PRId64 " frames; from 1 to %" PRId64 " can be made", n,
                       ST_FRAME_MAX);
    st_vec_push(ret, (st_frames){.first = 0, .last = n - 1, .step = 1});
    return 0;
}

/* Frames, or of a video a duration ("10s"). */
static int read_chunk(const json_t *job, bool video, int64_t fps_m, int64_t *ret, st_err *err)
{
    const char *text = json_string_value(json_object_get(job, "chunk"));
    int64_t ms = VIDEO_CHUNK_MS;
    bool timed = video && (!st_value_has(job, "chunk") ||
                           (text && strspn(text, "0123456789") < strlen(text)));
    int r;

    *ret = 1;
    if (!timed)
        return st_value_i64(job, "chunk", 1, ST_FRAME_MAX, ret, err);
    r = st_value_duration_ms(job, "chunk", &ms, err);
    if (r == 0)
        *ret = ST_MAX(1, ST_MIN(ST_FRAME_MAX, (int64_t)((st_i128)ms * fps_m / 1000000)));
    return r;
}

static int cut_frames(const json_t *job, bool video, pieces *ret, st_err *err)
{
    ST_CLEANUP(pieces_done) pieces ranges = {0};
    bool frames = st_value_has(job, "frames"), duration = st_value_has(job, "duration");
    int64_t fps_m = FPS_DEFAULT_M, chunk = 1;
    int r;

    if (st_value_has(job, "array"))
        return st_fail(err, ST_EINVAL, "frames make an array of their own: leave array out");
    if (frames == duration)
        return st_fail(err, ST_EINVAL, "workload %s",
                       !video ? "render needs frames, such as 1-240"
                              : "video needs frames or a duration, one of them");
    r = st_value_milli(job, "fps", 1, FPS_MAX_M, &fps_m, err);
    if (r == 0)
        r = frames ? read_frames(job, &ranges.v, err) : read_duration(job, fps_m, &ranges.v, err);
    if (r == 0)
        r = read_chunk(job, video, fps_m, &chunk, err);
    if (r == 0)
        r = st_frames_chunk(&ranges.v, chunk, &ret->v, err);
    ret->frames = true;
    return r;
}

/* ---- plain arrays --------------------------------------------------------------------------- */

static int cut_list(const char *text, pieces *ret, st_err *err)
{
    ST_CLEANUP(pieces_done) pieces ranges = {0};

    if (st_frames_parse(text, &ranges.v, err) < 0 ||
        st_frames_chunk(&ranges.v, 1, &ret->v, err) < 0)
        return st_fail_prefix(err, "array: ");
    return 0;
}

/* {count: N}, {range: "1-100"}, "1-100". */
static int cut_array(const json_t *job, pieces *ret, st_err *err)
{
    const json_t *a = json_object_get(job, "array");
    const char *list = json_string_value(a);
    int64_t n = 0;

    if (list)
        return cut_list(list, ret, err);
    if (st_value_has(a, "index"))
        return st_fail(err, ST_EINVAL,
                       "array: index is given by the service; ask for {count: N} or a list "
                       "such as 1-100");
    if (json_is_object(a) && json_object_size(a) == 1 && st_value_has(a, "range")) {
        list = json_string_value(json_object_get(a, "range"));
        if (list)
            return cut_list(list, ret, err);
    } else if (json_is_object(a) && json_object_size(a) == 1 && st_value_has(a, "count")) {
        if (st_value_i64(a, "count", 1, ST_CHUNKS_MAX, &n, err) < 0)
            return st_fail_prefix(err, "array: ");
        for (int64_t i = 0; i < n; i++)
            st_vec_push(&ret->v, (st_frames){.first = i, .last = i, .step = 1});
        return 0;
    }
    return st_fail(err, ST_EINVAL, "array: {count: N} or a list such as 1-100 is wanted");
}

/* ---- pieces --------------------------------------------------------------------------------- */

/* Names of the environment that are a piece's own. */
static const char *const frame_env[] = {"STINT_FRAME_START", "STINT_FRAME_END", "STINT_FRAME_STEP",
                                        "STINT_CHUNK",       "STINT_CHUNKS",    NULL};
static const char *const array_env[] = {"STINT_ARRAY_INDEX", "STINT_ARRAY_COUNT", NULL};

/* Everything but name and place, with the environment last and open: pieces write on from there. */
static char *make_head(const json_t *job, const char *const *own, bool *ret_more)
{
    static const char *const apart[] = {"name", "env", "array", NULL};
    json_t *rest = json_copy((json_t *)(uintptr_t)job);
    const json_t *given = json_object_get(job, "env");
    json_t *env = given ? json_copy((json_t *)(uintptr_t)given) : json_object();
    st_strbuf out = {0};
    char *text;

    for (int i = 0; apart[i]; i++)
        json_object_del(rest, apart[i]);
    for (int i = 0; own[i]; i++)
        json_object_del(env, own[i]);
    text = st_rules_text(rest);
    st_strbuf_addn(&out, text, strlen(text) - 1);
    st_strbuf_addf(&out, "%s\"env\":", json_object_size(rest) > 0 ? "," : "");
    free(text);
    text = st_rules_text(env);
    st_strbuf_addn(&out, text, strlen(text) - 1);
    free(text);
    *ret_more = json_object_size(env) > 0;
    json_decref(rest);
    json_decref(env);
    return st_strbuf_take(&out);
}

/* A name that has no room for a number is the same for all. */
static char *make_name(const json_t *job, int64_t index)
{
    const char *name = json_string_value(json_object_get(job, "name"));
    char text[ST_NAME_MAX + 32];

    if (!name)
        name = "job";
    if (strlen(name) > ST_NAME_MAX - 12)
        return st_xstrdup(name);
    snprintf(text, sizeof text, "%s.%" PRId64, name, index);
    return st_xstrdup(text);
}

static void add_env(st_strbuf *out, const char *const *names, const int64_t *values)
{
    for (int i = 0; names[i]; i++)
        st_strbuf_addf(out, "%s\"%s\":\"%" PRId64 "\"", i ? "," : "", names[i], values[i]);
}

static char *make_tail(const pieces *p, size_t i, const char *name, bool more)
{
    const st_frames *f = &p->v.v[i];
    int64_t n = (int64_t)p->v.n, index = p->frames ? (int64_t)i : f->first;
    st_strbuf out = {0};

    st_strbuf_add(&out, more ? "," : "");
    if (p->frames)
        add_env(&out, frame_env, (const int64_t[]){f->first, f->last, f->step, index, n});
    else
        add_env(&out, array_env, (const int64_t[]){index, n});
    st_strbuf_add(&out, "},\"name\":");
    st_quote_json(&out, name);
    st_strbuf_addf(&out, ",\"array\":{\"index\":%" PRId64 ",\"count\":%" PRId64, index, n);
    if (p->frames)
        st_strbuf_addf(&out, ",\"frames\":[%" PRId64 ",%" PRId64 "]", f->first, f->last);
    if (p->frames && f->step > 1)
        st_strbuf_addf(&out, ",\"step\":%" PRId64, f->step);
    st_strbuf_add(&out, "}}");
    return st_strbuf_take(&out);
}

/* 1-100%8, or {count: 100, throttle: 8}: so many at a time, which is a key of its own from here on. */
static int take_throttle(json_t *job, st_err *err)
{
    json_t *a = json_object_get(job, "array");
    const char *list = json_string_value(a);
    const char *sign = list ? strchr(list, '%') : NULL;
    char *end;
    long n;

    if (json_is_object(a) && json_object_get(a, "throttle")) {
        json_object_set(job, "throttle", json_object_get(a, "throttle"));
        json_object_del(a, "throttle");
    }
    if (!sign)
        return 0;
    n = strtol(sign + 1, &end, 10);
    if (end == sign + 1 || *end || n < 1 || n > ST_CHUNKS_MAX)
        return st_fail(err, ST_EINVAL,
                       "array: how many run at a time stands behind %%, as in 1-100%%8");
    json_object_set_new(job, "throttle", json_integer(n));
    json_object_set_new(job, "array", json_stringn(list, (size_t)(sign - list)));
    return 0;
}

int st_array_apply(json_t *job, st_rules_jobs *ret, st_err *err)
{
    const char *workload = json_string_value(json_object_get(job, "workload"));
    bool video = workload && strcmp(workload, "video") == 0, more;
    ST_CLEANUP(pieces_done) pieces p = {0};
    int r = take_throttle(job, err);

    if (r < 0)
        return r;
    if (video || (workload && strcmp(workload, "render") == 0)) {
        r = cut_frames(job, video, &p, err);
    } else if (st_value_has(job, "array")) {
        r = cut_array(job, &p, err);
    } else {
        ret->head = st_xstrdup("");
        st_vec_push(&ret->pieces, (st_rules_piece){.tail = st_rules_text(job)});
        return 0;
    }
    if (r < 0)
        return r;
    if (st_value_has(job, "env") && !json_is_object(json_object_get(job, "env")))
        return st_fail(err, ST_EINVAL, "env: a map of names and values is wanted");
    ret->head = make_head(job, p.frames ? frame_env : array_env, &more);
    for (size_t i = 0; i < p.v.n; i++) {
        char *name = make_name(job, p.frames ? (int64_t)i : p.v.v[i].first);

        st_vec_push(&ret->pieces, (st_rules_piece){.tail = make_tail(&p, i, name, more),
                                                   .index = p.frames ? (int64_t)i : p.v.v[i].first,
                                                   .name = name});
    }
    return 0;
}
