/* Symptoms (health/symptoms.h). */
#include "health/symptoms.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "base/num.h"
#include "base/quote.h"

#define HELD_DOWN (0x8 | 0x40 | 0x80) /* hardware slowdown, heat, power brake */

static const struct {
    const char *name;
    size_t at;
    int64_t def, least, most;
} thresholds[] = {
#define X(name, def, least, most, about) \
    {#name, offsetof(st_symptom_rules, name), def, least, most},
    ST_SYMPTOM_TABLE(X)
#undef X
};

static int64_t *slot(st_symptom_rules *rules, size_t i)
{
    return (int64_t *)(void *)((char *)rules + thresholds[i].at);
}

static int read_one(const char *word, size_t n, st_symptom_rules *rules, st_err *err)
{
    char text[64], *equals, q[ST_QUOTE_MAX];

    snprintf(text, sizeof text, "%.*s", (int)n, word);
    equals = strchr(text, '=');
    if (!equals || n >= sizeof text)
        return st_fail(err, ST_EINVAL, "%s is not NAME=N", st_quote(q, text));
    *equals = '\0';
    for (size_t i = 0; i < ST_ARRAY_LEN(thresholds); i++)
        if (strcmp(thresholds[i].name, text) == 0)
            return st_parse_i64(equals + 1, thresholds[i].least, thresholds[i].most, slot(rules, i),
                                err);
    return st_fail(err, ST_EINVAL, "%s is no threshold", st_quote(q, text));
}

int st_symptom_rules_read(const char *text, st_symptom_rules *ret, st_err *err)
{
    st_symptom_rules rules;
    int r = 0;

    for (size_t i = 0; i < ST_ARRAY_LEN(thresholds); i++)
        *slot(&rules, i) = thresholds[i].def;
    for (size_t n; r == 0 && text && *text; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        r = read_one(text, n, &rules, err);
    }
    if (r == 0)
        *ret = rules;
    return r;
}

void st_symptoms_init(st_symptoms *s, const st_symptom_rules *rules)
{
    *s = (st_symptoms){.rules = *rules};
    for (int d = 0; d < ST_DEVS_MAX; d++)
        s->gpu[d].links = s->gpu[d].most = ST_DIAG_UNKNOWN;
}

/* ---- seeing ----------------------------------------------------------------------------- */

/* How much a counter grew within the window, or a little longer. */
static int64_t growth(st_symptom_count *c, int64_t value, int64_t window_ms, int64_t now)
{
    if (!c->known || value < c->value)
        *c = (st_symptom_count){.known = true, .value = value, .before = value, .at_ms = now};
    if (now - c->at_ms >= window_ms / 2) {
        c->before = now - c->at_ms >= window_ms ? value : c->value;
        c->value = value;
        c->at_ms = now;
    }
    return value - c->before;
}

static void mark(st_symptoms_gpu *g, st_symptom what, bool there, int64_t value, int64_t now)
{
    if (there && g->since_ms[what] == 0)
        g->since_ms[what] = now;
    if (there)
        g->value[what] = value;
    else
        g->since_ms[what] = 0;
}

static void see_links(const st_symptom_rules *r, st_symptoms_gpu *g, int64_t links, int64_t now)
{
    int64_t changes;

    if (links == ST_DIAG_UNKNOWN)
        return;
    g->changed += g->links != ST_DIAG_UNKNOWN && links != g->links;
    g->links = links;
    g->most = ST_MAX(g->most, links);
    changes = growth(&g->changes, g->changed, r->window_ms, now);
    mark(g, ST_SYMPTOM_FLAPS, changes >= r->link_changes, changes, now);
    mark(g, ST_SYMPTOM_LINKS, links < g->most, g->most - links, now);
}

static void see_errors(const st_symptom_rules *r, st_symptoms_gpu *g, const st_symptom_look *l,
                       int64_t now)
{
    int64_t more;

    if (l->corrected != ST_DIAG_UNKNOWN) {
        more = growth(&g->corrected, l->corrected, r->window_ms, now);
        mark(g, ST_SYMPTOM_CORRECTED, more >= r->corrected, more, now);
    }
    if (l->uncorrected != ST_DIAG_UNKNOWN) {
        more = growth(&g->uncorrected, l->uncorrected, r->window_ms, now);
        mark(g, ST_SYMPTOM_UNCORRECTED, more >= r->uncorrected, more, now);
    }
    if (l->remap_pending != ST_DIAG_UNKNOWN)
        mark(g, ST_SYMPTOM_REMAP, l->remap_pending > 0, l->remap_pending, now);
}

void st_symptoms_see(st_symptoms *s, const st_symptom_look *gpu, int n, int64_t memory_percent,
                     int64_t now)
{
    int free = 0;

    ST_ASSERT(now > 0 && n <= ST_DEVS_MAX);
    for (int d = 0; d < n; d++)
        free += gpu[d].throttle != ST_DIAG_UNKNOWN && !(gpu[d].throttle & HELD_DOWN);
    for (int d = 0; d < n; d++) {
        const st_symptom_look *l = &gpu[d];
        st_symptoms_gpu *g = &s->gpu[d];

        see_links(&s->rules, g, l->links, now);
        see_errors(&s->rules, g, l, now);
        if (l->width > 0 && l->width_max > 0)
            mark(g, ST_SYMPTOM_LANES, l->width < l->width_max, l->width, now);
        if (l->throttle != ST_DIAG_UNKNOWN)
            mark(g, ST_SYMPTOM_THROTTLED, (l->throttle & HELD_DOWN) != 0, free, now);
    }
    if (memory_percent != ST_DIAG_UNKNOWN)
        mark(&s->gpu[0], ST_SYMPTOM_MEMORY, memory_percent < s->rules.memory_percent,
             memory_percent, now);
}

/* ---- saying ----------------------------------------------------------------------------- */

static void say(st_symptom what, int gpu, int64_t value, char text[ST_DIAG_TEXT])
{
    static const char *const words[] = {
        [ST_SYMPTOM_UNCORRECTED] = "%" PRId64 " memory errors could not be corrected lately",
        [ST_SYMPTOM_REMAP] = "%" PRId64 " rows of memory wait to be replaced",
        [ST_SYMPTOM_FLAPS] = "its NVLinks went up and down %" PRId64 " times lately",
        [ST_SYMPTOM_LINKS] = "%" PRId64 " of its NVLinks are down",
        [ST_SYMPTOM_LANES] = "it has %" PRId64 " lanes of PCIe, and had more",
        [ST_SYMPTOM_CORRECTED] = "%" PRId64 " memory errors were corrected lately",
        [ST_SYMPTOM_THROTTLED] =
            "heat or a power brake holds it down, and not %" PRId64 " of its siblings",
        [ST_SYMPTOM_MEMORY] = "only %" PRId64 "%% of the node's memory are free",
    };
    int n = what == ST_SYMPTOM_MEMORY ? 0 : snprintf(text, ST_DIAG_TEXT, "GPU %d: ", gpu);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text + n, (size_t)(ST_DIAG_TEXT - n), words[what], value);
#pragma GCC diagnostic pop
}

