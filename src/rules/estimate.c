/*
 * Memory of models (rules/estimate.h).
 */
#include "rules/estimate.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/quote.h"

#define BILLION    INT64_C(1000000000)
#define MIB        (INT64_C(1) << 20)
#define PARAMS_MIN (BILLION / 1000)
#define PARAMS_MAX (INT64_C(20000) * BILLION)

/* X(id, word, bits × 2 of a weight, its bytes in words, bytes of a KV value) */
#define DTYPE_TABLE(X)                         \
    X(ST_DTYPE_FP32, "fp32", 64, "4 bytes", 4) \
    X(ST_DTYPE_BF16, "bf16", 32, "2 bytes", 2) \
    X(ST_DTYPE_FP16, "fp16", 32, "2 bytes", 2) \
    X(ST_DTYPE_FP8, "fp8", 16, "1 byte", 2)    \
    X(ST_DTYPE_INT8, "int8", 16, "1 byte", 2)  \
    X(ST_DTYPE_INT4, "int4", 9, "4.5 bits", 2)

typedef struct dtype_row {
    int half_bits, kv_bytes;
    const char *text;
} dtype_row;

static const dtype_row dtypes[] = {
#define X(id, word, half_bits, text, kv_bytes) [id] = {half_bits, kv_bytes, text},
    DTYPE_TABLE(X)
#undef X
};
const char *const st_dtype_words[] = {
#define X(id, word, half_bits, text, kv_bytes) word,
    DTYPE_TABLE(X)
#undef X
        NULL,
};
const char *const st_method_words[] = {"full", "lora", "qlora", NULL};

/* Models of today: parameters in millions, layers, hidden width, width of keys (heads × 128 or
 * 64, grouped-query attention). */
static const struct {
    int64_t params_m, layers, hidden, keys;
} classes[] = {
    {0, 12, 512, 128},          {500, 24, 896, 128},     {1200, 16, 2048, 512},
    {3000, 28, 3072, 1024},     {8000, 32, 4096, 1024},  {14000, 48, 5120, 1024},
    {32000, 64, 5120, 1024},    {70000, 80, 8192, 1024}, {123000, 88, 12288, 1024},
    {405000, 126, 16384, 1024},
};

/* Between two rows, linear; beyond the last, as the last two go on. */
static void look_up(st_model *m)
{
    size_t i = 0;
    int64_t x0, x1, millions = m->params / 1000000;

    while (i + 2 < ST_ARRAY_LEN(classes) && classes[i + 1].params_m <= millions)
        i++;
    x0 = classes[i].params_m;
    x1 = classes[i + 1].params_m;
#define BETWEEN(a, b) ((a) + ((b) - (a)) * (millions - x0) / (x1 - x0))
    m->kv_values =
        BETWEEN(classes[i].layers * classes[i].keys, classes[i + 1].layers * classes[i + 1].keys);
    m->all_values = BETWEEN(classes[i].layers * classes[i].hidden,
                            classes[i + 1].layers * classes[i + 1].hidden);
#undef BETWEEN
}

/* One word: 13b, 0.5b, 350m, 1.5t, 8x7b. */
static bool parse_word(const char *s, size_t len, int64_t *ret)
{
    char buf[24];
    const char *number = buf;
    int64_t times = 1, milli, unit;
    char *x;

    if (len < 2 || len >= sizeof buf)
        return false;
    memcpy(buf, s, len);
    buf[len - 1] = '\0';
    switch (tolower((unsigned char)s[len - 1])) {
    case 'm':
        unit = 1000000;
        break;
    case 'b':
        unit = BILLION;
        break;
    case 't':
        unit = 1000 * BILLION;
        break;
    default:
        return false;
    }
    x = strpbrk(buf, "xX");
    if (x) {
        *x = '\0';
        number = x + 1;
        if (st_parse_i64(buf, 1, 1024, &times, NULL) < 0)
            return false;
    }
    if (st_parse_milli(number, 1, 20000000, &milli, NULL) < 0)
        return false;
    *ret = times * milli * (unit / 1000);
    return *ret >= PARAMS_MIN && *ret <= PARAMS_MAX;
}

int st_model_parse(const char *text, st_model *ret, st_err *err)
{
    const char *between = "-_/: ";
    char q[ST_QUOTE_MAX];
    st_model m = {0};
    size_t len;

    for (const char *s = text; *s; s += len) {
        int64_t params;

        s += strspn(s, between);
        len = strcspn(s, between);
        if (parse_word(s, len, &params))
            m.params = params; /* the last that is one */
    }
    if (m.params == 0)
        return st_fail(err, ST_EINVAL,
                       "model: %s does not say how large it is: write 13b, 350m or 8x7b, or a name "
                       "with that in it",
                       st_quote(q, text));
    look_up(&m);
    *ret = m;
    return 0;
}

