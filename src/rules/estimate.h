/*
 * How much GPU memory a model needs: rules of thumb, in whole MiB, each with its arithmetic in
 * words. They are made to be a little too large rather than too small.
 *
 *   weights     parameters × bits of the dtype / 8; int4 counts 4.5 bits, scales included
 *   KV cache    2 (keys and values) × layers × width of keys × bytes × tokens × sequences
 *   training    16 bytes per parameter in full (bf16 weights and gradients 2 + 2, fp32 copy and
 *               Adam's two moments 4 + 4 + 4); adapters are 1 % of the parameters at as many bytes
 *   activations layers × hidden width × 8 bytes × tokens in a batch, with checkpointing
 *   overhead    10 % of the above, and 1 GiB on each GPU for the runtime
 *
 * A site that measures otherwise says so: the constants are st_estimate_rules.
 *
 * Layers and widths are looked up by the number of parameters among models as they are built
 * today (grouped-query attention), linear in between.
 */
#ifndef ST_RULES_ESTIMATE_H
#define ST_RULES_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

typedef enum st_dtype {
    ST_DTYPE_FP32,
    ST_DTYPE_BF16,
    ST_DTYPE_FP16,
    ST_DTYPE_FP8,
    ST_DTYPE_INT8,
    ST_DTYPE_INT4,
} st_dtype;
extern const char *const st_dtype_words[];

typedef enum st_method { ST_METHOD_FULL, ST_METHOD_LORA, ST_METHOD_QLORA } st_method;
extern const char *const st_method_words[];

typedef struct st_model {
    int64_t params;
    int64_t kv_values;  /* layers × width of keys: of one token, keys alone */
    int64_t all_values; /* layers × hidden width */
} st_model;

/* "13b", "350m", "0.5b", "8x7b", or a name with such a word in it ("llama-3-70b-instruct"). */
int st_model_parse(const char *text, st_model *ret, st_err *err);

/* X(key, field, default, lowest, highest, about). Whole numbers. */
#define ST_ESTIMATE_TABLE(X)                                                       \
    X("estimate_workspace", workspace_percent, 10, 0, 1000,                        \
      "percent that estimates of memory add to what a model needs, for workspace") \
    X("estimate_runtime", runtime_mib, 1024, 0, 65536,                             \
      "MiB on each GPU that estimates of memory add for the runtime")              \
    X("estimate_training", training_bytes, 16, 1, 256,                             \
      "bytes per parameter that is trained: weights, gradients and the optimizer") \
    X("estimate_adapters", adapters_percent, 1, 0, 100,                            \
      "percent of the parameters that lora and qlora train")                       \
    X("estimate_activations", activation_bytes, 8, 0, 256,                         \
      "bytes per token, layer and hidden width that training keeps")
typedef struct st_estimate_rules {
#define X(key, field, def, lo, hi, about) int64_t field;
    ST_ESTIMATE_TABLE(X)
#undef X
} st_estimate_rules;

st_estimate_rules st_estimate_default(void);

/* What must fit: what is divided among GPUs, to which each adds the runtime. */
typedef struct st_estimate_need {
    int64_t split_mib, runtime_mib;
} st_estimate_need;

int64_t st_need_each(const st_estimate_need *need, int64_t gpus);

/* `why` gets the arithmetic: "13 billion parameters × 2 bytes = 24.2 GiB; KV cache ...". */
st_estimate_need st_need_inference(const st_estimate_rules *rules, const st_model *model,
                                   st_dtype dtype, int64_t context, int64_t sequences, bool mha,
                                   st_strbuf *why);
st_estimate_need st_need_finetune(const st_estimate_rules *rules, const st_model *model,
                                  st_dtype dtype, st_method method, int64_t tokens, st_strbuf *why);

/* "24.2 GiB". */
#define ST_GIB_TEXT 32
const char *st_gib_text(char buf[ST_GIB_TEXT], int64_t mib);

#endif