/* Growth was counted for long enough; all else has to last. */
static bool lasts(const st_symptoms *s, int gpu, st_symptom what, int64_t now)
{
    bool counted =
        what == ST_SYMPTOM_UNCORRECTED || what == ST_SYMPTOM_CORRECTED || what == ST_SYMPTOM_FLAPS;
    int64_t since = s->gpu[gpu].since_ms[what];

    return since > 0 && (counted || now - since >= s->rules.lasts_ms);
}

bool st_symptoms_worst(const st_symptoms *s, int n, int64_t now, st_finding *ret,
                       char text[ST_DIAG_TEXT])
{
    static const st_fault kinds[] = {
        [ST_SYMPTOM_UNCORRECTED] = ST_FAULT_WEAR, [ST_SYMPTOM_REMAP] = ST_FAULT_WEAR,
        [ST_SYMPTOM_FLAPS] = ST_FAULT_LINK,       [ST_SYMPTOM_LINKS] = ST_FAULT_LINK,
        [ST_SYMPTOM_LANES] = ST_FAULT_PCIE,       [ST_SYMPTOM_CORRECTED] = ST_FAULT_WEAR,
        [ST_SYMPTOM_THROTTLED] = ST_FAULT_HEAT,   [ST_SYMPTOM_MEMORY] = ST_FAULT_MEMORY,
    };

    for (int what = 0; what < ST_SYMPTOM_COUNT; what++) {
        for (int d = 0; d < ST_MAX(n, 1); d++) {
            if (!lasts(s, d, (st_symptom)what, now))
                continue;
            say((st_symptom)what, d, s->gpu[d].value[what], text);
            *ret = (st_finding){.kind = kinds[what], .gpu = what == ST_SYMPTOM_MEMORY ? -1 : d};
            return true;
        }
    }
    return false;
}