st_estimate_rules st_estimate_default(void)
{
    return (st_estimate_rules){
#define X(key, field, def, lo, hi, about) .field = (def),
        ST_ESTIMATE_TABLE(X)
#undef X
    };
}

int64_t st_need_each(const st_estimate_need *need, int64_t gpus)
{
    return (need->split_mib + gpus - 1) / gpus + need->runtime_mib;
}

const char *st_gib_text(char buf[ST_GIB_TEXT], int64_t mib)
{
    int64_t tenths = (mib * 10 + 512) / 1024;

    snprintf(buf, ST_GIB_TEXT, "%" PRId64 ".%" PRId64 " GiB", tenths / 10, tenths % 10);
    return buf;
}

static int64_t to_mib(st_i128 bytes)
{
    return (int64_t)((bytes + MIB - 1) / MIB);
}

static void say_params(st_strbuf *why, int64_t params)
{
    char n[ST_FMT_MAX];

    if (params >= BILLION)
        st_strbuf_addf(why, "%s billion parameters", st_fmt_milli(n, params / (BILLION / 1000)));
    else
        st_strbuf_addf(why, "%s million parameters", st_fmt_milli(n, params / 1000));
}

static int64_t weights_mib(const st_model *model, int half_bits)
{
    return to_mib((st_i128)model->params * half_bits / 16);
}

static st_estimate_need add_up(const st_estimate_rules *rules, int64_t mib, st_strbuf *why)
{
    st_estimate_need need = {.split_mib = mib + (mib * rules->workspace_percent + 99) / 100,
                             .runtime_mib = rules->runtime_mib};
    char g[ST_GIB_TEXT], runtime[ST_GIB_TEXT];

    if (rules->runtime_mib % 1024 == 0)
        snprintf(runtime, sizeof runtime, "%" PRId64 " GiB", rules->runtime_mib / 1024);
    else
        st_gib_text(runtime, rules->runtime_mib);
    st_strbuf_addf(why, "; with %" PRId64 " %% for workspace %s, and %s per GPU for the runtime",
                   rules->workspace_percent, st_gib_text(g, need.split_mib), runtime);
    return need;
}

st_estimate_need st_need_inference(const st_estimate_rules *rules, const st_model *model,
                                   st_dtype dtype, int64_t context, int64_t sequences, bool mha,
                                   st_strbuf *why)
{
    const dtype_row *d = &dtypes[dtype];
    int64_t weights = weights_mib(model, d->half_bits);
    int64_t token = 2 * (mha ? model->all_values : model->kv_values) * d->kv_bytes;
    int64_t cache = to_mib((st_i128)token * context * sequences);
    char g[ST_GIB_TEXT];

    say_params(why, model->params);
    st_strbuf_addf(why, " × %s = %s", d->text, st_gib_text(g, weights));
    st_strbuf_addf(
        why, "; KV cache %" PRId64 " tokens × %" PRId64 " sequence%s × %" PRId64 " KiB = %s",
        context, sequences, sequences == 1 ? "" : "s", (token + 512) / 1024, st_gib_text(g, cache));
    return add_up(rules, weights + cache, why);
}

st_estimate_need st_need_finetune(const st_estimate_rules *rules, const st_model *model,
                                  st_dtype dtype, st_method method, int64_t tokens, st_strbuf *why)
{
    const dtype_row *d = &dtypes[method == ST_METHOD_QLORA ? ST_DTYPE_INT4 : dtype];
    int64_t state,
        activations = to_mib((st_i128)model->all_values * rules->activation_bytes * tokens);
    char g[ST_GIB_TEXT];

    say_params(why, model->params);
    if (method == ST_METHOD_FULL) {
        state = to_mib((st_i128)model->params * rules->training_bytes);
        st_strbuf_addf(why, " × %" PRId64 " bytes (weights, gradients, Adam) = %s",
                       rules->training_bytes, st_gib_text(g, state));
    } else {
        int64_t adapters =
            to_mib((st_i128)model->params * rules->training_bytes * rules->adapters_percent / 100);

        state = weights_mib(model, d->half_bits);
        st_strbuf_addf(why, " × %s = %s", d->text, st_gib_text(g, state));
        st_strbuf_addf(why, "; adapters of %" PRId64 " %% × %" PRId64 " bytes = %s",
                       rules->adapters_percent, rules->training_bytes, st_gib_text(g, adapters));
        state += adapters;
    }
    st_strbuf_addf(why, "; activations of %" PRId64 " tokens = %s", tokens,
                   st_gib_text(g, activations));
    return add_up(rules, state + activations, why);
}
