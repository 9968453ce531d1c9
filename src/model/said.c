/*
 * What nodes say, within what is possible (model/said.h). Pure.
 */
#include "model/said.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "base/utf8.h"

/* The most that is let pass without a word: an agent's sample before the first, a clock that runs a little fast. */
#define SLACK_MS        INT64_C(5000)
#define SLACK_PART      100 /* a hundredth */
#define BACK_MS         INT64_C(60000)
#define PCIE_B_PER_MS   INT64_C(256000000)  /* 16 lanes of the sixth generation, both ways */
#define NVLINK_B_PER_MS INT64_C(3600000000) /* 18 links of the fifth, both ways */
#define HEAT_MOST_C     150
#define EXIT_BAD        255
#define SIGNAL_MAX      64
#define SIGNAL_BAD      9
#define QUANTITY_MAX    (INT64_C(1) << 62)

static const char *const flags[] = {
#define X(id, word) word,
    ST_FLAG_TABLE(X)
#undef X
};

const char *st_flag_name(st_flag flag)
{
    return flags[flag];
}

/* What a board may draw at most, in watts. */
static const struct {
    const char *type;
    int watts;
} boards[] = {
    {"gb300", 1400}, {"b300", 1400},   {"gb200", 1200},  {"b200", 1000},   {"gh200", 1000},
    {"h200", 700},   {"h100", 700},    {"h100-94", 400}, {"a100-80", 500}, {"a100-40", 400},
    {"l40s", 350},   {"l40", 300},     {"l4", 72},       {"a40", 300},     {"a30", 165},
    {"a10", 150},    {"v100", 350},    {"v100-32", 350}, {"v100-16", 350}, {"t4", 70},
    {"mi300x", 750}, {"mi325x", 1000},
};

int64_t st_watts_of(const char *type)
{
    for (size_t i = 0; type && i < ST_ARRAY_LEN(boards); i++)
        if (strcmp(boards[i].type, type) == 0)
            return boards[i].watts;
    return ST_WATTS_MOST;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t out;

    if (a <= 0 || b <= 0)
        return 0;
    return __builtin_mul_overflow(a, b, &out) ? QUANTITY_MAX : ST_MIN(out, QUANTITY_MAX);
}

/* Cuts one sum at `most`; true: it was further beyond than `slack` and a hundredth. */
static bool cut(st_used *u, st_used_kind kind, int64_t most, int64_t slack)
{
    int64_t v = u->v[kind];

    if (!(u->has >> kind & 1) || v <= most)
        return false;
    u->v[kind] = most;
    return v - most > slack + most / SLACK_PART;
}

static int64_t sum_or(const st_used *u, st_used_kind kind, int64_t otherwise)
{
    return u->has >> kind & 1 ? ST_MIN(u->v[kind], otherwise) : otherwise;
}

/* No less than before. A fall of more than what an agent may lose with its last seconds is told. */
static uint32_t keep(const st_bounds *b, const st_used *before, st_used *used)
{
    uint32_t bad = 0;

    for (int k = 0; k < ST_USED_COUNT; k++) {
        if (!(before->has >> k & 1))
            continue;
        if ((used->has >> k & 1) && (k == ST_USED_HELD || k == ST_USED_SEEN) &&
            used->v[k] < before->v[k] - times(b->devs, BACK_MS))
            bad |= 1u << k;
        if (!(used->has >> k & 1) || used->v[k] < before->v[k])
            used->v[k] = before->v[k];
        used->has |= 1u << k;
    }
    return bad;
}

uint32_t st_said_used(const st_bounds *b, const st_used *before, st_used *used)
{
    int64_t devs = ST_MAX(b->devs, 0), all = times(devs, b->time_ms);
    int64_t slack = times(devs, SLACK_MS), watts = times(b->watts, b->part_m);
    uint32_t bad = 0;
    int64_t held, seen;

    for (int k = 0; k < ST_USED_COUNT; k++)
        if ((used->has >> k & 1) && used->v[k] < 0) {
            used->v[k] = 0;
            bad |= 1u << k;
        }
#define CUT(kind, most, slack) (bad |= (uint32_t)cut(used, kind, most, slack) << (kind))
    CUT(ST_USED_HELD, all, slack);
    held = sum_or(used, ST_USED_HELD, all);
    CUT(ST_USED_SEEN, held, slack);
    seen = sum_or(used, ST_USED_SEEN, held);
    CUT(ST_USED_BUSY, seen, slack);
    CUT(ST_USED_SM, seen, slack);
    CUT(ST_USED_DRAM, seen, slack);
    CUT(ST_USED_PCIE, times(held, PCIE_B_PER_MS), times(slack, PCIE_B_PER_MS));
    CUT(ST_USED_NVLINK, times(held, NVLINK_B_PER_MS), times(slack, NVLINK_B_PER_MS));
    CUT(ST_USED_ENERGY, times(held, watts) / 1000,
        times(slack, watts) / 1000 + times(held, watts) / 10000);
    CUT(ST_USED_MEM_PEAK, times(devs, b->vram_mib), 0);
    CUT(ST_USED_HEAT, times(seen, HEAT_MOST_C) / 1000, times(slack, HEAT_MOST_C) / 1000);
    CUT(ST_USED_MEM, times(seen, b->vram_mib) / 1000, times(slack, b->vram_mib) / 1000);
#undef CUT
    return before ? bad | keep(b, before, used) : bad;
}

bool st_said_exit(int64_t code, int64_t signal, int *ret_code, int *ret_signal)
{
    bool good_code = code >= 0 && code <= 255, good_signal = signal >= 0 && signal <= SIGNAL_MAX;

    *ret_code = good_code ? (int)code : EXIT_BAD;
    *ret_signal = good_signal ? (int)signal : SIGNAL_BAD;
    return good_code && good_signal;
}

/* Left-to-right and right-to-left marks, embeddings, overrides and isolates; U+FEFF. */
static bool turns(uint32_t c)
{
    return c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069) || c == 0x061c || c == 0xfeff;
}

/* The character at s; 0 bytes: none. */
static size_t next(const char *s, size_t n, uint32_t *ret)
{
    unsigned char lead = (unsigned char)s[0];
    size_t len = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

    if (len > n || st_utf8_valid(s, len) != len)
        return 0;
    *ret = len == 1 ? lead : lead & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++)
        *ret = *ret << 6 | ((unsigned char)s[i] & 0x3fu);
    return len;
}

void st_said_text(const char *text, char *ret, size_t size)
{
    size_t len = strlen(text), at = 0, n = 0;

    while (at < len && n + 1 < size) {
        uint32_t c = 0;
        size_t bytes = next(text + at, len - at, &c);
        bool bad = bytes == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0) || c == '"' || turns(c);

        bytes = bytes ? bytes : 1;
        if (!bad && n + bytes >= size)
            break;
        if (bad)
            ret[n++] = c == '"' ? '\'' : '?';
        else {
            memmove(ret + n, text + at, bytes); /* it may be its own */
            n += bytes;
        }
        at += bytes;
    }
    ret[n] = '\0';
}

bool st_said_word(const char *text, size_t max)
{
    size_t n = strlen(text);

    for (size_t i = 0; i < n; i++) {
        char c = text[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            !strchr("._:/%[]+-", c))
            return false;
    }
    return n > 0 && n <= max;
}
