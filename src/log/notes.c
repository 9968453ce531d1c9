/*
 * Notes in the log (log/log.h), and what they mean for the meter.
 */
#include "log/log.h"

#define BEGIN_NOTES '\xff' /* an event begins with its kind, which is small */

static const int numbers[] = {
#define X(id, n) n,
    ST_NOTE_TABLE(X)
#undef X
};

st_note st_note_used(uint64_t job, int stay, int task, const st_sums *sums)
{
    return (st_note){.kind = ST_NOTE_USED,
                     .v = {(int64_t)job, stay, task, sums->seen_gpu_ms, sums->busy_gpu_ms,
                           sums->energy_mj, sums->mem_peak_mib}};
}

void st_note_sums(const st_note *note, st_sums *ret)
{
    *ret = (st_sums){.seen_gpu_ms = note->v[3],
                     .busy_gpu_ms = note->v[4],
                     .energy_mj = note->v[5],
                     .mem_peak_mib = note->v[6]};
}

const st_note *st_notes_find(const st_notes *notes, st_note_kind kind, int64_t about)
{
    for (size_t i = notes->n; i-- > 0;)
        if (notes->v[i].kind == kind && notes->v[i].v[0] == about)
            return &notes->v[i];
    return NULL;
}

bool st_notes_pass(const st_notes *notes, bool events)
{
    bool pass = events;

    for (size_t i = 0; i < notes->n; i++) {
        if (notes->v[i].kind == ST_NOTE_LATER)
            pass = false;
        else if (notes->v[i].kind == ST_NOTE_PASS)
            pass = true;
    }
    return pass;
}

/* Seven bits a byte, lowest first, the sign in the lowest bit. */
static void put(st_strbuf *out, int64_t v)
{
    uint64_t u = (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);

    for (; u >= 0x80; u >>= 7)
        st_strbuf_addc(out, (char)(u | 0x80));
    st_strbuf_addc(out, (char)u);
}

static bool get(const char *data, size_t len, size_t *at, int64_t *ret)
{
    uint64_t u = 0;

    for (unsigned shift = 0; *at < len && shift < 64; shift += 7) {
        unsigned char next = (unsigned char)data[(*at)++];

        if (shift == 63 && next > 1)
            return false;
        u |= (uint64_t)(next & 0x7f) << shift;
        if (next < 0x80) {
            *ret = (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
            return true;
        }
    }
    return false;
}

void st_notes_write(const st_notes *notes, st_strbuf *out)
{
    if (notes->n > 0)
        st_strbuf_addc(out, BEGIN_NOTES);
    for (size_t i = 0; i < notes->n; i++) {
        const st_note *note = &notes->v[i];

        put(out, (int64_t)note->kind);
        for (int k = 0; k < numbers[note->kind]; k++)
            put(out, note->v[k]);
    }
}

bool st_notes_here(const char *data, size_t len, size_t at)
{
    return at < len && data[at] == BEGIN_NOTES;
}

int st_notes_read(const char *data, size_t len, size_t at, st_notes *ret, st_err *err)
{
    at++;
    while (at < len) {
        st_note note = {0};
        int64_t kind;
        bool good = get(data, len, &at, &kind) && kind >= 0 && kind < ST_NOTE_COUNT;

        for (int k = 0; good && k < numbers[kind]; k++)
            good = get(data, len, &at, &note.v[k]);
        if (!good)
            return st_fail(err, ST_ECORRUPT, "what it says to the meter is damaged");
        note.kind = (st_note_kind)kind;
        st_vec_push(ret, note);
    }
    return 0;
}

static int64_t ended_at(void *ctx, uint64_t job)
{
    const st_note *note = st_notes_find(ctx, ST_NOTE_ENDED, (int64_t)job);

    return note ? note->v[1] : ST_UNSET;
}

static int64_t started_at(void *ctx, uint64_t job)
{
    const st_note *note = st_notes_find(ctx, ST_NOTE_STARTED, (int64_t)job);

    return note ? note->v[1] : ST_UNSET;
}

void st_log_meter(const st_core *core, const st_effects *fx, st_notes *notes, int64_t now,
                  st_meter **meter, st_records *out)
{
    const st_metering_hint hint = {.started_ms = started_at, .ended_ms = ended_at, .ctx = notes};

    for (size_t i = 0; *meter && i < notes->n; i++) {
        const st_note *note = &notes->v[i];
        st_sums sums;

        if (note->kind != ST_NOTE_USED)
            continue;
        st_note_sums(note, &sums);
        st_meter_used(*meter, (uint64_t)note->v[0], (int)note->v[1], (int)note->v[2], &sums, out);
    }
    if (*meter)
        st_core_meter(core, fx, 0, now, &hint, *meter, out);
    for (size_t i = 0; i < notes->n; i++) {
        const st_note *note = &notes->v[i];

        if (note->kind == ST_NOTE_BEGIN) {
            st_meter_free(*meter);
            *meter = st_meter_new(now);
            st_core_meter_seed(core, *meter, now, out);
        } else if (note->kind == ST_NOTE_AGREE && *meter) {
            st_meter_agree(*meter, (int32_t)note->v[0], note->v[1]);
        } else if (note->kind == ST_NOTE_STARTED && *meter) {
            st_meter_began(*meter, (uint64_t)note->v[0], note->v[1], now);
        } else if (note->kind == ST_NOTE_CUT && *meter) {
            st_meter_cut(*meter, now, out);
        } else if (note->kind == ST_NOTE_BEYOND && *meter) {
            st_meter_class(*meter, st_core_tree(core), (uint64_t)note->v[0], ST_CLASS_BURSTABLE,
                           now, out);
        } else if (note->kind == ST_NOTE_WITHIN && *meter) {
            st_meter_booked(*meter, (uint64_t)note->v[0], now, out);
        } else if (note->kind == ST_NOTE_LENT && *meter) {
            st_meter_split(*meter, (uint64_t)note->v[0], now, out);
        } else if (note->kind == ST_NOTE_INSIDE && *meter) {
            st_meter_inside(*meter, st_core_tree(core), now);
        }
    }
}
